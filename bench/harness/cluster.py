"""Kubernetes objects of a bench: Services by number, endpoints by number, as the generator expects.

Clients are 11.0.0.0/8, load-balancer addresses 12/8, endpoints 13/8, cluster IPs 14/8; in IPv6
fd0b::, fd0c:: and so on (bench/traffic.h, numbered()).
"""

import ipaddress
import json

CLIENTS, VIPS, BACKENDS, CLUSTER_IPS, SNAT = 11, 12, 13, 14, 16
PORT, TARGET = 80, 8080
SLICE = 1000  # endpoints of one EndpointSlice


def numbered(block, n, family=4):
    """Address number n of a block."""
    if family == 4:
        return str(ipaddress.IPv4Address((block << 24) + n))
    return str(ipaddress.IPv6Address(bytes([0xfd, block] + [0] * 6 + [block] + [0] * 3)
                                     + n.to_bytes(4, "big")))


def prefix(block, family=4):
    return f"{block}.0.0.0/8" if family == 4 else f"fd{block:02x}::/16"


def service(number, family, proto, mode, scheduler):
    vip = numbered(VIPS, 1 + number, family)
    # Tunnels and direct return do not change the port.
    target = PORT if mode in ("dr", "ipip") else TARGET
    cluster_ip = numbered(CLUSTER_IPS, 1 + number, family)
    annotations = {"sluice.dev/scheduler": scheduler} if scheduler else {}
    if mode and mode != "fullnat":
        # Without it external traffic is masqueraded: fullnat.
        annotations["sluice.dev/forwarding-mode"] = mode
    return {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": f"s{number}", "namespace": "bench", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ipFamilyPolicy": "SingleStack",
                 "ipFamilies": [f"IPv{family}"], "clusterIP": cluster_ip,
                 "clusterIPs": [cluster_ip], "allocateLoadBalancerNodePorts": False,
                 "ports": [{"name": "p", "protocol": proto.upper(), "port": PORT,
                            "targetPort": target}]},
        "status": {"loadBalancer": {"ingress": [{"ip": vip}]}}}


def endpoint_slices(number, endpoints, family, proto, mode):
    """The slices of Service `number`; endpoint e has the address number*endpoints + e + 1."""
    base = number * endpoints
    target = PORT if mode in ("dr", "ipip") else TARGET
    for part in range(0, endpoints, SLICE):
        yield {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": f"s{number}-{part}", "namespace": "bench",
                         "labels": {"kubernetes.io/service-name": f"s{number}"}},
            "addressType": f"IPv{family}",
            "ports": [{"name": "p", "protocol": proto.upper(), "port": target}],
            "endpoints": [{"addresses": [numbered(BACKENDS, 1 + base + e, family)],
                           "conditions": {"ready": True, "serving": True, "terminating": False}}
                          for e in range(part, min(part + SLICE, endpoints))]}


def write(path, services, endpoints, family=4, proto="tcp", mode="nat", scheduler="mh"):
    """Writes the whole cluster as a kubectl List."""
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"apiVersion":"v1","kind":"List","items":[\n')
        separator = ""
        for number in range(services):
            for item in [service(number, family, proto, mode, scheduler),
                         *endpoint_slices(number, endpoints, family, proto, mode)]:
                out.write(separator + json.dumps(item, separators=(",", ":")))
                separator = ",\n"
        out.write("\n]}\n")
