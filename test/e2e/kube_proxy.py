"""A real kube-proxy in the lab's gateway, where KUBE_PROXY names its binary: the bench's hook."""

import json
import os
import signal
import subprocess
import sys

import lab

sys.path.insert(0, str(lab.ROOT / "bench"))
from harness import kube_proxy  # noqa: E402

# (mode, variant of iptables, how it ends)
KINDS = [(mode, variant, end)
         for mode, variant, end in (("nftables", "", "SIGTERM"), ("iptables", "legacy", "SIGKILL"),
                                    ("iptables", "nft", "SIGTERM"))
         if not kube_proxy.missing("-".join(filter(None, (mode, variant))))]
NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "gw"}, "spec": {},
        "status": {"addresses": [{"type": "InternalIP", "address": address}
                                 for address in (lab.NODE4, lab.NODE6)]}}


def serve_and_end(net, kind, text, meanwhile):
    """It brings the objects of a kubectl List into force and, behind meanwhile(), ends; its rules
    stay."""
    mode, variant, end = kind
    objects = json.loads(text)
    path = net.dir / "kube-proxy.json"
    path.write_text(json.dumps({"items": [*objects["items"], NODE]}))
    api = subprocess.Popen(["ip", "netns", "exec", net.ns("gw"), *kube_proxy.api_command(path)],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with api, open(net.dir / "kube-proxy.log", "ab") as log:
        running = net.popen("gw", *kube_proxy.command(
            net.dir, api.stdout.readline().strip(), mode, variant, "gw"), stdout=log, stderr=log)
        net.wait(lambda: _has_synced(net), "kube-proxy has not synced", 60)
        result = meanwhile()
        os.kill(running.pid, getattr(signal, end))
        running.wait()
        api.kill()
    return result


def _has_synced(net):
    page = net.run("gw", "curl", "-sf", "http://127.0.0.1:10249/metrics", check=False).stdout
    name = "kubeproxy_sync_full_proxy_rules_duration_seconds_count"
    return all(f'{name}{{ip_family="IPv{family}"}}' in page for family in (4, 6))
