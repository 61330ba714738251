"""sluiced --take-over kube-proxy: what a kube-proxy that has ended left forwards until our rules do.

The rules below are written by hand in the shape that kube-proxy gives them: VIP 100 by its nftables
tables, VIP 101 by its iptables chains, IPv4 with the legacy variant and IPv6 with the nft one.
Where KUBE_PROXY names a binary, it has left them itself.
"""

import shutil
import signal
import subprocess

import pytest

import kube_proxy
import lab
import objects
from lab import back, front

SERVICES = objects.as_list(objects.service("web", 100), objects.slices("web"),
                           objects.service("shop", 101), objects.slices("shop"))
TAKE_OVER = ("--take-over", "kube-proxy")
FAST = "min-sync-period: 0s\nsync-period: 2s\n"


def nft_rules(family):
    ip = "ip" if family == 4 else "ip6"
    address = "ipv4_addr" if family == 4 else "ipv6_addr"
    web = "TR6OCHRN-test/web/tcp/http"
    pairs = ", ".join(f"{i} : {back(11 + i, family)} . 8080" for i in range(3))
    return f"""
table {ip} kube-proxy {{
  comment "rules for kube-proxy"
  set hairpin-connections {{ type {address} . {address} . inet_proto . inet_service; }}
  map service-ips {{
    type {address} . inet_proto . inet_service : verdict
    elements = {{ {front(100, family)} . tcp . 80 : goto external-{web} }}
  }}
  chain nat-prerouting {{ type nat hook prerouting priority dstnat; jump services; }}
  chain nat-output {{ type nat hook output priority -100; jump services; }}
  chain nat-postrouting {{ type nat hook postrouting priority srcnat; jump masquerading; }}
  chain services {{ {ip} daddr . meta l4proto . th dport vmap @service-ips; }}
  chain external-{web} {{ meta mark set meta mark | 0x4000; goto service-{web}; }}
  chain service-{web} {{
    meta l4proto tcp dnat {ip} addr . port to numgen random mod 3 map {{ {pairs} }}
  }}
  chain masquerading {{
    meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000 masquerade fully-random
    ct status dnat {ip} saddr . {ip} daddr . meta l4proto . th dport @hairpin-connections \
      masquerade fully-random
  }}
}}
"""


def iptables_rules(family):
    bits = 32 if family == 4 else 128
    where = [f"{back(11 + i, family)}:8080" if family == 4 else f"[{back(11 + i, family)}]:8080"
             for i in range(3)]
    chains = ["KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ",
              "KUBE-PROXY-CANARY", "KUBE-EXT-TESTSHOPTESTSHOP", "KUBE-SVC-TESTSHOPTESTSHOP",
              *(f"KUBE-SEP-TESTSHOP{i}" for i in range(3))]
    picks = [f"-A KUBE-SVC-TESTSHOPTESTSHOP -m statistic --mode random --probability {p} "
             f"-j KUBE-SEP-TESTSHOP{i}" for i, p in ((0, "0.3333333333"), (1, "0.5000000000"))]
    return "\n".join([
        "*filter", ":KUBE-FORWARD - [0:0]", ":KUBE-FIREWALL - [0:0]",
        ":KUBE-EXTERNAL-SERVICES - [0:0]", ":KUBE-PROXY-FIREWALL - [0:0]",
        "-A INPUT -j KUBE-FIREWALL", "-A OUTPUT -j KUBE-FIREWALL",
        *(f"-A {chain} -m conntrack --ctstate NEW -m comment --comment "
          f'"kubernetes {what}" -j {target}' for chain in ("INPUT", "FORWARD") for what, target in
          (("externally-visible service portals", "KUBE-EXTERNAL-SERVICES"),
           ("load balancer firewall", "KUBE-PROXY-FIREWALL"))),
        '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
        "-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT", "COMMIT",
        "*nat", *(f":{chain} - [0:0]" for chain in chains),
        '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
        '-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
        '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
        "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
        "-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000",
        "-A KUBE-POSTROUTING -j MASQUERADE --random-fully",
        "-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000",
        f"-A KUBE-SERVICES -d {front(101, family)}/{bits} -p tcp -m tcp --dport 80 "
        '-m comment --comment "test/shop:http loadbalancer IP" -j KUBE-EXT-TESTSHOPTESTSHOP',
        "-A KUBE-EXT-TESTSHOPTESTSHOP -j KUBE-MARK-MASQ",
        "-A KUBE-EXT-TESTSHOPTESTSHOP -j KUBE-SVC-TESTSHOPTESTSHOP", *picks,
        "-A KUBE-SVC-TESTSHOPTESTSHOP -j KUBE-SEP-TESTSHOP2",
        *(f"-A KUBE-SEP-TESTSHOP{i} -p tcp -m tcp -j DNAT --to-destination {where[i]}"
          for i in range(3)),
        "COMMIT", "*mangle", ":KUBE-PROXY-CANARY - [0:0]", ":KUBE-KUBELET-CANARY - [0:0]",
        "COMMIT", ""])


