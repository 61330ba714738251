"""A small network of namespaces in which sluiced is tried: the quickstart and test/e2e use it.

    c1 192.0.2.11 --+                                   +-- b1 10.100.0.11 (nginx)
                    +-- bridge -- gw (sluiced) -- bridge --+-- b2 10.100.0.12
    c2 192.0.2.12 --+      "front"          "back"      +-- b3 10.100.0.13

Every line is a veth pair; the bridges live in a namespace of their own, so nothing ever touches the
network of the host. Clients and backends have the gateway as default route. IPv6 addresses end in
the same number: 2001:db8:1::11, fd00:100::11. All names carry a prefix, so that several labs live
side by side. Processes die with the lab (parent-death signal), and close() removes everything.
"""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAFFIC = ROOT / "conf" / "traffic.py"
PYTHON = sys.executable or "/usr/bin/python3"

FRONT4, FRONT6 = "192.0.2.", "2001:db8:1::"
BACK4, BACK6 = "10.100.0.", "fd00:100::"
GW = "1"
CLIENTS = {"c1": "11", "c2": "12"}
BACKENDS = {"b1": "11", "b2": "12", "b3": "13"}
VIPS = range(100, 106)  # host parts of load-balancer addresses
NODE4, NODE6 = BACK4 + GW, BACK6 + GW
HTTP_PORT, UDP_PORT = 8080, 8053

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


class LabError(RuntimeError):
    """Something of the lab itself failed; the text is one line or a command's output."""


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def remove(prefix):
    """Ends what lives in the namespaces of `prefix`, removes them and the lab's files."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith(prefix + "-")]
    for sig in (signal.SIGTERM, signal.SIGKILL):
        pids = [int(pid) for name in names for pid in subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()]
        for pid in pids:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 3
        while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"sluice-{prefix}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    return names


def front(number, family=4):
    """Address with host part `number` on the clients' side."""
    return (FRONT4 if family == 4 else FRONT6) + str(number)


def back(number, family=4):
    """Address with host part `number` on the backends' side."""
    return (BACK4 if family == 4 else BACK6) + str(number)


def url(address, port, path="/"):
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}{path}"


def kill(process, sig=signal.SIGTERM, wait=5.0):
    """Ends a process and returns its exit status; SIGKILL after `wait` seconds."""
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


