"""kube-proxy as the device under test, where KUBE_PROXY names its binary.

It takes Services from an API server and from nothing else: kube_api.py, a process of its own in the
namespace of the device.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from . import cluster, dut, syncing

NODE = "bench"
SECONDS = 120  # in which all rules must be there
# What shows the address of the last Service when its rules are there; IPVS needs it on a device.
SHOW = {"nftables": ("nft", "list", "map", "{family}", "kube-proxy", "service-ips"),
        "iptables": ("{iptables}-save", "-t", "nat"), "ipvs": ("ip", "address")}


def found():
    """The binary, or None."""
    return shutil.which(os.environ.get("KUBE_PROXY", "kube-proxy"))


def missing(mode):
    """Why there is no such row, or None. mode: as in its configuration, or iptables-VARIANT."""
    if not found():
        return "kube-proxy is not found (KUBE_PROXY names its binary)"
    if mode == "ipvs" and not pathlib.Path("/proc/net/ip_vs").exists():
        return "this kernel has no IPVS, or its module is not loaded"
    variant = mode.partition("-")[2]
    if variant and not shutil.which(f"xtables-{variant}-multi"):
        return f"iptables has no variant {variant} here"
    return None


def write_cluster(path, point):
    """The cluster file of a row, with the node it runs on. In mode nat the client's address stays:
    that takes traffic policy Local, and endpoints of this node."""
    p = point
    cluster.write(path, p["services"], p["backends"], p["family"], p["proto"], "", "")
    objects = json.loads(path.read_text())
    local = point["mode"] == "nat"
    for each in objects["items"]:
        if each["kind"] == "Service" and local:
            each["spec"]["externalTrafficPolicy"] = "Local"
        for endpoint in each.get("endpoints", []) if local else []:
            endpoint["nodeName"] = NODE
    objects["items"].append({
        "kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE}, "spec": {},
        "status": {"addresses": [{"type": "InternalIP",
                                  "address": dut.LINK[point["family"]][0].split("/")[0]}]}})
    path.write_text(json.dumps(objects))


def api_command(objects):
    """What serves a file of objects; it prints its port."""
    return ["env", f"PYTHONPATH={dut.ROOT}/bench", sys.executable, "-m", "harness.kube_api",
            str(objects)]


def command(folder, port, mode, variant, node, **more):
    """The command of a kube-proxy on `node`, by an API server on that port of loopback. folder: for
    its files; variant: of iptables, None: the host's; more: of its configuration."""
    access, config = folder / "kubeconfig", folder / "kube-proxy.yaml"
    access.write_text(json.dumps(_access(port)))
    at_once = {"minSyncPeriod": "1ms"}  # 0 is a second; ours is told 0
    config.write_text(json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": mode, "hostnameOverride": node, "nftables": at_once, "iptables": at_once,
        "ipvs": at_once,
        "clientConnection": {"kubeconfig": str(access), "contentType": "application/json",
                             "acceptContentTypes": "application/json"},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpBeLiberal": True}, **more}))
    return ["env", f"PATH={_programs(folder, variant)}", f"XTABLES_LOCKFILE={folder}/lock", found(),
            "--config", str(config)]


def _programs(folder, variant):
    """A PATH by which `iptables` is of the variant wanted."""
    if not variant:
        return os.environ["PATH"]
    programs = folder / "programs"
    programs.mkdir()
    for name in (f"ip{six}tables{what}" for six in ("", "6") for what in ("", "-save", "-restore")):
        (programs / name).symlink_to(shutil.which(f"xtables-{variant}-multi"))
    return f"{programs}:{os.environ['PATH']}"


class KubeProxy(dut.Kernel):
    """kube-proxy's rules in the place of ours."""

    def __init__(self, link, folder, core, point, binaries, mode):
        mode, _, variant = mode.partition("-")
        super().__init__(link, folder, core, point, binaries, mode, variant or None)
        self.name = " ".join(["kube-proxy", mode, *([variant] if variant else [])])
        self.api = None

    def start(self):
        objects = self.folder / "cluster.json"
        write_cluster(objects, self.point)
        self.api = subprocess.Popen(self.space.command(*api_command(objects)), text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port = self.api.stdout.readline().strip()
        self.spawn(command(self.folder, port, self.mode, self.variant, NODE))

    def _has_synced(self):
        with contextlib.suppress(subprocess.CalledProcessError):  # it does not serve yet
            return syncing.of(self).all.count > 0
        return False

    def ready(self):
        dut.wait_for("kube-proxy has not synced", self._has_synced, SECONDS, self.process, self.log,
                     every=0.5)
        family = self.point["family"]
        own = {"family": "ip" if family == 4 else "ip6", "iptables":
               f"ip{'' if family == 4 else '6'}tables{'-' + self.variant if self.variant else ''}"}
        show = [word.format(**own) for word in SHOW[self.mode]]
        last = cluster.numbered(cluster.VIPS, self.point["services"], family)
        if last not in self.space.run(*show).stdout:
            raise dut.DutError(f"kube-proxy wrote no rule for {last}\n" +
                               self.log.read_text()[-1500:])

    def change(self, slices):
        """Puts EndpointSlices in the place of those of their names."""
        for each in slices:
            for endpoint in each["endpoints"] if self.point["mode"] == "nat" else []:
                endpoint["nodeName"] = NODE
            self.api.stdin.write(json.dumps(each) + "\n")
        self.api.stdin.flush()

    def __exit__(self, *exception):
        if self.api:
            self.api.kill()
            self.api.wait()
        return super().__exit__(*exception)


def _access(port):
    return {"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}]}
