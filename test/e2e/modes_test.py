"""dr and ipip with real clients and servers: every backend has the address of the Service on its
loopback and a link of its own to the clients, so answers never see the gateway."""

import hashlib
import os
import pathlib
import subprocess

import pytest

import lab
import objects
from lab import back, front, url

REQUESTS = 10000
HTTP = (("http", "TCP", lab.HTTP_PORT, lab.HTTP_PORT),)
DNS = (("dns", "UDP", lab.UDP_PORT, lab.UDP_PORT),)
DECAPSULATOR = pathlib.Path(__file__).resolve().parent / "decapsulator.py"
SOURCES = "ipip: {sources: [10.100.1.0/24, 'fd00:100:1::/64']}\n"

# Host part of the VIP, mode, and the families of the endpoints: None is the VIP's own.
DR, IPIP, IN_IPV6, IN_IPV4, DR_DNS, IPIP_DNS = 110, 111, 112, 113, 114, 115
VIPS = (DR, IPIP, IN_IPV6, IN_IPV4, DR_DNS, IPIP_DNS)


def mode(name, vip, which, ports=HTTP, families=("IPv4", "IPv6")):
    slices = [s for s in objects.slices(name, ports) if s["addressType"] in families]
    return [objects.service(name, vip, ports=ports,
                            annotations={"sluice.dev/forwarding-mode": which}), slices]


def services():
    return objects.as_list(
        *mode("dr", DR, "dr"), *mode("ipip", IPIP, "ipip"),
        *mode("in-ipv6", IN_IPV6, "ipip", families=("IPv6",)),
        *mode("in-ipv4", IN_IPV4, "ipip", families=("IPv4",)),
        *mode("dr-dns", DR_DNS, "dr", DNS), *mode("ipip-dns", IPIP_DNS, "ipip", DNS))


def own_the_vips(net, name, number):
    """The VIPs on the loopback, unanswered to ARP; a second link straight to the clients."""
    net.sysctl(name, "net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2",
               "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
    net.direct_link(name, number)
    for vip in VIPS:
        net.ip(name, "address", "add", f"{front(vip)}/32", "dev", "lo")
        net.ip(name, "address", "add", f"{front(vip, 6)}/128", "dev", "lo", "nodad")


def start_decapsulator(net, name):
    process = net.popen(name, lab.PYTHON, DECAPSULATOR, "decap0", stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    net.sysctl(name, "net.ipv4.conf.decap0.rp_filter=0")
    net.ip(name, "link", "set", "decap0", "up")
    return process


@pytest.fixture
def served(net):
    for number, name in enumerate(lab.BACKENDS):
        own_the_vips(net, name, 21 + number)
        # The way back for errors about tunnels, and the way to their sources.
        start_decapsulator(net, name)
    net.start_sluiced(2, SOURCES)
    net.apply(services())
    for family in (4, 6):  # neighbours are resolved one request at a time
        for vip in (DR, IPIP):
            net.traffic("c1", "http", front(vip, family), lab.HTTP_PORT, "--count", 12,
                        "--parallel", 1)
    net.before = net.counters()
    return net


def received(net):
    """Frames that came in by each port of the gateway."""
    return {port["name"]: int(port.get("rxPackets", 0))
            for port in net.ctl_json("status")["ports"]}


def everything_was_answered_past_the_gateway(net, family, vips):
    for vip in vips:
        before = received(net)

        result = net.traffic("c1", "http", front(vip, family), lab.HTTP_PORT, "--count", REQUESTS,
                             "--parallel", 32)

        assert (result["sent"], result["ok"], result["errors"]) == (REQUESTS, REQUESTS, {})
        assert set(result["by_backend"]) == set(lab.BACKENDS)
        assert set(result["sources"]) == {front(11, family)}
        after = received(net)
        # SYN, ACK, request and FIN of each came by; of the answers, nothing did.
        assert after["front"] - before["front"] >= 4 * REQUESTS
        assert after["back"] - before["back"] < 100
    assert net.drops() == {}


@pytest.mark.parametrize("family", [4, 6])
def test_ten_thousand_requests_by_dr_and_by_ipip_are_answered_past_the_gateway(served, family):
    everything_was_answered_past_the_gateway(served, family, (DR, IPIP))

    # UDP, and a body that has to learn what the tunnel carries.
    for vip in (DR_DNS, IPIP_DNS):
        result = served.traffic("c1", "udp", front(vip, family), lab.UDP_PORT, "--count", 300)
        assert (result["ok"], result["errors"]) == (300, {})
    assert upload(served, front(IPIP, family)) is True
    assert served.counters()["hop_too_big_answered"] > 0


@pytest.mark.parametrize("family,vip", [(4, IN_IPV6), (6, IN_IPV4)])
def test_ten_thousand_requests_by_ipip_across_families_are_answered(served, family, vip):
    everything_was_answered_past_the_gateway(served, family, (vip,))

    assert upload(served, front(vip, family)) is True


def upload(net, address, size=8 * 1000 * 1000):
    """Stores random bytes by PUT. True: they arrived as they were."""
    path = net.dir / "body"
    path.write_bytes(os.urandom(size))
    net.run("c1", "curl", "-sSf", "-m", "60", "-T", path, url(address, lab.HTTP_PORT, "/up/body"))
    stored = [net.dir / name / "www" / "up" / "body" for name in lab.BACKENDS]
    (found,) = [file for file in stored if file.exists()]
    same = digest(found) == digest(path)
    found.unlink()
    return same


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_mapped_port_is_refused_and_the_rest_of_the_service_works(served):
    ports = HTTP + (("mapped", "TCP", 80, lab.HTTP_PORT),)
    served.apply(objects.as_list(*mode("dr", DR, "dr", ports)))

    whole = served.traffic("c1", "http", front(DR), lab.HTTP_PORT, "--count", 100)
    mapped = served.traffic("c1", "http", front(DR), 80, "--count", 5)

    assert whole["ok"] == 100
    assert (mapped["ok"], list(mapped["errors"])) == (0, [lab_refused()])
    assert "mode dr maps no port" in served.ctl("status").stdout
    explained = served.ctl("explain", "--from", front(11), "--to", f"{front(DR)}:80").stdout
    assert "cannot be served by mode dr" in explained


def lab_refused():
    return os.strerror(111)


def test_explain_names_the_mode_and_what_it_overrides(served):
    text = served.ctl("explain", "--from", front(11), "--to", f"{front(DR)}:{lab.HTTP_PORT}").stdout

    assert "mode dr never translates it" in text
    assert "overrides the masquerade of external traffic (P-5)" in text
