"""Bad input to the real programs: one clear line, a non-zero exit, and nothing changed."""

import json
import shutil
import socket
import subprocess

import pytest

import lab
import objects
from lab import front

PORT = "  - {name: front, device: 'af_xdp:front'}\n"


def host_state(net):
    """What a refused start must leave alone in the gateway."""
    return [net.ip("gw", "-br", "link"), net.ip("gw", "-br", "address"), net.ip("gw", "rule"),
            net.ip("gw", "route"), net.run("gw", "nft", "list", "ruleset").stdout,
            net.run("gw", "sysctl", "net.ipv4.ip_local_reserved_ports").stdout]


def refused(net, config, *wrap, binary=None):
    """Runs sluiced with this configuration; it must refuse. @return its one line."""
    path = net.dir / "bad.yaml"
    path.write_text(config)
    path.chmod(0o644)
    before = host_state(net)
    done = net.run("gw", *wrap, binary or net.binaries / "sluiced", "--config", path, check=False,
                   timeout=30)
    assert done.returncode > 0, "sluiced did not refuse"
    lines = (done.stdout + done.stderr).strip().splitlines()
    assert len(lines) == 1, "\n".join(lines)
    assert host_state(net) == before
    return lines[0]


def config(net, ports=PORT, workers="{count: 1}", extra=""):
    return (f"ports:\n{ports}workers: {workers}\nmemory: {{hugepages: off}}\n"
            f"listen: unix:{net.dir}/bad.sock\nstate-dir: ''\n{extra}")


@pytest.fixture
def gateway(binaries):
    """Namespaces only: nothing is served."""
    with lab.Lab(binaries=binaries) as made:
        made.build()
        yield made


@pytest.mark.parametrize("text,expected", [
    ("ports: [\n", "bad.yaml:"),
    ("mode: dpdk\nworkers: 2\n", "bad.yaml:2: workers: "),
    ("mode: dpdk\nnode: {node-port-addresses: 127.0.0.0/8}\n",
     "bad.yaml:2: node.node-port-addresses: a list"),
    ("mode: dpdk\n\tworkers: 2\n", "bad.yaml:2: tab"),
    ("mode: ipvs\n", "bad.yaml:1: mode: "),
    ("", "bad.yaml:1: empty file"),
])
def test_invalid_yaml_is_named_with_file_and_line(gateway, text, expected):
    assert expected in refused(gateway, text)


def test_a_configuration_file_that_is_not_there_is_named(gateway):
    done = gateway.run("gw", gateway.binaries / "sluiced", "--config", "/nonexistent/s.yaml",
                       check=False)

    assert done.returncode > 0
    assert "/nonexistent/s.yaml" in done.stderr and len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("device", ["0000:7f:1f.7", "net_nosuchdriver0", "af_xdp:nosuch0",
                                    "af_packet:nosuch0"])
def test_an_unknown_device_is_named(gateway, device):
    line = refused(gateway, config(gateway, f"  - {{name: front, device: '{device}'}}\n"))

    assert device.split(":", 1)[-1] in line


@pytest.mark.parametrize("kind", ["af_xdp", "af_packet"])
def test_a_shared_interface_that_holds_an_address_is_refused(gateway, kind):
    gateway.ip("gw", "address", "add", "192.0.2.77/24", "dev", "front")

    line = refused(gateway, config(gateway, f"  - {{name: front, device: '{kind}:front'}}\n"))

    assert "front" in line and "192.0.2.77" in line


def test_more_workers_than_cores_are_refused(gateway):
    # With addresses of its own, the source-port pool is no limit for so many.
    line = refused(gateway, config(gateway, workers="{count: 120}",
                                   extra="snat: {addresses: [10.100.0.1]}\n"))

    assert "core" in line


def test_a_core_that_is_not_there_is_named(gateway):
    assert "999" in refused(gateway, config(gateway, workers="{cores: [0, 999]}"))