def load(net, name, text, *command):
    path = net.dir / name
    path.write_text(text)
    net.run("gw", "sh", "-c", f"{' '.join(command)} < {path}")


def leave_kube_proxys_rules(net):
    load(net, "kube-proxy.nft", nft_rules(4) + nft_rules(6), "nft", "-f", "-")
    load(net, "kube-proxy.v4", iptables_rules(4), "iptables-legacy-restore", "--noflush")
    load(net, "kube-proxy.v6", iptables_rules(6), "ip6tables-nft-restore", "--noflush")


# One connection that lives on: a request every 10 ms until SIGTERM, and one more after it (or, if
# that never comes, for longer than the test may take). Says when it is open.
HOLD = """
import signal, socket, sys, time
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
peer = socket.create_connection((sys.argv[1], 80), timeout=5)
count = 0
last = False
while not last and count < 12000:
    last = bool(ended)
    peer.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    answer = peer.recv(4096)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    count += 1
    if count == 1:
        print("open", flush=True)
    time.sleep(0.01)
print(count)
"""


def left(net):
    """What of kube-proxy is there."""
    saves = ("iptables-legacy-save", "iptables-nft-save", "ip6tables-legacy-save",
             "ip6tables-nft-save")
    lines = [line for save in saves for line in net.run("gw", save).stdout.splitlines()
             if line.startswith(":KUBE-")]
    return ("kube-proxy" in net.run("gw", "nft", "list", "tables").stdout,
            sorted(line.split()[0] for line in lines))


def nothing_is_left(net):
    tables, chains = left(net)
    if net.port_kind == "iptables":  # KUBE-* are ours then
        return not tables and not any("TESTSHOP" in chain for chain in chains)
    return (tables, chains) == (False, [":KUBE-FIREWALL", ":KUBE-FIREWALL",
                                        ":KUBE-KUBELET-CANARY", ":KUBE-KUBELET-CANARY"])


def start_loads(net):
    """(loads, connections that live on) of VIPs 100 and 101."""
    loads = [net.start_traffic(client, "http", front(vip, family), 80, "--parallel", 2)
             for client, vip in (("c1", 100), ("c2", 101)) for family in (4, 6)]
    held = [net.popen("c1", lab.PYTHON, "-c", HOLD, front(vip), stdout=subprocess.PIPE, text=True)
            for vip in (100, 101)]
    for process in held:
        assert process.stdout.readline() == "open\n"
    return loads, held


def end_loads(net, loads, held):
    """None lost a request or its connection."""
    for process in held:
        process.send_signal(signal.SIGTERM)
        assert int(process.communicate(timeout=20)[0]) > 1
        assert process.returncode == 0
    net.end_loads(loads)


