"""Modes nftables and iptables under load: the kernel forwards, sluiced changes its rules and dies."""

import json
import signal

import pytest

import kernel_rules
import lab
import objects
from lab import back, front

FAST = "min-sync-period: 0s\nsync-period: 2s\n"
ADDRESSES = 20  # of the backends in all, for Services that are scaled


def start(net, extra=FAST):
    """More addresses on the backends, sluiced, and two Services."""
    names = list(lab.BACKENDS)
    for number in range(ADDRESSES):
        net.ip(names[number % 3], "address", "add", f"{back(100 + number)}/24", "dev", "eth0")
        net.ip(names[number % 3], "address", "add", f"{back(100 + number, 6)}/64", "dev", "eth0",
               "nodad")
    net.start_sluiced(extra=extra)
    put(net, objects.nat("web", 100), scaled(10), objects.service("shop", 101),
        objects.slices("shop"))
    net.wait(lambda: works(net), "the first request is not answered", log=True)
    # What a daemon that is killed starts from. An apply does not wait for it.
    net.wait((net.dir / "state" / "snapshot").exists, "the snapshot is not kept", log=True)


def scaled(count):
    return objects.slices("web", backends=range(100, 100 + count))


def put(net, *some):
    """Applies objects and waits until they are in force, however slow the machine is."""
    net.apply(objects.as_list(*some), "--wait", 30)


def works(net):
    return net.run("c1", "curl", "-sf", "-m", "1", lab.url(front(100), 80), check=False,
                   ).returncode == 0


def sink(net):
    return net.ctl_json("status")["sinks"][0]


def endpoints_ever():
    """Of the Services of start(), as rules have them; by name."""
    def written(numbers):
        return {f"{back(number)}:{lab.HTTP_PORT}" for number in numbers} | {
            f"[{back(number, 6)}]:{lab.HTTP_PORT}" for number in numbers}
    return {"web": written(range(100, 100 + ADDRESSES)),
            "shop": written(list(lab.BACKENDS.values()))}


def start_loads(net):
    return [net.start_traffic("c1", "http", front(100), 80, "--parallel", 4),
            net.start_traffic("c2", "http", front(100, 6), 80, "--parallel", 4)]


def test_scaling_a_hundred_times_under_load_costs_no_request(net):
    start(net)
    loads = start_loads(net)

    for number in range(100):
        put(net, scaled(3 if number % 2 else 20))
        put(net, scaled(10))

    net.end_loads(loads, more_than=200)
    assert int(sink(net).get("failures", 0)) == 0


def test_killed_in_the_middle_of_applies_and_started_again_costs_no_request(net):
    rules = kernel_rules.of(net)
    # Of two kinds of iptables the old one here; the test above has the other.
    variant = "iptables: {variant: legacy}\n" if "legacy" in rules.VARIANTS else ""
    start(net, FAST + variant)
    loads = start_loads(net)

    for number in range(12):
        for count in (3, 20, 4 + number):
            put(net, scaled(count))
        net.apply(objects.as_list(scaled(10)), "--wait", 0)  # it has begun, or is about to
        lab.kill(net.sluiced, signal.SIGKILL)
        assert rules.strays(endpoints_ever()) == []
        net.start_sluiced(extra=FAST + variant)

    net.end_loads(loads, more_than=200)
    put(net, scaled(5))
    net.wait(lambda: rules.has_endpoints(5), "the last state is not in force", log=True)


def test_rules_flushed_by_others_come_back_within_the_sync_period(net):
    rules = kernel_rules.of(net)
    start(net)
    rules.add_theirs()
    rules.flush()

    net.wait(lambda: works(net), "they do not come back", 10.0, log=True)
    assert rules.CHANGED in net.log_tail(50)


def test_what_the_kernel_cannot_do_is_said_per_service(net):
    start(net)

    put(net, objects.nat("turn", 102, scheduler="rr"), objects.slices("turn"))

    net.wait(lambda: "service test/turn:http: scheduler rr" in net.log_tail(50),
             "nothing is said", log=True)
    assert "rr" in json.dumps(sink(net))


def answered_by(net, client, number, family=4):
    """The one backend that answers all connections of this client to a VIP."""
    result = net.traffic(client, "http", front(number, family), 80, "--count", 12)
    assert result["failed"] == 0 and len(result["by_backend"]) == 1, result
    return next(iter(result["by_backend"]))