class Lab:
    """The namespaces, their nginx servers and one sluiced."""

    def __init__(self, binaries=None, port_kind="af_xdp", prefix=None, queues=2, keep=False,
                 far_queues=None):
        """
        binaries   folder of sluiced and sluicectl
        keep       the processes outlive this one; remove(prefix) ends them
        port_kind  af_xdp, af_packet or auto: how sluiced reaches its interfaces; nftables,
                   iptables: it does not, the gateway's kernel forwards
        queues     queue pairs of every veth
        far_queues transmit queues of the links towards the gateway; 1: all frames arrive at its
                   first queue
        """
        self.binaries = pathlib.Path(binaries or ROOT / "build" / "bin")
        self.port_kind = port_kind
        self.kernel = port_kind in ("nftables", "iptables")
        self.queues = queues
        self.far_queues = far_queues or queues
        self._preexec = None if keep else _die_with_parent
        self.prefix = prefix or f"sl{os.getpid()}{os.urandom(1).hex()}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"sluice-{self.prefix}-"))
        self.dir.chmod(0o755)
        self.socket = self.dir / "sluiced.sock"
        self.sluiced = None
        self.sluiced_log = self.dir / "sluiced.log"
        self._processes = []
        self._namespaces = []

    # ---- namespaces and links

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ns(self, name):
        return f"{self.prefix}-{name}"

    def ip(self, name, *args):
        """ip(8) inside the namespace `name`."""
        done = subprocess.run(["ip", "-n", self.ns(name), *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError(f"ip -n {name} {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def build(self, plain=False):
        """Makes namespaces and links. plain: the gateway routes by itself, without sluiced."""
        for name in ["link", "gw", *CLIENTS, *BACKENDS]:
            done = subprocess.run(["ip", "netns", "add", self.ns(name)],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise LabError(f"no network namespace can be made: {done.stderr.strip()}")
            self._namespaces.append(name)
            # Duplicate address detection would cost a second; nothing here can collide.
            self.sysctl(name, "net.ipv6.conf.all.accept_dad=0",
                        "net.ipv6.conf.default.accept_dad=0")
            self.ip(name, "link", "set", "lo", "up")
        for side in ("front", "back"):
            self.ip("link", "link", "add", f"br-{side}", "type", "bridge", "mcast_snooping", "0")
            self.ip("link", "link", "set", f"br-{side}", "up")
            self._cable("gw", side, side)
        for name, number in CLIENTS.items():
            self._host(name, "front", front(number), front(number, 6))
        for name, number in BACKENDS.items():
            self._host(name, "back", back(number), back(number, 6))
        self.sysctl("gw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        if plain or self.kernel:
            self._address("gw", "front", front(GW), front(GW, 6))
            self._address("gw", "back", back(GW), back(GW, 6))
        if self.kernel:
            # No worker answers ARP and ND for load-balancer addresses: they are routed to the node.
            for name in CLIENTS:
                for number in VIPS:
                    self.ip(name, "route", "add", f"{front(number)}/32", "via", front(GW))
                    self.ip(name, "-6", "route", "add", f"{front(number, 6)}/128", "via",
                            front(GW, 6))

    def _cable(self, name, device, side):
        """A veth pair from `device` in namespace `name` to the bridge of `side`."""
        queues = ["numrxqueues", str(self.queues), "numtxqueues"]
        far = f"{name}-{device}"
        far_queues = self.far_queues if name == "gw" else self.queues
        self.ip(name, "link", "add", device, *queues, str(self.queues), "type", "veth", "peer",
                "name", far, *queues, str(far_queues), "netns", self.ns("link"))
        if name == "gw" and self.port_kind != "af_xdp" and not self.kernel:
            # A wire carries frames of at most the MTU. A veth hands on what TCP segmentation
            # offload left joined, and a packet socket would get it cut. (With XDP the kernel
            # itself keeps such frames away.) Checksum offload stays on.
            self.ip("link", "link", "set", far, "gso_max_segs", "1")
        self.ip("link", "link", "set", far, "master", f"br-{side}", "up")
        self.ip(name, "link", "set", device, "up")

    def _address(self, name, device, v4, v6):
        self.ip(name, "address", "add", f"{v4}/24", "dev", device)
        self.ip(name, "address", "add", f"{v6}/64", "dev", device, "nodad")

    def _host(self, name, side, v4, v6):
        self._cable(name, "eth0", side)
        self._address(name, "eth0", v4, v6)
        gateway = front if side == "front" else back
        self.ip(name, "route", "add", "default", "via", gateway(GW))
        self.ip(name, "-6", "route", "add", "default", "via", gateway(GW, 6))

    def direct_link(self, name, number):
        """A second link of `name`, eth1, on the clients' side, past the gateway."""
        self._cable(name, "eth1", "front")
        self._address(name, "eth1", front(number), front(number, 6))

    def sysctl(self, name, *settings):
        self.run(name, "sysctl", "-qw", *settings)

    # ---- processes

    def popen(self, name, *command, stdout=None, stderr=None, **more):
        """Starts a command in a namespace; close() ends it."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.ns(name), *map(str, command)], stdin=subprocess.DEVNULL,
            stdout=stdout, stderr=stderr, preexec_fn=self._preexec, start_new_session=True, **more)
        self._processes.append(process)
        return process

    def run(self, name, *command, timeout=60, check=True):
        """Runs a command in a namespace to its end. check: a failure raises."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.ns(name), *map(str, command)], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout, preexec_fn=_die_with_parent)
        if check and done.returncode != 0:
            raise LabError(f"{name}: {' '.join(map(str, command))}: exit {done.returncode}\n"
                           f"{done.stdout}{done.stderr}".strip())
        return done

    def wait_for_exec(self, process, comm):
        """Waits until a process of popen() runs the program `comm`; its id."""
        path = pathlib.Path(f"/proc/{process.pid}/comm")
        self.wait(lambda: path.exists() and path.read_text().strip() == comm,
                  f"{comm} does not run")
        return process.pid

    def traffic(self, name, *args, timeout=120):
        """Runs traffic.py in a namespace; its JSON result as a dict."""
        return json.loads(self.run(name, PYTHON, TRAFFIC, *args, timeout=timeout).stdout)

    def start_traffic(self, name, *args):
        """Starts traffic.py with --until-signal; end it with stop_traffic()."""
        return self.popen(name, PYTHON, TRAFFIC, *args, "--until-signal", stdout=subprocess.PIPE,
                          text=True)

    @staticmethod
    def stop_traffic(process, timeout=30):
        """Lets a running load finish what it began; its result as a dict."""
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=timeout)
        return json.loads(out)

    # ---- backends

    def start_backends(self):
        """nginx in every backend: HTTP on 8080 (GET / says who answers, PUT /up/NAME stores),
        UDP on 8053 (any datagram is answered). Both families."""
        for name in BACKENDS:
            folder = self.dir / name
            for sub in ("www", "www/up", "tmp"):
                (folder / sub).mkdir(parents=True)
            (folder / "nginx.conf").write_text(_nginx_conf(name, folder))
            # One process, root: nothing to leave behind, and uploads land in a folder of ours.
            self.popen(name, "nginx", "-p", folder, "-c", folder / "nginx.conf", "-e",
                       folder / "error.log", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, number in BACKENDS.items():
            self.wait(lambda n=name, a=back(number): self.run(
                n, "curl", "-sf", "-m", "1", url(a, HTTP_PORT, "/ready"), check=False).returncode == 0,
                f"nginx in {name} does not answer; see {self.dir / name / 'error.log'}")

    def served(self):
        """What the access logs hold: {backend: {"http": n, "udp": n, "sources": {address: n}}}."""
        result = {}
        for name in BACKENDS:
            sources = {}
            counts = {}
            for kind in ("http", "udp"):
                log = self.dir / name / f"{kind}.log"
                lines = log.read_text().split() if log.exists() else []
                counts[kind] = len(lines)
                for source in lines:
                    sources[source] = sources.get(source, 0) + 1
            result[name] = {**counts, "sources": sources}
        return result

    # ---- sluiced

    def config(self, workers=2, extra="", ports=None):
        """Text of a configuration file for this lab. extra: further top-level YAML lines."""
        if self.kernel:
            # The limit of flows belongs to the whole machine.
            return (f"mode: {self.port_kind}\n"
                    f"node: {{name: gw, addresses: [{NODE4}, '{NODE6}']}}\n"
                    f"conntrack: {{max-per-core: 0}}\n"
                    f"listen: unix:{self.socket}\n"
                    f"state-dir: {self.dir}/state\n" + extra)
        if ports is None:
            ports = "".join(
                f"  - name: {side}\n"
                f"    device: {self.port_kind}:{side}\n"
                f"    addresses: [{address(GW)}/24, '{address(GW, 6)}/64']\n"
                for side, address in (("front", front), ("back", back)))
        return (f"mode: dpdk\nports:\n{ports}"
                f"workers: {{count: {workers}}}\n"
                f"memory: {{hugepages: off}}\n"
                f"node: {{name: gw, addresses: [{NODE4}, '{NODE6}']}}\n"
                f"announce: [{FRONT4}0/24, '{FRONT6}/64']\n"
                f"listen: unix:{self.socket}\n"
                f"state-dir: {self.dir}/state\n"
                + ("tables: {connections: 65536}\n" if "tables:" not in extra else "") + extra)

    def start_sluiced(self, workers=2, extra="", wait=30.0, args=()):
        """Starts sluiced in the gateway and waits until it answers."""
        path = self.dir / "sluiced.yaml"
        path.write_text(self.config(workers, extra))
        (self.dir / "state").mkdir(exist_ok=True)
        with open(self.sluiced_log, "ab") as log:
            self.sluiced = self.popen("gw", self.binaries / "sluiced", "--config", path, *args,
                                      stdout=log, stderr=log)

        def up():
            if self.sluiced.poll() is not None:
                raise LabError(f"sluiced ended with {self.sluiced.returncode}:\n{self.log_tail()}")
            return self.socket.exists() and self.ctl("status", check=False).returncode == 0

        self.wait(up, "sluiced does not answer:", wait, log=True)

    def stop_sluiced(self, wait=10.0):
        """SIGTERM; the exit status and the seconds it took."""
        began = time.monotonic()
        status = kill(self.sluiced, signal.SIGTERM, wait)
        return status, time.monotonic() - began

    def ctl(self, *args, check=True, timeout=30, stdin=None):
        """sluicectl against this lab's sluiced."""
        command = [str(self.binaries / "sluicectl"), "--server", f"unix:{self.socket}",
                   *map(str, args)]
        done = subprocess.run(command, input=stdin or "", capture_output=True, text=True,
                              timeout=timeout)
        if check and done.returncode != 0:
            raise LabError(f"sluicectl {' '.join(map(str, args))}: exit {done.returncode}\n"
                           f"{done.stdout}{done.stderr}".strip())
        return done

    def ctl_json(self, *args):
        return json.loads(self.ctl("-o", "json", *args).stdout)

    def log_tail(self, lines=20):
        if not self.sluiced_log.exists():
            return ""
        return "\n".join(self.sluiced_log.read_text(errors="replace").splitlines()[-lines:])

    # ---- helpers

    def wait(self, condition, message, seconds=15.0, log=False):
        """Polls until `condition` is true."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(message + ("\n" + self.log_tail() if log else ""))
            time.sleep(0.05)

    def close(self):
        """Ends every process of the lab and removes namespaces and files. May be called twice."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            kill(process, signal.SIGTERM, 3.0)
        self._processes = []
        for name in self._namespaces:
            subprocess.run(["ip", "netns", "delete", self.ns(name)], capture_output=True)
        self._namespaces = []
        shutil.rmtree(self.dir, ignore_errors=True)


def _nginx_conf(name, folder):
    return f"""
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
user root;
daemon off;
master_process off;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  log_format source '$remote_addr';
  server_tokens off;
  client_max_body_size 0;
  client_body_temp_path {folder}/tmp;
  server {{
    listen {HTTP_PORT} backlog=4096;
    listen [::]:{HTTP_PORT} backlog=4096;
    root {folder}/www;
    location = / {{
      access_log {folder}/http.log source;
      default_type text/plain;
      return 200 "{name} $remote_addr\\n";
    }}
    location = /ready {{ return 204; }}
    location /up/ {{ dav_methods PUT; }}
  }}
}}
stream {{
  log_format source '$remote_addr';
  access_log {folder}/udp.log source;
  server {{
    listen {UDP_PORT} udp;
    listen [::]:{UDP_PORT} udp;
    return "{name} $remote_addr\\n";
  }}
}}
"""