def test_more_workers_than_queues_are_refused(binaries):
    with lab.Lab(binaries=binaries, queues=1) as one_queue:
        one_queue.build()

        line = refused(one_queue, config(one_queue, workers="{count: 2}"))

    assert "queue" in line and "front" in line


def test_too_little_memory_is_an_error_that_names_the_number(gateway):
    line = refused(gateway, config(gateway, extra="tables: {connections: 16777216}\n")
                   .replace("hugepages: off", "hugepages: off, mib: 128"))

    assert "MiB" in line and "128" in line


def test_a_unix_socket_that_another_daemon_serves_is_left_alone(net):
    net.start_sluiced(1)
    net.apply(objects.standard())

    line = refused(net, config(net).replace("bad.sock", "sluiced.sock"))

    assert "sluiced.sock" in line
    assert net.traffic("c1", "http", front(100), 80, "--count", 20)["ok"] == 20
    assert net.ctl("status").returncode == 0


def test_a_tcp_address_that_another_daemon_serves_is_refused(gateway):
    holder = ("import socket, time; s = socket.create_server(('127.0.0.1', 7443)); "
              "print('ready', flush=True); time.sleep(60)")
    other = gateway.popen("gw", lab.PYTHON, "-c", holder, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "ready\n"

    line = refused(gateway, config(gateway).replace(f"unix:{gateway.dir}/bad.sock",
                                                    "127.0.0.1:7443"))

    assert "127.0.0.1:7443" in line


def test_iptables_without_its_programs_is_refused_by_name(gateway):
    line = refused(gateway, "mode: iptables\nconntrack: {max-per-core: 0}\n"
                            f"listen: unix:{gateway.dir}/bad.sock\nstate-dir: ''\n",
                   "env", "PATH=/nowhere")
    assert "iptables" in line and "No such file" in line


def test_without_privilege_the_reason_is_said(gateway):
    shutil.copy(gateway.binaries / "sluiced", gateway.dir / "sluiced")

    line = refused(gateway, config(gateway), "setpriv", "--reuid=65534", "--regid=65534",
                   "--clear-groups", "--no-new-privs", binary=gateway.dir / "sluiced")

    assert "privilege" in line or "root" in line or "permitted" in line


# ---- objects

def broken(change):
    """The standard objects after `change`."""
    text = json.loads(objects.standard())
    change(text["items"])
    return json.dumps(text)


def bad_port(items):
    items[0]["spec"]["ports"][0]["port"] = 70000


def bad_endpoint(items):
    items[1]["endpoints"][1]["addresses"] = ["10.100.0.256"]


def bad_type(items):
    items[0]["spec"]["ports"] = "80"


def bad_annotation(items):
    items[0]["metadata"]["annotations"]["sluice.dev/schedular"] = "rr"


@pytest.mark.parametrize("change,path", [
    (bad_port, "spec.ports[0].port"),
    (bad_endpoint, "endpoints[1].addresses[0]"),
    (bad_type, "spec.ports"),
    (bad_annotation, "sluice.dev/schedular"),
])
@pytest.mark.parametrize("verb", ["apply", "replace"])
def test_a_bad_object_is_named_with_its_field_and_changes_nothing(net, change, path, verb):
    net.start_sluiced(1)
    net.apply(objects.standard())
    before = net.ctl_json("services")["services"]
    bad = net.dir / "bad.json"
    bad.write_text(broken(change))

    done = net.ctl(verb, "-f", bad, check=False)

    assert done.returncode > 0
    assert path in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    after = net.ctl_json("services")["services"]
    assert [row["name"] for row in after] == [row["name"] for row in before]
    assert net.traffic("c1", "http", front(100), 80, "--count", 20)["ok"] == 20


def test_sluicectl_says_when_no_daemon_is_there(gateway):
    done = gateway.ctl("status", check=False)

    assert done.returncode > 0
    assert str(gateway.socket) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_sluicectl_says_when_a_stale_socket_is_there(gateway):
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(gateway.socket))
    stale.close()

    done = gateway.ctl("status", check=False)

    assert done.returncode > 0
    assert len(done.stderr.strip().splitlines()) == 1
