"""Kubernetes objects for the tests, as the API prints them (JSON is YAML too)."""

import json


def service(name, vip=None, ports=(("http", "TCP", 80, 8080),), annotations=None, **spec):
    """vip: host part of the addresses of the lab's front network. A LoadBalancer with that VIP in
    both families, or a ClusterIP without one."""
    number = spec.pop("number", vip or 200)
    spec = {
        "type": "LoadBalancer" if vip else "ClusterIP",
        "ipFamilyPolicy": "RequireDualStack",
        "ipFamilies": ["IPv4", "IPv6"],
        "clusterIP": f"10.96.0.{number}",
        "clusterIPs": [f"10.96.0.{number}", f"fd00:96::{number}"],
        "ports": [{"name": port, "protocol": protocol, "port": number_, "targetPort": target}
                  for port, protocol, number_, target in ports],
        **spec,
    }
    ingress = [{"ip": f"192.0.2.{vip}"}, {"ip": f"2001:db8:1::{vip}"}] if vip else []
    return {"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "test", "annotations": annotations or {}},
            "spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}


def nat(name, vip=None, scheduler=None, **more):
    """A Service whose external traffic keeps the client's address."""
    annotations = {"sluice.dev/forwarding-mode": "nat"}
    if scheduler:
        annotations["sluice.dev/scheduler"] = scheduler
    return service(name, vip, annotations=annotations, **more)


def slices(name, ports=(("http", "TCP", 80, 8080),), backends=(11, 12, 13)):
    """One EndpointSlice per family for the lab's backends with these host parts."""
    result = []
    for family, prefix in (("IPv4", "10.100.0."), ("IPv6", "fd00:100::")):
        result.append({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": f"{name}-{family.lower()}", "namespace": "test",
                         "labels": {"kubernetes.io/service-name": name}},
            "addressType": family,
            "ports": [{"name": port, "protocol": protocol, "port": target}
                      for port, protocol, _, target in ports],
            "endpoints": [{"addresses": [f"{prefix}{number}"],
                           "conditions": {"ready": True, "serving": True, "terminating": False}}
                          for number in backends]})
    return result


def as_list(*objects):
    """A kubectl List of objects and lists of objects."""
    items = []
    for entry in objects:
        items.extend(entry if isinstance(entry, list) else [entry])
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


WEB, UDP_PORTS = 100, (("dns", "UDP", 53, 8053),)


def standard():
    """web: nat by rr; shop: by the rules, so fullnat; dns: UDP by nat; dns2: another VIP before the
    same single backend as dns1."""
    return as_list(
        nat("web", 100, scheduler="rr"), slices("web"),
        service("shop", 101), slices("shop"),
        nat("dns", 102, ports=UDP_PORTS), slices("dns", UDP_PORTS),
        nat("dns1", 103, ports=UDP_PORTS), slices("dns1", UDP_PORTS, backends=(11,)),
        nat("dns2", 104, ports=UDP_PORTS), slices("dns2", UDP_PORTS, backends=(11,)))
