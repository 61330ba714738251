"""Where cycles go: `perf record`, of a device's pollers beside a closed loop, and of a bench
without I/O while it takes the time of one figure.

perf is told by a pipe when to sample (`--control`), so that neither starting nor opening flows is
in the picture. A poller that finds no frame spins all the same: such samples are taken out. What
empty polls look like is recorded first, with no traffic. Beside the load there are at most as many
of them as the symbol leaves room for that is rarest there for what it is at rest: the clock, which
a poll reads once, whether it brings no frame or 64.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from . import measure

SECONDS = 2
AT_REST = 0.5  # seconds of empty polls
MARKER = 0.05  # share of the samples at rest that makes a symbol speak for them
RATE = 4000    # samples a second
TOP = 12
PATIENCE = 10  # seconds for an order to perf
LINE = re.compile(r"^\s*(\d+)\s+(\S+)\s+\[(.)\]\s+(.+?)\s*$", re.M)
# Frames are made between two timed rounds; a worker sums no whole packet that it forwards.
OURS = ("sluice::bench::", "sluice::core::l4_checksum", "sluice::core::ipv4_header_checksum")


def found():
    """perf is here and may be used."""
    if not shutil.which("perf"):
        return False
    return subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "true"],
                          capture_output=True).returncode == 0


def _plain(symbol):
    """Without template arguments, which say nothing here and fill lines."""
    shorter = re.sub(r"<[^<>]*>", "", symbol)
    return symbol if shorter == symbol else _plain(shorter)


def _name(library, kind, symbol):
    if symbol.startswith("0x"):  # a library without symbols is one line
        return f"{library}, not named"
    return _plain(symbol) + (" (kernel)" if kind == "k" else "")


def counts_of(text):
    """{symbol: samples} of a perf report, without the benches' own."""
    counts = {}
    for samples, library, kind, symbol in LINE.findall(text):
        if not symbol.startswith(OURS):
            name = _name(library, kind, symbol)
            counts[name] = counts.get(name, 0) + int(samples)
    return counts


def idle_share(counts, rest):
    """The part of `counts` that may be what `rest` is made of."""
    total, at_rest = sum(counts.values()), sum(rest.values())
    ratios = [counts.get(name, 0) / total / (n / at_rest) for name, n in rest.items()
              if n >= MARKER * at_rest] if total else []
    return min([1, *ratios]) if ratios else 0


def without(counts, rest, share):
    """Counts less that share of them, which is spread as `rest` is."""
    scale = share * sum(counts.values()) / sum(rest.values()) if share else 0
    left = {name: n - scale * rest.get(name, 0) for name, n in counts.items()}
    return {name: n for name, n in left.items() if n > 0}


def shares_of(counts):
    """[(share, symbol)], the largest first."""
    total = sum(counts.values())
    return sorted(((n / total, name) for name, n in counts.items() if n), reverse=True)[:TOP]


class Recorder:
    """One `perf record`, which samples between enable() and disable()."""

    def __init__(self, folder, what, environment=None):
        """what: the end of perf's command line."""
        self.data, self.control, self.answers = (folder / f"perf.{name}" for name in
                                                 ("data", "control", "answers"))
        for pipe in (self.control, self.answers):
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        self._orders = os.open(self.control, os.O_RDWR)
        self._heard = os.open(self.answers, os.O_RDWR | os.O_NONBLOCK)
        variables = {**os.environ, "SLUICE_PERF_CONTROL": str(self.control), **(environment or {})}
        self.process = subprocess.Popen(
            ["perf", "record", "-q", "-D", "-1", "-e", "cpu-clock", "-F", str(RATE), "--control",
             f"fifo:{self.control},{self.answers}", "-o", str(self.data), *what], env=variables,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.communicate(timeout=PATIENCE)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._orders)
        os.close(self._heard)

    def order(self, word):
        """enable or disable; returns when perf has done it."""
        os.write(self._orders, word.encode() + b"\n")
        heard, end = b"", time.monotonic() + PATIENCE
        while b"ack" not in heard and time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(BlockingIOError):
                heard += os.read(self._heard, 64)
            time.sleep(0.001)

    def output(self, seconds):
        """Of the command that perf runs, when it has ended."""
        return self.process.communicate(timeout=seconds)[0]

    def counts(self):
        """After the context."""
        done = subprocess.run(["perf", "report", "--stdio", "-q", "--no-children", "-F",
                               "sample,dso,symbol", "-i", str(self.data)], capture_output=True,
                              text=True)
        return counts_of(done.stdout)


def _sampled(device, action):
    """({symbol: samples}, what the action returns) of a device's pollers meanwhile."""
    threads = ",".join(map(str, device.pollers()))
    with Recorder(device.folder, ["-t", threads]) as recorder:
        recorder.order("enable")
        result = action()
        recorder.order("disable")
    return recorder.counts(), result


def of_pollers(device, generator, **load):
    """{"symbols": [(share, symbol)], "each": ns a frame, "unit", "idle": share of empty polls,
    taken out} of the device's pollers under load, a closed loop unless told; None without perf or
    samples."""
    if not device.pollers() or not found():
        return None
    load = load or {"window": measure.WINDOW}
    rest, _ = _sampled(device, lambda: time.sleep(AT_REST))
    before = device.counters()
    counts, result = _sampled(device, lambda: generator.load(SECONDS, **load))
    after = device.counters()
    if not counts:
        return None
    idle = idle_share(counts, rest)
    busy = (1 - idle) * sum(counts.values()) / RATE
    frames = after.get("rx_frames", 0) - before.get("rx_frames", 0) or result["received"]
    return {"symbols": shares_of(without(counts, rest, idle)), "idle": idle, "unit": "ns",
            "each": busy * 1e9 / frames}


def of_bench(folder, command, seconds, section=""):
    """({"symbols": [(share, symbol)]}, output) of a bench that opens a section.h window itself."""
    with Recorder(pathlib.Path(folder), ["--", *command],
                  {"SLUICE_PERF_SECTION": section}) as recorder:
        output = recorder.output(seconds)
        status = recorder.process.returncode
    if status:
        raise RuntimeError(f"status {status}: {output.strip()[-300:]}")
    counts = recorder.counts()
    if not counts:
        raise RuntimeError("perf took no samples")
    return {"symbols": shares_of(counts)}, output
