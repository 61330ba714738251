"""Devices under test: sluiced, testpmd, the kernel, any other program. Each runs on one CPU and has
one link to the generator. join() starts both in the order the link wants."""

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time

from . import cluster, machine, ports

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MAC = "02:00:00:00:00:01"       # of the device under test
VHOST_MAC = "56:48:4f:53:54:00"  # what DPDK's vhost driver calls itself
GENERATOR_MAC = "02:00:00:00:00:09"
LINK = {4: ("9.0.0.2/24", "9.0.0.1"), 6: ("fd09::2/64", "fd09::1")}  # our address, the gateway


class DutError(RuntimeError):
    """The device under test did not do what it should; the text ends with its log."""


def wait_for(what, condition, seconds, process=None, log=None, every=0.05):
    """Polls; a start-up is no measurement."""
    deadline = time.monotonic() + seconds
    while not condition():
        ended = process is not None and process.poll() is not None
        if ended or time.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-1500:] if log and log.exists() else ""
            raise DutError(f"{what}: " + ("it ended" if ended else "not in time") + "\n" + tail)
        time.sleep(every)


class Link:
    """How generator and device under test are joined. kind: memif (the memory is the generator's,
    the device under test copies in both directions), memif-zero-copy (the memory is the device's,
    nobody copies), vhost (the device under test is the back end, the generator a virtio-user port),
    veth (interfaces `dut` and `gen`), ports (two ports of this machine, see ports.py)."""

    descriptors = 1024  # of each ring

    def __init__(self, kind, folder, packet_driver="af_packet", two_ports=None):
        self.kind = kind
        self.driver = packet_driver
        self.socket = folder / "link.sock"
        self.ports = two_ports

    def _memif(self, role, zero_copy):
        rsize = self.descriptors.bit_length() - 1
        return (f"net_memif0,role={role},socket={self.socket},socket-abstract=no,rsize={rsize},"
                f"mac={MAC}" + (",zero-copy=yes" if zero_copy else ""))

    @property
    def generator_starts_first(self):
        """A memif server and a vhost back end must be there before their clients."""
        return self.kind == "memif-zero-copy"

    @property
    def mac(self):
        if self.kind == "ports":
            return self.ports.mac
        return VHOST_MAC if self.kind == "vhost" else MAC

    def dut_device(self):
        if self.kind == "memif":
            return self._memif("server", False)
        if self.kind == "memif-zero-copy":
            return self._memif("client", True)
        if self.kind == "vhost":
            return f"net_vhost0,iface={self.socket},queues=1"
        if self.kind == "ports":
            return self.ports.device(self.ports.dut)
        return f"{self.driver}:dut"

    def dpdk_device(self):
        """dut_device() as a DPDK program takes it: of testpmd and the probe, where they can."""
        return self.ports.vdev(self.ports.dut) if self.kind == "ports" else self.dut_device()

    def generator_options(self):
        """Of our own generator, which speaks memif itself: a driver would be its limit."""
        if self.kind == "memif":
            return ["--memif", str(self.socket)]
        if self.kind == "memif-zero-copy":
            return ["--memif", str(self.socket), "--memif-server"]
        return ["--vdev", self.generator_device()]

    def generator_device(self):
        """Of a generator on DPDK."""
        if self.kind == "vhost":
            return (f"net_virtio_user0,path={self.socket},queues=1,"
                    f"queue_size={self.descriptors},mac={GENERATOR_MAC}")
        if self.kind == "ports":
            return self.ports.vdev(self.ports.generator)
        return "net_af_packet0,iface=gen,qpairs=1,framesz=2048,framecnt=4096,blocksz=4096"


class Namespace:
    """A network namespace: taps and veth stay out of the host's."""

    def __init__(self):
        self.name = f"slb{os.getpid()}{os.urandom(2).hex()}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *args):
        return ["ip", "netns", "exec", self.name, *args]

    def run(self, *args, **more):
        return subprocess.run(self.command(*args), check=True, capture_output=True, text=True,
                              **more)

    def veth(self, other):
        """Interface `dut` here and `gen` in the other: a kernel that forwards would send on what
        arrives at `gen`, too, round and round until its TTL ends."""
        self.run("ip", "link", "add", "dut", "address", MAC, "type", "veth", "peer", "name", "gen",
                 "address", GENERATOR_MAC, "netns", other.name)
        for space, name in ((self, "dut"), (other, "gen")):
            space.run("sysctl", "-qw", f"net.ipv6.conf.{name}.accept_dad=0")
            space.run("ip", "link", "set", name, "up")

    def close(self):
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True)


