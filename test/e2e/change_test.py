"""Tables change under load: flows that live go on, new ones follow the new table."""

import hashlib
import os

import lab
import objects
from lab import front, url

WORKERS = 2


def start(net):
    net.start_sluiced(WORKERS)
    net.apply(objects.standard())
    net.settle()


def start_download(net, number, rate="10M", size=60):
    """A download of `size` MB by a connection of its own, slow enough to live through a change.
    Returns the process and its file."""
    blob = net.dir / "blob"
    if not blob.exists():
        blob.write_bytes(os.urandom(1000 * 1000) * size)
        for name in lab.BACKENDS:
            os.link(blob, net.dir / name / "www" / "blob")
    target = net.dir / f"down-{number}"
    process = net.popen("c1", "curl", "-sSf", "-m", "60", "--limit-rate", rate, "-o", target,
                        url(front(100), 80, "/blob"))
    net.wait(lambda: target.exists() and target.stat().st_size > 0, "the download does not start")
    return process, target


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ends_well(net, process, target):
    assert process.wait(60) == 0
    assert digest(target) == digest(net.dir / "blob")


def backends_in_use(net):
    """Backend address -> connections, of flows to the web VIP that are established."""
    use = {}
    for row in net.connections():
        if row["vip"] == front(100) and row["state"].lower() == "established":
            use[row["backend"]] = use.get(row["backend"], 0) + 1
    return use


def test_a_snapshot_replaced_two_hundred_times_under_load_costs_no_request(net):
    start(net)
    load4 = net.start_traffic("c1", "http", front(100), 80, "--parallel", 8)
    load6 = net.start_traffic("c2", "http", front(101, 6), 80, "--parallel", 8)

    for number in range(200):
        # Alternate between two states that differ in Services and in one endpoint's presence.
        extra = [objects.nat(f"extra{i}", number=i) for i in range(210, 210 + number % 4)]
        net.replace(objects.as_list(
            objects.nat("web", 100, scheduler="rr"),
            objects.slices("web", backends=(11, 12, 13) if number % 2 else (11, 12)),
            objects.service("shop", 101), objects.slices("shop"), *extra))

    for load in (load4, load6):
        result = net.stop_traffic(load)
        assert result["errors"] == {}
        assert result["ok"] == result["sent"] > 500
    assert net.drops() == {}


def test_an_endpoint_removed_during_a_download_ends_no_connection_and_gets_no_new_one(net):
    start(net)
    # rr on two workers: of five flows one worker has three, and so uses every backend.
    downloads = [start_download(net, number, size=40) for number in range(5)]
    assert len(backends_in_use(net)) == 3

    net.apply(objects.as_list(objects.slices("web", backends=(11, 12))))
    after = net.traffic("c2", "http", front(100), 80, "--count", 200)

    assert after["errors"] == {}
    assert set(after["by_backend"]) == {"b1", "b2"}
    for process, target in downloads:  # M-8: also the one whose endpoint left
        ends_well(net, process, target)


def connected(net, vip):
    """(address, port) of the clients whose connections to `vip` the workers hold."""
    return {(row["client"], row.get("clientPort")) for row in net.connections("--vip", vip)}


def test_a_service_deleted_under_load_lets_its_flows_go_on_and_takes_no_new_ones(net):
    start(net)
    load = net.start_traffic("c2", "http", front(101), 80, "--parallel", 8)
    process, target = start_download(net, 0)
    net.ctl("delete", "service", "test/web")
    held, passed = connected(net, front(100)), net.counters().get("host_pass", 0)

    # The address is no Service's now: by P-8 its packets are the host's. Its kernel answers late
    # or never (nobody has the address), so a time-out is as good as a refusal.
    tried = net.run("c1", "curl", "-sS", "-m", "1.5", url(front(100), 80), check=False)

    assert tried.returncode in (7, 28)
    assert net.counters()["host_pass"] > passed
    assert connected(net, front(100)) <= held
    ends_well(net, process, target)
    other = net.stop_traffic(load)
    assert other["errors"] == {} and other["ok"] > 0
    assert net.sluiced.poll() is None


def test_a_service_whose_endpoints_all_leave_under_load_refuses_new_connections(net):
    start(net)
    load = net.start_traffic("c2", "http", front(101), 80, "--parallel", 8)
    process, target = start_download(net, 0)

    net.apply(objects.as_list(objects.slices("web", backends=())))

    # A reset from the worker itself, not a time-out: the Service is there and says no.
    refused = net.run("c1", "curl", "-sS", "-m", "10", url(front(100), 80), check=False)
    assert refused.returncode == 7, refused.stderr
    assert net.counters().get("reject_rst", 0) > 0
    ends_well(net, process, target)  # M-8
    other = net.stop_traffic(load)
    assert other["errors"] == {} and other["ok"] > 0


def test_a_service_that_comes_back_serves_again(net):
    start(net)
    net.ctl("delete", "service", "test/web")
    net.apply(objects.standard())

    result = net.traffic("c1", "http", front(100), 80, "--count", 100)

    assert result["errors"] == {} and set(result["by_backend"]) == set(lab.BACKENDS)


def test_the_last_good_snapshot_serves_after_a_restart_without_a_control_plane(net):
    start(net)
    assert net.stop_sluiced()[0] == 0
    net.start_sluiced(WORKERS)

    result = net.traffic("c1", "http", front(100), 80, "--count", 100)

    assert result["errors"] == {} and result["ok"] == 100
