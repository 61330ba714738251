"""Pktgen-DPDK as the generator: range mode over virtio-user to a vhost port.

It sets the MTU of its port, which net_memif of DPDK 22.11 refuses: hence vhost. It needs a
pseudo-terminal. It only sends: UDP from clients, an open loop at a share of its line rate; nobody
answers as a backend, so there are no replies to translate. A Lua script of ours inside it takes
orders from a file and writes what was counted to another.
"""

import json
import math
import os
import pathlib
import pty
import shutil
import subprocess
import threading
import time

from . import cluster, generators

LINE_MPPS = 14.88  # of the 10 Gbit/s a virtio port claims, at 64 bytes

SCRIPT = """
package.path = package.path .. ";?.lua;{library}/?.lua"
require "Pktgen"
local port, folder = "0", "{folder}"
local function range(field, first, step, last)
  pktgen.range[field](port, "start", first)
  pktgen.range[field](port, "inc", step)
  pktgen.range[field](port, "min", first)
  pktgen.range[field](port, "max", last)
end
pktgen.screen("off")
pktgen.range.dst_mac(port, "start", "{mac}")
pktgen.range.src_mac(port, "start", "{own_mac}")
range("src_ip", "{first_client}", "0.0.0.1", "{last_client}")
range("src_port", {first_port}, 1, {last_port})
range("dst_ip", "{first_vip}", "0.0.0.1", "{last_vip}")
range("dst_port", 80, 0, 80)
range("pkt_size", {size}, 0, {size})
pktgen.range.ip_proto(port, "udp")
pktgen.set_range(port, "on")
local number = 1
while true do
  local order = io.open(folder .. "/order." .. number)
  if order then
    local rate, milliseconds = order:read("n", "n")
    order:close()
    pktgen.clr()
    pktgen.set(port, "rate", rate)
    pktgen.start(port)
    pktgen.delay(milliseconds)
    pktgen.stop(port)
    pktgen.delay(1200) -- its counters follow once a second
    local seen = pktgen.portStats(port, "port")[0]
    local answer = io.open(folder .. "/answer.part", "w")
    answer:write(string.format('{{"offered": %d, "received": %d}}', seen.opackets, seen.ipackets))
    answer:close()
    os.rename(folder .. "/answer.part", folder .. "/answer." .. number)
    number = number + 1
  end
  pktgen.delay(20)
end
"""


def found():
    """The binary, or None."""
    return shutil.which(os.environ.get("PKTGEN", "pktgen"))


def flow_ranges(flows, services):
    """(clients, ports): Pktgen steps every range at once, so it makes as many flows as the least
    common multiple of the ranges; clients is a multiple of the services, ports has no common factor
    with it, and the product comes closest to `flows` from above."""
    ports = min(flows, 255)
    clients = services * math.ceil(flows / ports / services)
    while math.gcd(ports, clients) != 1:
        ports -= 1
        clients = services * math.ceil(flows / ports / services)
    return clients, ports


class Pktgen:
    """As generators.Embedded."""

    name = "pktgen"

    def __init__(self, dut, point, core, folder):
        self.folder, self.orders, self.opened = folder, 0, None
        clients, ports = flow_ranges(point["flows"], point["services"])
        self.flows = clients * ports
        binary = found()
        script = folder / "pktgen.lua"
        script.write_text(SCRIPT.format(
            library=os.environ.get("PKTGEN_LUA", pathlib.Path(binary).resolve().parent),
            folder=folder, mac=dut.link.mac, own_mac="02:00:00:00:00:09",
            first_client=cluster.numbered(cluster.CLIENTS, 1),
            last_client=cluster.numbered(cluster.CLIENTS, clients),
            first_port=1024, last_port=1023 + ports,
            first_vip=cluster.numbered(cluster.VIPS, 1),
            last_vip=cluster.numbered(cluster.VIPS, point["services"]),
            size=max(64, point["lengths"][0] + 4)))
        self.log = folder / "pktgen.log"
        control = next((cpu for cpu in sorted(os.sched_getaffinity(0)) if cpu != core), core)
        command = [binary, f"--lcores=0@{control},1@{core}", "--no-pci", "--in-memory",
                   "--single-file-segments", "--no-telemetry", "-m", "512", "--vdev",
                   dut.link.generator_device(), "--", "-P", "-m", "1.0", "-f", str(script)]
        master, slave = pty.openpty()
        self.process = subprocess.Popen(dut.space.command(*command), stdin=slave, stdout=slave,
                                        stderr=slave, env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        self._master = master
        threading.Thread(target=self._copy, daemon=True).start()

    def _copy(self):
        with open(self.log, "wb") as log:
            while True:
                try:
                    log.write(os.read(self._master, 65536))
                except OSError:
                    return
                log.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def open(self):
        """The first packet of a UDP flow opens it; slowly, or new flows are held back."""
        for _ in range(20):
            result = self.load(max(0.5, self.flows / 200_000), rate=200_000)
            if result["received"] >= result["offered"] > 0:
                break
        else:
            raise generators.GeneratorError(f"flows were not opened: {result}")
        self.opened = {"opened": self.flows, "asked": self.flows, "bad_checksums": 0}
        return self.opened

    def load(self, seconds, rate=0, window=0, **shares):
        """A window becomes the full rate: there is no closed loop."""
        if any(shares.values()):
            raise generators.GeneratorError("Pktgen mixes no new or foreign flows in")
        self.orders += 1
        percent = min(100, rate / 1e6 / LINE_MPPS * 100) if rate else 100
        part = self.folder / "order.part"
        part.write_text(f"{percent:.4f} {int(seconds * 1000)}\n")
        part.rename(self.folder / f"order.{self.orders}")
        answer = self.folder / f"answer.{self.orders}"
        deadline = time.monotonic() + seconds + 30
        while not answer.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise generators.GeneratorError(
                    "pktgen gave no answer\n" + self.log.read_bytes()[-1500:].decode("ascii",
                                                                                    "replace"))
            time.sleep(0.05)
        result = json.loads(answer.read_text())
        return {**result, "seconds": seconds, "fresh_sent": 0, "fresh_received": 0, "idle": 0,
                "latency_us": {"p50": 0}}
