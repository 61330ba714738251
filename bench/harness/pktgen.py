"""Pktgen-DPDK as the generator, over virtio-user to a vhost port.

It sets the MTU of its port, which net_memif of DPDK 22.11 refuses: hence vhost. Our own generator
opens the flows, leaves a capture file of its frames, both directions, and ends; Pktgen takes its
place on the link and replays them. Its own modes would not do: range makes no more flows than its
pool has buffers (24,576), random changes nothing in 23.06, and nobody answers as a backend.

Orders are typed on a pseudo-terminal, without which it does not start; what it counts is read from
DPDK's telemetry while it sends. It knows an open loop only, at a share of its line rate; where the
link is full it waits for room, so at its full rate frames always wait for the device.
"""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import socket
import subprocess
import threading
import time

from . import dut, generators, machine

LINE = 10e9  # bits a second, what a virtio port claims
GAP = 24     # of a frame on a wire: preamble, pause and FCS
BURST = 32
IDLE = 19    # niceness of threads that never rest and have nothing to do during a window


def found():
    """The binary, or None."""
    return shutil.which(os.environ.get("PKTGEN", "pktgen"))


class Telemetry:
    """Counters of a DPDK process, by its socket."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self._most = json.loads(self._socket.recv(1024))["max_output_len"]

    def frames(self):
        """(time in seconds, frames sent, frames received) of port 0"""
        self._socket.send(b"/ethdev/stats,0")
        seen = json.loads(self._socket.recv(self._most))["/ethdev/stats"]
        return time.monotonic(), seen["opackets"], seen["ipackets"]

    def close(self):
        self._socket.close()


class Pktgen:
    """As generators.Embedded."""

    name = "pktgen"

    def __init__(self, device, point, core, folder, make_own, realtime=False):
        """make_own: of the generator that opens the flows."""
        if device.link.kind != "vhost":
            raise generators.GeneratorError("Pktgen speaks vhost only")
        if point["mode"] == "dr":
            raise generators.GeneratorError("Pktgen answers for no neighbours, mode dr needs it")
        self.device, self.core, self.folder, self.realtime = device, core, folder, realtime
        lengths = point["lengths"]
        # Its rate is one of frames of their mean length.
        self.line = LINE / 8 / (sum(lengths) // len(lengths) + GAP)
        self.make_own, self.opened = make_own, None
        self.process = self._master = self._telemetry = None
        self.log = folder / "pktgen.log"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._telemetry:
            self._telemetry.close()
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            os.close(self._master)

    def open(self):
        self.device.know_gateway()
        capture = self.folder / "frames.pcap"
        with self.make_own() as own:
            self.opened = own.open()
            own.save(capture)
        self._start(capture)
        capture.unlink()
        return self.opened

    def _start(self, capture):
        # Its threads for orders and the screen never rest. The latter is on the CPU that has the
        # number of the main lcore.
        busy = (self.core, self.device.core)
        main = next((cpu for cpu in machine.cpus() if cpu not in busy), self.core)
        command = [found(), f"--lcores={main}@{main},{main + 1}@{self.core}",
                   f"--main-lcore={main}", "--no-pci", "--in-memory", "--single-file-segments",
                   "-m", "512", "--vdev", self.device.link.generator_device(), "--",
                   "-m", f"{main + 1}.0", "-s", f"0:{capture}"]
        self.log.touch()
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            self.device.generator_space.command(*command), stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, "TERM": "xterm", "RUNTIME_DIRECTORY": str(self.folder)})
        os.close(slave)
        threading.Thread(target=self._copy, daemon=True).start()
        dut.wait_for("pktgen does not start", lambda: "Pktgen:/>" in
                     self.log.read_text(errors="replace"), 30, self.process, self.log)
        self._telemetry = Telemetry(next(self.folder.rglob("dpdk_telemetry.v2*")))
        self._type("off", f"set 0 burst {BURST}")  # no screen
        for tid in machine.threads(self.process.pid, pathlib.Path(found()).name):
            os.setpriority(os.PRIO_PROCESS, tid, IDLE)

    def _copy(self):
        """What it draws: a terminal that nobody reads holds it up."""
        with open(self.log, "wb") as log, contextlib.suppress(OSError):
            while True:
                log.write(os.read(self._master, 65536))
                log.flush()

    def _type(self, *orders):
        os.setpriority(os.PRIO_PROCESS, self.process.pid, 0)
        for order in orders:
            os.write(self._master, order.encode() + b"\n")

    def load(self, seconds, rate=0, window=0, **shares):
        """A window becomes the full rate: there is no closed loop."""
        if any(shares.values()):
            raise generators.GeneratorError("Pktgen mixes no new or foreign flows in")
        asked = min(rate, self.line) if rate else self.line
        before = self._telemetry.frames()
        self._type(f"set 0 rate {asked / self.line * 100:.4f}", "start 0")
        try:
            self._wait("send", lambda: self._telemetry.frames()[1] > before[1])
            os.setpriority(os.PRIO_PROCESS, self.process.pid, IDLE)
            with machine.Stolen(device=self.device.core, generator=self.core) as stolen:
                first, last = self._window(seconds)
        finally:
            self._type("stop 0")
        after = self._wait_until_quiet()
        if last[1] == first[1]:
            raise generators.GeneratorError("Pktgen sent nothing within the window")
        # All frames count, and for as long as they take at the rate within the window.
        sent = (last[1] - first[1]) / (last[0] - first[0])
        offered, received = after[1] - before[1], after[2] - before[2]
        return {"seconds": offered / sent, "offered": offered, "received": received,
                "fresh_sent": 0, "fresh_received": 0, "idle": 0, "steal": stolen.ticks}

    def _window(self, seconds):
        """Counters at both ends of it. In real time we and its telemetry go before what polls."""
        with contextlib.ExitStack() as stack:
            if self.realtime:
                for tid in [0, *machine.threads(self.process.pid, "telemetry")]:
                    os.sched_setscheduler(tid, os.SCHED_FIFO,
                                          os.sched_param(machine.Realtime.PRIORITY + 1))
                    stack.callback(os.sched_setscheduler, tid, os.SCHED_OTHER, os.sched_param(0))
                stack.enter_context(machine.Realtime([*self.device.pollers(),
                                                      *machine.pollers(self.process.pid)], seconds))
            first = self._telemetry.frames()
            time.sleep(seconds)
            return first, self._telemetry.frames()

    def _wait_until_quiet(self):
        """Counters when no frame has come or gone between two looks."""
        seen = [self._telemetry.frames()]

        def quiet():
            seen.append(self._telemetry.frames())
            return seen[-1][1:] == seen[-2][1:]
        self._wait("stop", quiet)
        return seen[-1]

    def _wait(self, what, condition):
        dut.wait_for(f"pktgen does not {what}", condition, 20, self.process, self.log)
