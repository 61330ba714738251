"""The gateway's own addresses live on while its ports carry Service traffic."""

import json
import re
import subprocess

import pytest

import lab
import objects
from lab import back, front, url

WORKERS = 2


def start(net):
    net.start_sluiced(WORKERS)
    net.apply(objects.standard())


def ping(net, name, address, count=10):
    """Lost echo requests."""
    done = net.run(name, "ping", "-q", "-c", count, "-i", "0.2", "-W", "2", address, check=False)
    return int(re.search(r"(\d+)% packet loss", done.stdout)[1])


def test_ping_to_the_gateway_is_answered_while_the_vip_is_loaded(net):
    start(net)
    load = net.start_traffic("c1", "http", front(100), 80, "--parallel", 16)

    lost = {address: ping(net, "c2", address)
            for address in (front(lab.GW), front(lab.GW, 6), back(lab.GW), front(100))}

    result = net.stop_traffic(load)
    assert lost == dict.fromkeys(lost, 0)
    assert result["errors"] == {} and result["ok"] > 0


def test_the_gateway_itself_reaches_its_neighbours(net):
    start(net)

    assert ping(net, "gw", front(11)) == 0
    assert ping(net, "gw", back(12, 6)) == 0


def test_clients_reach_backends_through_the_gateways_routing(net):
    start(net)

    assert ping(net, "c1", back(11)) == 0
    assert net.run("c1", "curl", "-sSf", "-m", "5", url(back(12), 8080)).stdout.startswith("b2 ")


ECHO = """
import socket, sys
server = socket.create_server(("::", 2222), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    peer, _ = server.accept()
    while (data := peer.recv(4096)):
        peer.sendall(data)
    peer.close()
"""
TALK = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 2222), timeout=5)
for number in range(200):
    line = b"keystroke %d\\n" % number
    peer.sendall(line)
    got = b""
    while len(got) < len(line):
        got += peer.recv(4096)
    assert got == line
    time.sleep(0.005)
