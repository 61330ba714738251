"""As much of an API server as kube-proxy asks for: lists, and watches that tell each change.

A client gets the objects by a list and a watch, or by one watch that begins with all of them
(sendInitialEvents); either way it then hears of changes. Those come as lines on standard input: an
object that takes the place of the one of its kind and name, or is new. Nothing is ever deleted.

    python3 -m harness.kube_api CLUSTER.json      prints its port
"""

import http.server
import json
import pathlib
import sys
import threading
import urllib.parse

# path: (kind of the list, of its items)
RESOURCES = {"/api/v1/services": ("ServiceList", "v1", "Service"),
             "/api/v1/nodes": ("NodeList", "v1", "Node"),
             "/apis/discovery.k8s.io/v1/endpointslices":
                 ("EndpointSliceList", "discovery.k8s.io/v1", "EndpointSlice"),
             "/apis/networking.k8s.io/v1/servicecidrs":
                 ("ServiceCIDRList", "networking.k8s.io/v1", "ServiceCIDR")}
FIRST = 1  # version of the objects at the start; change number n has FIRST + n
INITIAL_END = {"k8s.io/initial-events-end": "true"}


class Objects:
    """What there is, and what has changed. Threads: any."""

    def __init__(self, objects):
        self._changed = threading.Condition()
        self._objects = {}
        self._events = []  # (kind, what, object): each one version later
        for each in objects:
            self._put(each)

    @staticmethod
    def _name(each):
        meta = each["metadata"]
        return each["kind"], meta.get("namespace", ""), meta["name"]

    def _put(self, each):
        name = self._name(each)
        old = self._objects.get(name)
        each["metadata"].update(
            resourceVersion=str(FIRST + len(self._events)),
            uid=old["metadata"]["uid"] if old else f"u{len(self._objects)}")
        self._objects[name] = each
        return "MODIFIED" if old else "ADDED"

    def put(self, each):
        with self._changed:
            self._events.append(None)  # so that it has the version behind the last
            what = self._put(each)
            self._events[-1] = (each["kind"], what, each)
            self._changed.notify_all()

    def of(self, kind):
        """(objects of that kind, version)"""
        with self._changed:
            return ([o for o in self._objects.values() if o["kind"] == kind],
                    str(FIRST + len(self._events)))

    def node(self, name):
        with self._changed:
            return self._objects.get(("Node", "", name))

    def after(self, version, kind):
        """(what, object) of each change behind that version, as they happen."""
        at = max(0, int(version) - FIRST)  # "0": whatever there is
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._events) > at)
                new = self._events[at:]
            at += len(new)
            yield from ((what, each) for of, what, each in new if of == kind)


def answer(objects, target):
    """Of GET target: (status, body as an object, or None and events as (type, object))."""
    url = urllib.parse.urlsplit(target)
    asked = {name: values[-1] for name, values in urllib.parse.parse_qs(url.query).items()}
    if url.path not in RESOURCES:
        node = url.path.startswith("/api/v1/nodes/") and objects.node(url.path.rsplit("/", 1)[-1])
        return (200, node, None) if node else (404, _status(404, "NotFound"), None)
    list_kind, api, kind = RESOURCES[url.path]
    if asked.get("watch", "false") not in ("true", "1"):
        items, version = objects.of(kind)
        return 200, {"kind": list_kind, "apiVersion": api, "metadata": {"resourceVersion": version},
                     "items": items}, None
    if asked.get("sendInitialEvents") == "true":
        return 200, None, _all_and_changes(objects, api, kind)
    version = asked.get("resourceVersion") or objects.of(kind)[1]
    return 200, None, objects.after(version, kind)


def _all_and_changes(objects, api, kind):
    items, version = objects.of(kind)
    for each in items:
        yield "ADDED", each
    yield "BOOKMARK", {"kind": kind, "apiVersion": api, "metadata": {
        "resourceVersion": version, "annotations": INITIAL_END}}
    yield from objects.after(version, kind)


def _status(code, reason):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": reason}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status, body, events = answer(self.server.objects, self.path)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if events is not None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._stream(events)
            return
        text = json.dumps(body).encode()
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream(self, events):
        """Until the client has gone: a watch of ours has no end."""
        try:
            for what, each in events:
                text = json.dumps({"type": what, "object": each}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        except OSError:
            self.close_connection = True

    def do_POST(self):  # events: nobody reads them
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def server_of(objects):
    """A server on a free port of loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.objects = objects
    return server


def main():
    objects = Objects(json.loads(pathlib.Path(sys.argv[1]).read_text())["items"])
    with server_of(objects) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        for line in sys.stdin:  # until who started us ends
            objects.put(json.loads(line))


if __name__ == "__main__":
    main()
