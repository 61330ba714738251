"""Real TCP connections: wrk against nginx in namespaces, through sluiced, through the kernel with
our rules, and without any balancer. Everything shares the CPUs of this machine: only ratios count.
"""

import json
import re
import subprocess
import sys

from . import dut

sys.path.insert(0, str(dut.ROOT / "conf"))
import lab  # noqa: E402

VIP = 100
# direct: the gateway routes, no balancer
KINDS = {"quick": ("direct", "af_xdp", "nftables"),
         "full": ("direct", "af_xdp", "af_packet", "nftables", "iptables")}
SECONDS = {"quick": 2, "full": 10}


def _objects(lb):
    """One Service of the lab's three nginx, nat, rr."""
    service = {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "bench", "annotations": {
            "sluice.dev/forwarding-mode": "nat"}},
        "spec": {"type": "LoadBalancer", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
                 "clusterIP": "10.96.0.100", "clusterIPs": ["10.96.0.100"],
                 "allocateLoadBalancerNodePorts": False,
                 "ports": [{"name": "http", "protocol": "TCP", "port": 80,
                            "targetPort": lb.HTTP_PORT}]},
        "status": {"loadBalancer": {"ingress": [{"ip": lb.front(VIP)}]}}}
    slices = {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "namespace": "bench",
                     "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": lb.HTTP_PORT}],
        "endpoints": [{"addresses": [lb.back(number)],
                       "conditions": {"ready": True, "serving": True, "terminating": False}}
                      for number in lb.BACKENDS.values()]}
    return {"apiVersion": "v1", "kind": "List", "items": [service, slices]}


def errors_of(text):
    """{what went wrong: how often}, from the report of wrk."""
    socket = re.search(r"Socket errors: (.*)", text)
    found = {word: int(count) for word, count in
             re.findall(r"(\w+) (\d+)", socket.group(1) if socket else "")}
    status = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    found["status"] = int(status.group(1)) if status else 0
    return {word: count for word, count in found.items() if count}


def _wrk(net, url, seconds, connections, close):
    """Requests a second, p99 in ms, and what failed."""
    header = ["-H", "Connection: close"] if close else []
    text = net.run("c1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *header,
                   url, timeout=seconds + 30).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    scale = {"us": 0.001, "ms": 1, "s": 1000}
    return {"requests_per_second": float(rate.group(1)) if rate else 0,
            "p99_ms": float(p99.group(1)) * scale[p99.group(2)] if p99 else None,
            "errors": errors_of(text)}


def _through(kind, binaries, seconds):
    with lab.Lab(binaries=binaries,
                 port_kind="nftables" if kind == "direct" else kind) as net:
        net.build(plain=kind == "direct")
        net.start_backends()
        url = lab.url(lab.back(lab.BACKENDS["b1"]), lab.HTTP_PORT, "/ready")
        if kind != "direct":
            net.start_sluiced(workers=1)
            path = net.dir / "objects.json"
            path.write_text(json.dumps(_objects(lab)))
            net.ctl("replace", "-f", path)
            url = lab.url(lab.front(VIP), 80, "/ready")
            net.wait(lambda: net.run("c1", "curl", "-sf", "-m", "1", url,
                                     check=False).returncode == 0, f"no answer by {kind}")
        return {"kept_alive": _wrk(net, url, seconds, 32, False),
                "connection_each": _wrk(net, url, seconds, 32, True)}


def _text(name, figure):
    text = f"{name} {figure['requests_per_second']:.0f}/s"
    text += f" p99 {figure['p99_ms']:.1f} ms" if figure["p99_ms"] else ""
    return text + "".join(f", {word} errors {count}" for word, count in figure["errors"].items())


def run(binaries, kind_of_run, say):
    """{kind: {"kept_alive": {...}, "connection_each": {...}}}, or {kind: {"failed": text}}."""
    results = {}
    for kind in KINDS[kind_of_run]:
        try:
            results[kind] = _through(kind, binaries, SECONDS[kind_of_run])
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            results[kind] = {"failed": str(error)}
            say(f"wrk {kind:<10} FAILED: {error}")
            continue
        say(f"wrk {kind:<10} " + "; ".join(_text(*figure) for figure in results[kind].items()))
    return results