class Dut:
    """Base: a process in a namespace, pinned, with a log. As a context it is the namespace; join()
    starts the process."""

    translates = True  # False: frames come back as they were sent
    name = "?"

    def __init__(self, link, folder, core):
        self.link, self.folder, self.core = link, folder, core
        self.space = self.generator_space = None
        self.process = None
        self.moved = contextlib.ExitStack()
        self.log = folder / "dut.log"

    def __enter__(self):
        try:
            self.space = self.generator_space = Namespace()
            if self.link.kind == "veth":
                self.generator_space = Namespace()
                self.space.veth(self.generator_space)
            if self.link.kind == "ports":
                self.generator_space = Namespace()
                # As long as the interface is seen from here.
                self.link.ports.given_mac = self.link.mac
                for port, space in ((self.link.ports.dut, self.space),
                                    (self.link.ports.generator, self.generator_space)):
                    self.moved.enter_context(self.link.ports.moved(port, space))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.moved.close()
        for space in {self.space, self.generator_space} - {None}:
            space.close()

    def held(self):
        """Context: it takes no CPU, which another one is to have; see going()."""
        return self._between(signal.SIGSTOP, signal.SIGCONT)

    def going(self):
        """Context, of one that is held."""
        return self._between(signal.SIGCONT, signal.SIGSTOP)

    @contextlib.contextmanager
    def _between(self, before, after):
        self.process.send_signal(before)
        try:
            yield self
        finally:
            self.process.send_signal(after)

    def spawn(self, command, stdin=subprocess.DEVNULL):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.space.command(*command), stdin=stdin, stdout=log,
                                            stderr=log)

    def join(self, make_generator):
        """Starts device and generator and opens all flows. Returns the generator, a context."""
        with contextlib.ExitStack() as on_failure:  # the generator ends, too
            if self.link.generator_starts_first:
                generator = make_generator()
                on_failure.push(generator)
                wait_for("no socket of the generator", self.link.socket.exists, 30,
                         generator.process)
                self.open()
            else:
                self.open()
                generator = make_generator()
                on_failure.push(generator)
            self.ready()
            generator.open()
            self.settle(generator)
            on_failure.pop_all()
        return generator

    def open(self):
        raise NotImplementedError

    def ready(self):
        """Loads the cluster."""

    def settle(self, generator):
        """Of a device that does not say when it forwards: waits until a frame comes back."""

    def counters(self):
        """Counters by name, summed over workers; {} when it has none."""
        return {}

    def pollers(self):
        """Threads that move packets."""
        return machine.pollers(self.process.pid)

    def know_gateway(self):
        """For a generator that answers no neighbour requests."""


def connections_of(point):
    """Of sluiced's table. It holds a fresh flow until its time-out."""
    room = point["flows"] + (1_000_000 if point["fresh"] else 0)
    # A third more; where that would double a table of gigabytes, what the flows need.
    return max(1 << 16, int(room * 1.3) if room <= 5_000_000 else room)