@pytest.mark.kinds("nftables")
def test_mh_keeps_every_client_where_it_is_when_another_endpoint_goes(net):
    start(net)
    net.apply(objects.as_list(objects.nat("hashed", 103, scheduler="mh"), objects.slices("hashed")))

    net.wait(lambda: front(103) in kernel_rules.of(net).listing(), "no rules", log=True)
    assert "mh" not in json.dumps(sink(net).get("unsupported", []))
    homes = {(c, f): answered_by(net, c, 103, f) for c in ("c1", "c2") for f in (4, 6)}
    for gone, number in (("b1", 11), ("b2", 12), ("b3", 13)):
        left = [n for n in (11, 12, 13) if n != number]
        net.apply(objects.as_list(objects.slices("hashed", backends=left)))
        net.wait(lambda: f" : {back(number)} . 8080" not in hashed_slots(net), "no change")
        for (client, family), home in homes.items():
            if home != gone:
                assert answered_by(net, client, 103, family) == home
        net.apply(objects.as_list(objects.slices("hashed")))
        net.wait(lambda: f" : {back(number)} . 8080" in hashed_slots(net), "no change")


def hashed_slots(net):
    """Slots of VIP 103."""
    listed = net.run("gw", "nft", "list", "map", "ip", "sluice", "svc-eps").stdout
    return "\n".join(part for part in listed.split(",") if f"{front(103)} . tcp" in part)


@pytest.mark.kinds("nftables")
def test_a_source_that_finds_the_affinity_memory_full_is_answered_by_any_endpoint(net):
    start(net)
    put(net, objects.service("sticky", 104, sessionAffinity="ClientIP"), objects.slices("sticky"))
    home = answered_by(net, "c2", 104)

    kernel_rules.of(net).fill_affinity_memory()

    newcomer = net.traffic("c1", "http", front(104), 80, "--count", 24)
    assert newcomer["failed"] == 0
    assert len(newcomer["by_backend"]) > 1, "it was remembered: the memory was not full"
    assert answered_by(net, "c2", 104) == home


def test_the_rules_stay_without_sluiced_and_cleanup_removes_exactly_ours(net):
    rules = kernel_rules.of(net)
    start(net)
    rules.add_theirs()
    status, _ = net.stop_sluiced()
    assert status == 0
    assert works(net)

    # Without --mode: whichever mode has made it.
    done = net.run("gw", net.binaries / "sluiced", "--cleanup")

    assert (done.stdout, done.stderr) == ("", "")
    assert rules.listing() == rules.LEFT


@pytest.mark.kinds("iptables")
def test_what_one_kernel_mode_has_made_goes_when_the_other_is_in_force(net):
    rules = kernel_rules.of(net)
    start(net, extra=FAST)
    net.stop_sluiced()
    net.start_sluiced(extra=FAST, args=("--mode", "nftables"))
    net.wait(lambda: "KUBE-SVC" not in rules.listing(), "the other mode's chains stay", log=True)
    assert works(net)
    net.stop_sluiced()

    net.start_sluiced(extra=FAST)
    net.wait(lambda: "sluice" not in net.run("gw", "nft", "list", "tables").stdout,
             "the other mode's tables stay", log=True)
    assert works(net)


def test_without_the_right_the_start_is_refused_in_one_line(net):
    path = net.dir / "sluiced.yaml"
    path.write_text(net.config())

    done = net.run("gw", "setpriv", "--bounding-set=-net_admin", net.binaries / "sluiced",
                   "--config", path, check=False)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "CAP_NET_ADMIN" in done.stderr


def test_a_changed_configuration_ends_sluiced_with_an_error_and_the_rules_stay(net):
    net.start_sluiced(extra=FAST)
    net.apply(objects.as_list(objects.service("web", 100), objects.slices("web")))

    (net.dir / "sluiced.yaml").write_text(net.config(extra=FAST))

    assert net.sluiced.wait(timeout=10) == 1
    assert f"{net.dir}/sluiced.yaml: it was written; sluiced ends" in net.log_tail()
    assert works(net)


def test_init_only_sets_the_sysctls_and_ends(net):
    path = net.dir / "sluiced.yaml"
    path.write_text(f"mode: {net.port_kind}\nnode: {{name: gw}}\nlisten: unix:{net.socket}\n"
                    "conntrack: {max-per-core: 0, tcp-established-timeout: 7777s}\n")

    net.run("gw", net.binaries / "sluiced", "--init-only", "--config", path)

    name = "net.netfilter.nf_conntrack_tcp_timeout_established"
    assert net.run("gw", "sysctl", "-n", name).stdout.strip() == "7777"
    assert not net.socket.exists()