"""


def test_an_interactive_tcp_session_to_the_gateway_lives_beside_the_load(net):
    start(net)
    echo = net.popen("gw", lab.PYTHON, "-c", ECHO, stdout=subprocess.PIPE, text=True)
    assert echo.stdout.readline() == "ready\n"
    load = net.start_traffic("c1", "http", front(101), 80, "--parallel", 16)

    for address in (front(lab.GW), front(lab.GW, 6)):
        net.run("c2", lab.PYTHON, "-c", TALK, address, timeout=30)

    assert net.stop_traffic(load)["errors"] == {}


def test_iperf3_to_the_gateway_lives_beside_the_load(net):
    start(net)
    server = net.popen("gw", "iperf3", "-s", "--forceflush", stdout=subprocess.PIPE, text=True)
    assert any("listening" in server.stdout.readline() for _ in range(3))
    load = net.start_traffic("c1", "http", front(100), 80, "--parallel", 4)

    for direction in ([], ["-R"]):
        done = net.run("c2", "iperf3", "-J", "-t", "2", "-b", "50M", "-c", front(lab.GW),
                       *direction, timeout=30)
        received = json.loads(done.stdout)["end"]["sum_received"]
        assert received["bits_per_second"] > 20e6

    assert net.stop_traffic(load)["errors"] == {}


def serves(net):
    """Ten new connections by each port's IPv6 and IPv4 addresses, and the gateway's own."""
    for family in (4, 6):
        result = net.traffic("c1", "http", front(101, family), 80, "--count", 10)
        assert result["errors"] == {} and set(result["sources"]) == {back(lab.GW, family)}
        assert ping(net, "c2", front(lab.GW, family), count=3) == 0


def test_a_deleted_tap_is_made_anew_and_told_in_one_line(net):
    start(net)
    serves(net)

    for side in ("front", "back"):
        net.ip("gw", "link", "delete", f"slc-{side}")
        net.wait(lambda s=side: f"tap slc-{s} was deleted: made anew" in net.log_tail(),
                 "nobody noticed", log=True)

    net.wait(lambda: ping(net, "c2", back(11), count=1) == 0, "nothing is routed any more")
    serves(net)
    assert net.ctl_json("status")["healthy"]


def test_a_tap_set_down_is_told_and_has_its_addresses_again_when_up(net):
    start(net)
    net.ip("gw", "link", "set", "slc-back", "down")
    net.wait(lambda: "slc-back is down" in net.ctl_json("status").get("healthReason", ""),
             "status says nothing")

    net.ip("gw", "link", "set", "slc-back", "up")

    net.wait(lambda: net.ctl_json("status").get("healthy"), "it does not recover", log=True)
    assert back(lab.GW, 6) in net.ip("gw", "-6", "address", "show", "dev", "slc-back")
    net.wait(lambda: ping(net, "c2", back(11), count=1) == 0, "nothing is routed any more")
    serves(net)


def test_the_kernel_of_the_gateway_answers_nothing_on_the_ports_themselves(net):
    """On an af_packet port the kernel sees every frame too; it must stay silent (no RST for a
    connection it does not know, no ARP answer, no ICMP)."""
    start(net)
    result = net.traffic("c1", "http", front(100), 80, "--count", 200)
    result6 = net.traffic("c1", "http", front(100, 6), 80, "--count", 200)

    assert result["errors"] == {} and result6["errors"] == {}
    # Answers of the kernel's own are counted by its stack; the workers' frames bypass it.
    resets = net.run("gw", "nstat", "-az", "TcpOutRsts", "IcmpOutDestUnreachs",
                     "Icmp6OutDestUnreachs").stdout
    for line in resets.splitlines()[1:]:
        name, value = line.split()[:2]
        assert (name, int(float(value))) == (name, 0)


def masqueraded_ports(net, family):
    """Source ports the kernel gave; those from 40960 are the workers' (snat's default)."""
    flows = net.run("gw", "conntrack", "-L", "-f", f"ipv{family}").stdout
    answers_to = f" dst={back(lab.GW, family)} "
    return [int(re.search(r"dport=(\d+)", line.split(answers_to)[1])[1])
            for line in flows.splitlines() if answers_to in line]


@pytest.mark.parametrize("host_mode", ["nftables", "iptables"])
def test_host_mode_serves_what_begins_on_the_gateway_beside_the_workers(net, host_mode):
    net.start_sluiced(WORKERS, extra=f"host-mode: {host_mode}\nmin-sync-period: 0s\n")
    net.apply(objects.as_list(
        objects.service("shop", 101), objects.slices("shop"), objects.service("none", 103),
        objects.service("dns", 102, ports=objects.UDP_PORTS),
        objects.slices("dns", objects.UDP_PORTS)))
    net.wait(lambda: all(sink.get("appliedVersion") == sink.get("wantedVersion")
                         for sink in net.ctl_json("status")["sinks"]), "no rules", log=True)
    net.ip("gw", "route", "add", "10.96.0.0/24", "dev", "slc-back")  # as a default route would
    beside = net.start_traffic("c1", "http", front(101), 80, "--parallel", 4)

    for family in (4, 6):
        by_vip = net.traffic("gw", "http", front(101, family), 80, "--count", 60)
        assert by_vip["failed"] == 0 and len(by_vip["by_backend"]) == 3, by_vip
        assert net.traffic("gw", "udp", front(102, family), 53, "--count", 20)["failed"] == 0
        assert 0 < max(masqueraded_ports(net, family)) < 40960
    assert net.traffic("gw", "http", "10.96.0.101", 80, "--count", 20)["failed"] == 0
    refused = net.run("gw", "curl", "-sS", "-m", "5", url(front(103), 80), check=False)
    assert refused.returncode == 7, refused.stderr  # 28 would be a time-out

    result = net.stop_traffic(beside)
    assert result["failed"] == 0, result
    # A client's packets are the workers' alone: the kernel has not seen one as a Service's.
    assert net.run("gw", "conntrack", "-L", "-s", front(11)).stdout == ""
