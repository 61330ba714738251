"""kube-proxy as the device under test, where KUBE_PROXY names its binary.

It takes Services from an API server and from nothing else. So there is one here that knows no more
than it asks for: lists of what the row has, and watches in which nothing happens. It runs as a
process of its own in the namespace of the device:

    python3 -m harness.kube_proxy CLUSTER.json      prints its port
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.parse

from . import cluster, dut

NODE = "bench"
# path: (kind of the list, of its items)
RESOURCES = {"/api/v1/services": ("ServiceList", "v1", "Service"),
             "/api/v1/nodes": ("NodeList", "v1", "Node"),
             "/apis/discovery.k8s.io/v1/endpointslices":
                 ("EndpointSliceList", "discovery.k8s.io/v1", "EndpointSlice"),
             "/apis/networking.k8s.io/v1/servicecidrs":
                 ("ServiceCIDRList", "networking.k8s.io/v1", "ServiceCIDR")}
VERSION = "1"  # of every resource: none ever changes
SECONDS = 120  # in which all rules must be there
# What shows the address of the last Service when its rules are there; IPVS needs it on a device.
SHOW = {"nftables": ("nft", "list", "ruleset"), "iptables": ("iptables-save",),
        "ipvs": ("ip", "address")}


def found():
    """The binary, or None."""
    return shutil.which(os.environ.get("KUBE_PROXY", "kube-proxy"))


def missing(mode):
    """Why there is no such row, or None."""
    if not found():
        return "kube-proxy is not found (KUBE_PROXY names its binary)"
    if mode == "ipvs" and not pathlib.Path("/proc/net/ip_vs").exists():
        return "this kernel has no IPVS, or its module is not loaded"
    return None


def answer(objects, target):
    """(status, body as an object, whether it is a watch) of GET target."""
    url = urllib.parse.urlsplit(target)
    asked = urllib.parse.parse_qs(url.query)
    if url.path not in RESOURCES:
        name = url.path.rsplit("/", 1)[-1]
        node = [o for o in objects if o["kind"] == "Node" and o["metadata"]["name"] == name]
        if url.path.startswith("/api/v1/nodes/") and node:
            return 200, node[0], False
        return 404, _status(404, "NotFound"), False
    if asked.get("sendInitialEvents") == ["true"]:  # then the client lists
        return 422, _status(422, "Invalid"), False
    if asked.get("watch", ["false"])[0] in ("true", "1"):
        return 200, None, True
    kind, version, item = RESOURCES[url.path]
    return 200, {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": VERSION},
                 "items": [o for o in objects if o["kind"] == item]}, False


def _status(code, reason):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": reason}


def objects_of(path):
    """What a cluster file has and the node, each with a version and a UID."""
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE}, "spec": {},
            "status": {"addresses": [{"type": "InternalIP",
                                      "address": dut.LINK[4][0].split("/")[0]}]}}
    objects = json.loads(pathlib.Path(path).read_text())["items"] + [node]
    for number, each in enumerate(objects):
        each["metadata"].update(resourceVersion=VERSION, uid=f"u{number}")
    return objects


def server_of(objects):
    """A server on a free port of loopback."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            status, body, watch = answer(objects, self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if watch:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while True:  # until the client or we end
                    time.sleep(3600)
            text = json.dumps(body).encode()
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self):  # events: nobody reads them
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


class KubeProxy(dut.Kernel):
    """kube-proxy's rules in the place of ours."""

    def __init__(self, link, folder, core, point, binaries, mode):
        super().__init__(link, folder, core, point, binaries, mode)
        self.name = f"kube-proxy {mode}"
        self.api = None

    def start(self):
        p = self.point
        objects = self.folder / "cluster.json"
        cluster.write(objects, p["services"], p["backends"], p["family"], p["proto"], p["mode"], "")
        self.api = subprocess.Popen(
            self.space.command(sys.executable, "-m", "harness.kube_proxy", str(objects)),
            cwd=dut.ROOT / "bench", stdout=subprocess.PIPE, text=True)
        port = self.api.stdout.readline().strip()
        access = self.folder / "kubeconfig"
        access.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}]}))
        config = self.folder / "kube-proxy.yaml"
        config.write_text(json.dumps({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
            "mode": self.mode, "hostnameOverride": NODE,
            "clientConnection": {"kubeconfig": str(access), "contentType": "application/json"},
            "conntrack": {"maxPerCore": 0, "min": 0}}))
        self.spawn([found(), "--config", str(config)])

    def ready(self):
        last = cluster.numbered(cluster.VIPS, self.point["services"], self.point["family"])
        dut.wait_for("kube-proxy writes no rules", lambda: last in self.space.run(
            *SHOW[self.mode]).stdout, SECONDS, self.process, self.log)

    def __exit__(self, *exception):
        if self.api:
            self.api.kill()
            self.api.wait()
        return super().__exit__(*exception)


if __name__ == "__main__":
    with server_of(objects_of(sys.argv[1])) as serving:
        print(serving.server_address[1], flush=True)
        serving.serve_forever()
