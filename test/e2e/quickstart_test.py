"""conf/quickstart as a user runs it, with the binaries that are there."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def quickstart(binaries, *args, timeout=120):
    return subprocess.run([ROOT / "conf" / "quickstart", "--binaries", binaries, *args],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout)


def namespaces():
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
    return {line.split()[0] for line in done.stdout.splitlines()}


def test_quickstart_answers_everything_and_leaves_nothing(binaries, port_kind):
    kernel = port_kind in ("nftables", "iptables")
    kind = ["--mode", port_kind] if kernel else ["--port", port_kind]
    before = namespaces()
    done = quickstart(binaries, *kind)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything was answered" in done.stdout
    assert not [name for name in namespaces() - before if name.startswith("slq")]


def test_quickstart_keeps_running_when_asked_and_stops(binaries):
    done = quickstart(binaries, "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = done.stdout.split("--stop ")[1].split()[0]
    try:
        answer = subprocess.run(["ip", "netns", "exec", f"{prefix}-c1", "curl", "-sSf", "-m", "5",
                                 "http://192.0.2.100:80/"], capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
    finally:
        stop = quickstart(binaries, "--stop", prefix)
    assert stop.returncode == 0 and prefix in stop.stdout
    assert not [name for name in namespaces() if name.startswith(prefix)]


def test_quickstart_says_when_there_is_nothing_to_stop(binaries):
    done = quickstart(binaries, "--stop", "slq-none")

    assert done.returncode == 1 and "nothing runs under slq-none" in done.stderr


def test_quickstart_refuses_a_mode_as_a_way_to_its_interfaces(binaries):
    for kind in ("nftables", "iptables"):
        done = quickstart(binaries, "--port", kind)

        assert done.returncode == 2 and done.stderr.startswith("conf/quickstart [--mode ")


def test_quickstart_fails_when_sluiced_cannot_start(tmp_path):
    broken = tmp_path / "sluiced"
    broken.write_text("#!/bin/sh\necho 'sluiced: broken on purpose' >&2\nexit 3\n")
    broken.chmod(0o755)
    before = namespaces()

    done = quickstart(tmp_path)

    assert done.returncode == 1
    assert "broken on purpose" in done.stderr
    assert namespaces() - before == set()
