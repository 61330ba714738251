"""Real TCP connections: wrk against nginx in namespaces, through sluiced, through the kernel with our
rules, and without any balancer. Everything shares the CPUs of this machine, so only ratios count."""

import json
import re
import subprocess
import sys

from . import dut

sys.path.insert(0, str(dut.ROOT / "conf"))
import lab  # noqa: E402

VIP = 100


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


def _wrk(net, url, seconds, connections, close):
    """Requests a second, p99 in ms, and what failed."""
    header = ["-H", "Connection: close"] if close else []
    text = net.run("c1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *header,
                   url, timeout=seconds + 30).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    errors = re.search(r"Socket errors: .*|Non-2xx.*", text)
    scale = {"us": 0.001, "ms": 1, "s": 1000}
    return {"requests_per_second": float(rate.group(1)) if rate else 0,
            "p99_ms": float(p99.group(1)) * scale[p99.group(2)] if p99 else None,
            "errors": errors.group(0) if errors else ""}


def _through(kind, binaries, seconds):
    """kind: af_xdp, nftables, iptables, or direct (the gateway routes, no balancer)."""
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


def run(binaries, seconds, say):
    """{kind: {"kept_alive": {...}, "connection_each": {...}}}, or {kind: {"failed": text}}."""
    results = {}
    for kind in ("direct", "af_xdp", "nftables"):
        try:
            results[kind] = _through(kind, binaries, seconds)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            results[kind] = {"failed": str(error)}
            say(f"wrk {kind:<10} FAILED: {error}")
            continue
        say(f"wrk {kind:<10} " + "; ".join(
            f"{name} {r['requests_per_second']:.0f}/s" + (f" p99 {r['p99_ms']:.1f} ms"
                                                          if r["p99_ms"] else "")
            + (f" ({r['errors']})" if r["errors"] else "")
            for name, r in results[kind].items()))
    return results
