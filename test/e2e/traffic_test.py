"""Real clients, real nginx, a VIP between them: nothing fails, nothing is altered."""

import hashlib
import os
import pathlib
import tempfile

import pytest

import lab
import objects
from lab import back, front, url

REQUESTS = 10000
TRANSFER_BYTES = 200 * 1000 * 1000
WORKERS = 2
# handed_over: all frames arrive at the first worker (the far ends have one transmit queue, conftest)
# and the last one owns every flow, so that each packet has to cross a ring.
OWNER = {"normal": "", "handed_over": "test-owner-map: last\n"}


@pytest.fixture(params=list(OWNER))
def served(request, net):
    """A sluiced with the standard Services; once more with every packet handed over."""
    net.start_sluiced(WORKERS, OWNER[request.param])
    net.apply(objects.standard())
    net.owner = request.param
    net.settle()
    return net


def all_answered(result, count):
    assert result["sent"] == count
    assert (result["ok"], result["errors"]) == (count, {})


def handed_over_as_it_should(net, before=None):
    """Every frame of a flow crossed a ring: all but the few of ARP and neighbour discovery. The hash
    of a packet socket's fan-out cannot be chosen: there it is about half of the flows."""
    if net.owner == "normal":
        return
    counters, before = net.counters(), before or {}
    # A ring may fill while its reader is off the core; those frames had to cross, too.
    frames, sent, full = (counters.get(name, 0) - before.get(name, 0)
                          for name in ("rx_frames", "handover_sent", "handover_ring_full"))
    assert sent > 0
    assert (sent + full) / frames > (0.98 if net.port_kind == "af_xdp" else 0.25)


@pytest.mark.parametrize("family", [4, 6])
def test_ten_thousand_connections_by_rr_are_all_answered_and_evenly_spread(served, family):
    result = served.traffic("c1", "http", front(100, family), 80, "--count", REQUESTS,
                            "--parallel", 32)

    all_answered(result, REQUESTS)
    shares = [result["by_backend"].get(name, 0) for name in lab.BACKENDS]
    # rr: every worker has its own turn, so two backends differ by at most one per worker.
    assert max(shares) - min(shares) <= WORKERS
    # nat: nginx saw the client itself.
    assert set(result["sources"]) == {front(11, family)}
    assert served.drops() == {}
    handed_over_as_it_should(served)


@pytest.mark.parametrize("family", [4, 6])
def test_ten_thousand_connections_by_random_and_fullnat_are_all_answered(served, family):
    result = served.traffic("c2", "http", front(101, family), 80, "--count", REQUESTS,
                            "--parallel", 32)

    all_answered(result, REQUESTS)
    # random: binomial with n = 10000 and p = 1/3; 6 standard deviations are 283.
    for name in lab.BACKENDS:
        assert abs(result["by_backend"].get(name, 0) - REQUESTS / 3) < 283
    # fullnat: nginx saw the gateway.
    assert set(result["sources"]) == {back(lab.GW, family)}
    assert served.drops() == {}
    handed_over_as_it_should(served)


@pytest.fixture(scope="module")
def blob():
    """200 MB that no two parts of are equal, and its SHA-256. On the file system of the lab, so
    that a backend gets it by a link."""
    folder = tempfile.TemporaryDirectory(prefix="sluice-blob-")
    path = pathlib.Path(folder.name) / "blob"
    block = os.urandom(1000 * 1000)
    digest = hashlib.sha256()
    with open(path, "wb") as out:
        for number in range(TRANSFER_BYTES // len(block)):
            stamped = number.to_bytes(8, "big") + block[8:]
            out.write(stamped)
            digest.update(stamped)
    yield path, digest.hexdigest()
    folder.cleanup()


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def finish(processes):
    for process in processes:
        assert process.wait(210) == 0


def down(net, address, pieces):
    """Fetches the blob by `pieces` connections at once; SHA-256 of the whole."""
    size = TRANSFER_BYTES // pieces
    files = [net.dir / f"down-{i}" for i in range(pieces)]
    finish([net.popen("c1", "curl", "-sSf", "-m", "200", "-o", file, "-r",
                      f"{i * size}-{(i + 1) * size - 1}", url(address, 80, "/blob"))
            for i, file in enumerate(files)])
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def up(net, address, pieces, path):
    """Stores the blob by `pieces` connections at once; SHA-256 of the whole."""
    size = TRANSFER_BYTES // pieces
    names = [f"piece-{i}" for i in range(pieces)]
    with open(path, "rb") as blob:
        for name in names:
            (net.dir / name).write_bytes(blob.read(size))
    finish([net.popen("c1", "curl", "-sSf", "-m", "200", "-T", net.dir / name,
                      url(address, 80, f"/up/{name}")) for name in names])
    digest = hashlib.sha256()
    for name in names:
        stored = [net.dir / backend / "www" / "up" / name for backend in lab.BACKENDS]
        (found,) = [file for file in stored if file.exists()]
        digest.update(found.read_bytes())
    return digest.hexdigest()


@pytest.mark.parametrize("family,vip", [(4, 100), (4, 101), (6, 100), (6, 101)])
def test_two_hundred_megabytes_go_down_and_up_unaltered(served, blob, family, vip):
    path, digest = blob
    for name in lab.BACKENDS:
        os.link(path, served.dir / name / "www" / "blob")
    # Of one flow a packet socket's fan-out may hand over nothing; of 16, all but surely some.
    pieces = 1 if served.owner == "normal" else 16
    before = served.counters()

    assert down(served, front(vip, family), pieces) == digest
    assert up(served, front(vip, family), pieces, path) == digest

    # What a full ring costs TCP repairs; the digests prove it.
    if served.port_kind == "af_xdp":
        handed_over_as_it_should(served, before)
    elif served.owner == "handed_over":
        assert served.counters()["handover_sent"] > before.get("handover_sent", 0)


@pytest.mark.parametrize("family", [4, 6])
def test_udp_questions_are_answered_by_every_backend(served, family):
    result = served.traffic("c1", "udp", front(102, family), 53, "--count", 1000)

    all_answered(result, 1000)
    assert set(result["by_backend"]) == set(lab.BACKENDS)
    assert set(result["sources"]) == {front(11, family)}
    assert served.drops() == {}
    handed_over_as_it_should(served)


@pytest.mark.parametrize("family", [4, 6])
def test_one_udp_socket_to_two_vips_with_one_backend_is_answered_by_both(served, family):
    # Both flows would have the same reply key: the second is source-translated.
    result = served.traffic("c1", "udp-pair", front(103, family), front(104, family), 53,
                            "--count", 50)

    all_answered(result, 100)
    assert served.counters().get("conn_reply_clash", 0) >= 1


def test_the_veth_leaves_checksums_unfinished_and_they_are_completed(net):
    net.start_sluiced(WORKERS)
    net.apply(objects.standard())

    result = net.traffic("c1", "http", front(100), 80, "--count", 100)

    all_answered(result, 100)
    assert net.counters()["rx_partial_csum"] > 0
