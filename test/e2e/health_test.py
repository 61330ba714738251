"""/healthz, /livez and health-check node ports, asked by a client through the port (H-1..H-15)."""

import json

import lab
import objects
from lab import back, front, url

CHECK_PORT = 32100


def ask(net, port, path="/", family=4):
    """Status of an answer to a client; 0: nobody listens. The lab's node port addresses are those
    of the back network."""
    address = back if port == CHECK_PORT else front
    done = net.run("c1", "curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}",
                   url(address(lab.GW, family), port, path), check=False)
    return int(done.stdout)


def becomes(net, wanted, port, path="/", family=4):
    net.wait(lambda: ask(net, port, path, family) == wanted,
             f"port {port}{path}, IPv{family}: not {wanted}")


def node(**spec):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gw"}, "spec": spec}


def local_service(backends):
    """A Service of externalTrafficPolicy Local; backends run on this node."""
    slices = objects.slices("edge", backends=backends)
    for one in slices:
        for endpoint in one["endpoints"]:
            endpoint["nodeName"] = "gw"
    return [objects.nat("edge", 120, externalTrafficPolicy="Local",
                        healthCheckNodePort=CHECK_PORT), *slices]


def test_healthz_follows_the_node_object_and_livez_does_not(net):
    net.start_sluiced(2)
    assert ask(net, 10256, "/livez") == 200
    assert ask(net, 10256, "/healthz") == 503  # nobody has said what this node is

    net.apply(objects.as_list(json.loads(objects.standard())["items"], node()))
    assert net.ctl_json("status")
    becomes(net, 200, 10256, "/healthz")

    net.apply(objects.as_list(node(taints=[
        {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}])))
    becomes(net, 503, 10256, "/healthz")
    assert ask(net, 10256, "/livez") == 200
    assert ask(net, 10256, "/metrics") == 404


def test_the_health_check_node_port_counts_local_endpoints(net):
    net.start_sluiced(2)
    net.apply(objects.as_list(local_service((11, 12))))
    for family in (4, 6):
        becomes(net, 200, CHECK_PORT, family=family)

    net.apply(objects.as_list(local_service(())))
    for family in (4, 6):
        becomes(net, 503, CHECK_PORT, family=family)

    net.ctl("delete", "service", "test/edge")
    becomes(net, 0, CHECK_PORT)


def test_healthz_moves_to_the_configured_address_and_a_busy_one_ends_the_start(net):
    net.start_sluiced(1, extra="healthz: {address: '127.0.0.1:18080'}\n")
    assert net.run("gw", "curl", "-s", "-m", "5", "http://127.0.0.1:18080/livez").stdout
    assert ask(net, 10256, "/livez") == 0

    path = net.dir / "second.yaml"
    config = net.config(1, "healthz: {address: '127.0.0.1:18080', bind-hard-fail: true}\n")
    path.write_text(config)
    assert net.stop_sluiced()[0] == 0
    busy = net.popen("gw", lab.PYTHON, "-m", "http.server", "18080", "--bind", "127.0.0.1")
    net.wait(lambda: net.run("gw", "curl", "-s", "-o", "/dev/null", "http://127.0.0.1:18080/",
                             check=False).returncode == 0, "no blocker")
    done = net.run("gw", net.binaries / "sluiced", "--config", path, check=False)
    lab.kill(busy)
    assert done.returncode == 1
    assert "healthz.address: cannot listen on 127.0.0.1:18080" in done.stderr
    assert "slc-" not in net.ip("gw", "link")