class Sluiced(Dut):
    """A real sluiced in mode dpdk."""

    name = "sluiced"

    def __init__(self, link, folder, core, point, binaries, hugepages=True, workers=1):
        super().__init__(link, folder, core)
        self.point, self.binaries, self.hugepages = point, pathlib.Path(binaries), hugepages
        self.workers = workers
        self.socket = folder / "sluiced.sock"

    def config(self):
        p = self.point
        family = p["family"]
        own, gateway = LINK[family]
        total = p["services"] * p["backends"]
        addresses = [own]
        if p["mode"] == "dr":
            addresses.append(f"{cluster.numbered(cluster.BACKENDS, 0xfffffe, family)}/"
                             + ("8" if family == 4 else "16"))
        # What pushing.py makes of endpoints is everywhere.
        blocks = (cluster.CLIENTS, cluster.BACKENDS, cluster.SNAT)
        elsewhere = ["0.0.0.0/0"] if p["pushed"] else []
        snat = [cluster.numbered(cluster.SNAT, 1 + n, family) for n in range(8)]
        cores = [(self.core + n) % os.cpu_count() for n in range(self.workers)]
        routes = [{"to": to, "via": gateway} for to in
                  [cluster.prefix(block, family) for block in blocks
                   if p["mode"] != "dr" or block != cluster.BACKENDS] + elsewhere]
        config = {
            "ports": [{"name": "bench", "device": self.link.dut_device(), "addresses": addresses,
                       "routes": routes, "rx-descriptors": self.link.descriptors,
                       "tx-descriptors": self.link.descriptors}],
            "workers": {"count": self.workers, "cores": cores, "idle": p["idle"]},
            "memory": {"hugepages": "on" if self.hugepages else "off"},
            "tables": {"services": max(1024, 2 * p["services"]), "backends": max(4096, 2 * total),
                       "connections": connections_of(p)},
            "snat": {"addresses": snat if p["mode"] == "fullnat" else [], "first-port": 1024},
            "timeouts": {"tcp-established": "1h", "udp-stream": "1h",
                         **({"tcp-syn-sent": "1s", "udp-new": "1s"} if p["fresh"] else {})},
            "listen": f"unix:{self.socket}", "state-dir": "", "healthz": {"address": ""},
        }
        if p["mode"] == "ipip":
            config["ipip"] = {"sources": [cluster.numbered(cluster.SNAT, 256, family)
                                          + ("/25" if family == 4 else "/64")]}
        if not config["snat"]["addresses"]:
            del config["snat"]
        return config

    def open(self):
        config = self.folder / "sluiced.yaml"
        config.write_text(json.dumps(self.config(), indent=1))  # JSON is YAML
        self.spawn([str(self.binaries / "sluiced"), "--config", str(config)])
        wait_for("sluiced does not serve", self.socket.exists, 60, self.process, self.log)

    def ready(self):
        p = self.point
        objects = self.folder / "cluster.json"
        cluster.write(objects, p["services"], p["backends"], p["family"], p["proto"], p["mode"],
                      p["scheduler"])
        self.ctl("replace", "-f", str(objects), "--wait", "60", "--timeout", "60")
        objects.unlink()

    def know_gateway(self):
        _, gateway = LINK[self.point["family"]]
        self.space.run("ip", "neigh", "replace", gateway, "lladdr", GENERATOR_MAC, "dev",
                       "slc-bench", "nud", "permanent")

    def ctl(self, *args):
        done = subprocess.run([str(self.binaries / "sluicectl"), "--server", f"unix:{self.socket}",
                               *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise DutError(f"sluicectl {args[0]}: {done.stderr.strip()}")
        return done.stdout

    def counters(self):
        rows = json.loads(self.ctl("counters", "--all", "-o", "json"))
        return {row["name"]: int(row["total"]) for row in rows["counters"]}


class Testpmd(Dut):
    """dpdk-testpmd: what a program that looks at nothing does over the same link."""

    translates = False

    def __init__(self, link, folder, core, mode="macswap", hugepages=True):
        super().__init__(link, folder, core)
        self.mode, self.hugepages = mode, hugepages
        self.name = f"testpmd-{mode}"

    @staticmethod
    def found():
        return shutil.which("dpdk-testpmd") is not None

    def open(self):
        other = next(c for c in range(os.cpu_count()) if c != self.core)
        memory = (["--in-memory", "--single-file-segments"] if self.hugepages
                  else ["--no-huge", "--no-shconf"])
        d = str(self.link.descriptors)
        device = self.link.dpdk_device()
        bus = ["-a", device] if ports.Ports.is_pci(device) else ["--no-pci", "--vdev", device]
        # Line by line: what it says is waited for.
        self.spawn(["stdbuf", "-oL", "dpdk-testpmd", f"--lcores=0@{other},1@{self.core}",
                    "--no-telemetry", "-m", "512", *memory, *bus,
                    "--", f"--forward-mode={self.mode}", "--port-topology=loop", "--nb-cores=1",
                    "--total-num-mbufs=16384", f"--rxd={d}", f"--txd={d}", "--no-lsc-interrupt",
                    "--disable-link-check"],
                   stdin=subprocess.PIPE)
        wait_for("testpmd does not start", lambda: "Press enter" in
                 self.log.read_text(errors="replace"), 30, self.process, self.log)


class Probe(Dut):
    """sluice-bench-probe: what any balancer over the same index costs at least on the same link."""

    translates = False
    name = "probe"

    def __init__(self, link, folder, core, point, binaries, hugepages=True):
        super().__init__(link, folder, core)
        self.point, self.binaries, self.hugepages = point, pathlib.Path(binaries), hugepages

    def open(self):
        p = self.point
        memory = 192 + p["flows"] // 2500 * (1 if p["family"] == 4 else 2)
        self.spawn([str(self.binaries / "sluice-bench-probe"), "--vdev", self.link.dpdk_device(),
                    "--core", str(self.core), "--memory-mib", str(memory), "--descriptors",
                    str(self.link.descriptors), "--family", str(p["family"]), "--proto", p["proto"],
                    "--flows", str(p["flows"]), "--services", str(p["services"]),
                    *(["--hugepages"] if self.hugepages else [])])
        if self.link.kind == "memif":
            wait_for("no memif socket appears", self.link.socket.exists, 30, self.process, self.log)

    def ready(self):
        wait_for("the probe does not start", lambda: "ready" in
                 self.log.read_text(errors="replace"), 60, self.process, self.log)

    def pollers(self):
        return [self.process.pid]  # the process itself: nothing stands before it


class Kernel(Dut):
    """The kernel of this machine on a veth: sluiced in a kernel mode writes the rules."""

    def __init__(self, link, folder, core, point, binaries, mode="nftables", variant=None):
        """variant: of iptables, legacy or nft; None: the one of this host."""
        super().__init__(link, folder, core)
        self.point, self.binaries, self.mode = point, pathlib.Path(binaries), mode
        self.variant = variant
        self.name = "-".join(["kernel", mode] + ([variant] if variant else []))
        self.socket = folder / "sluiced.sock"

    def open(self):
        family = self.point["family"]
        own, gateway = LINK[family]
        run = self.space.run
        run("ip", "address", "add", own, "dev", "dut", *(["nodad"] if family == 6 else []))
        for block in (cluster.CLIENTS, cluster.BACKENDS):
            run("ip", f"-{family}", "route", "add", cluster.prefix(block, family), "via", gateway)
        run("ip", f"-{family}", "neigh", "replace", gateway, "lladdr", GENERATOR_MAC, "dev", "dut",
            "nud", "permanent")
        run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1",
            "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.dut.send_redirects=0",
            "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.dut.rp_filter=0")
        # The frames the generator sends are taken up by the CPU of the device under test.
        run("sh", "-c",
            f"echo {1 << self.core:x} > /sys/class/net/dut/queues/rx-0/rps_cpus")
        self.start()

    def start(self):
        """What writes the rules."""
        config = {"mode": self.mode, "listen": f"unix:{self.socket}", "state-dir": "",
                  "healthz": {"address": ""}, "min-sync-period": "0s",
                  "conntrack": {"max-per-core": 0, "tcp-be-liberal": True}}
        if self.variant:
            config["iptables"] = {"variant": self.variant}
        path = self.folder / "sluiced.yaml"
        path.write_text(json.dumps(config, indent=1))
        self.spawn([str(self.binaries / "sluiced"), "--config", str(path)])
        wait_for("sluiced does not serve", self.socket.exists, 30, self.process, self.log)

    def pollers(self):
        """The kernel's own thread for packets on that CPU."""
        return machine.kernel_threads(f"ksoftirqd/{self.core}")

    ready = Sluiced.ready
    ctl = Sluiced.ctl

    def change(self, slices):
        """Puts EndpointSlices in the place of those of their names."""
        path = self.folder / "change.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": slices}))
        self.ctl("apply", "-f", str(path))

    def counters(self):
        """Frames the CPU of the device under test took and had no room for."""
        rows = [line.split() for line in
                pathlib.Path("/proc/net/softnet_stat").read_text().splitlines()]
        row = next((r for r in rows if len(r) > 12 and int(r[12], 16) == self.core), rows[-1])
        return {"softnet_processed": int(row[0], 16), "softnet_dropped": int(row[1], 16)}


class Command(Dut):
    """Any other program that speaks memif: --dut COMMAND. {socket} is the memif socket it serves,
    {core} its CPU, {mac} the MAC address frames are sent to. It sends back what it is sent, to any
    Ethernet address; --dut-translates when it needs its flows opened."""

    def __init__(self, link, folder, core, command, translates=False):
        super().__init__(link, folder, core)
        self.command_text, self.translates = command, translates
        self.name = shlex.split(command)[0].rsplit("/", 1)[-1]

    def open(self):
        text = self.command_text.format(socket=self.link.socket, core=self.core, mac=MAC)
        self.spawn(["sh", "-c", "exec " + text], stdin=subprocess.PIPE)
        wait_for("no memif socket appears", self.link.socket.exists, 30, self.process, self.log)

    def settle(self, generator):
        wait_for("no frame comes back", lambda: generator.load(0.05, window=64)["received"], 30,
                 self.process, self.log)

    def pollers(self):
        return machine.threads(self.process.pid, "")  # which of them move packets is not known