def test_taking_over_costs_no_request_and_no_connection_and_removes_what_was_there(net):
    leave_kube_proxys_rules(net)
    loads, held = start_loads(net)

    net.start_sluiced(extra=FAST, args=TAKE_OVER)
    assert left(net)[0]  # nothing is known of Services yet
    net.apply(SERVICES)
    net.wait(lambda: nothing_is_left(net), "something of kube-proxy is left", log=True)
    assert net.traffic("c1", "http", front(101, 6), 80, "--count", 20)["failed"] == 0

    end_loads(net, loads, held)


def check_taking_over_from_kube_proxy_itself(net, kind):
    loads, held = kube_proxy.serve_and_end(net, kind, SERVICES, lambda: start_loads(net))

    net.start_sluiced(extra=FAST, args=TAKE_OVER)
    net.apply(SERVICES, "--wait", 30)
    end_loads(net, loads, held)

    if net.port_kind == "nftables":  # else KUBE-* are ours now
        assert set(left(net)[1]) <= {":KUBE-FIREWALL"}
    net.stop_sluiced()
    net.run("gw", net.binaries / "sluiced", "--cleanup", "--mode", net.port_kind)
    tables, chains = left(net)
    assert (tables, set(chains) - {":KUBE-FIREWALL"}) == (False, set())


if kube_proxy.KINDS:  # where it is not found, nothing is skipped
    @pytest.mark.parametrize("kind", kube_proxy.KINDS, ids=" ".join)
    def test_taking_over_from_kube_proxy_itself(net, kind):
        check_taking_over_from_kube_proxy_itself(net, kind)


def test_chains_that_a_mode_iptables_has_left_go_without_taking_over(net):
    """SY-12. kube-proxy's nftables tables are not ours; KUBE-* chains are, in either mode."""
    leave_kube_proxys_rules(net)
    net.start_sluiced(extra=FAST)
    net.apply(objects.as_list(objects.service("web", 100), objects.slices("web")))
    net.wait(lambda: not any("TESTSHOP" in chain for chain in left(net)[1]),
             "chains that nobody writes are left", log=True)
    assert left(net)[0]
    if net.port_kind == "nftables":
        assert left(net)[1] == [":KUBE-FIREWALL", ":KUBE-FIREWALL",
                                ":KUBE-KUBELET-CANARY", ":KUBE-KUBELET-CANARY"]


def test_it_is_refused_while_kube_proxy_runs_and_nothing_is_touched(net):
    leave_kube_proxys_rules(net)
    binary = net.dir / "kube-proxy"
    shutil.copy("/bin/sleep", binary)
    running = net.popen("gw", binary, "60")
    pid = net.wait_for_exec(running, "kube-proxy")
    path = net.dir / "sluiced.yaml"
    path.write_text(net.config(extra=FAST))

    done = net.run("gw", net.binaries / "sluiced", "--config", path, *TAKE_OVER, check=False)

    assert done.returncode == 1
    assert done.stderr.endswith(f" kube-proxy: it runs (pid {pid}); end it first\n")
    assert left(net)[0]


def test_metrics_of_a_kernel_mode_are_served(net):
    net.start_sluiced(extra=FAST)
    net.apply(objects.as_list(objects.service("web", 100), objects.slices("web")))

    def page(path):
        return net.run("gw", "curl", "-sf", f"http://127.0.0.1:10249{path}", check=False).stdout

    def value(name):
        found = [line.rsplit(" ", 1)[1] for line in page("/metrics").splitlines()
                 if line.startswith(name)]
        return float(found[0]) if found else None

    full = 'kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"}'
    net.wait(lambda: (value(full) or 0) >= 1, "no full sync is counted", log=True)
    assert page("/proxyMode") == net.port_kind
    failures = {"nftables": "nftables_sync_failures_total",
                "iptables": "iptables_restore_failures_total"}[net.port_kind]
    assert value(f'kubeproxy_sync_proxy_rules_{failures}{{ip_family="IPv6"}}') == 0
    assert value("sluice_conntrack_max") > 0
    assert value(f"sluice_{net.port_kind}_repairs_total") == 0
    assert value('kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"}') == 0
