"""Traffic generators behind one interface: open() opens the flows, load() is one measurement."""

import contextlib
import json
import pathlib
import subprocess
import time

from . import machine


class GeneratorError(RuntimeError):
    """The generator ended or could not open its flows."""


class Embedded:
    """sluice-generator, which any machine has."""

    name = "embedded"

    def __init__(self, binaries, dut, point, core, hugepages, folder, realtime=False):
        self.dut, self.core, self.realtime = dut, core, realtime
        # It has no real-time priority itself, because others need its CPU meanwhile.
        self.polite = False
        self.log = folder / "generator.log"
        memory = 128 + dut.link.descriptors * 16 * 2560 // (1 << 20)
        command = [str(pathlib.Path(binaries) / "sluice-generator"), *dut.link.generator_options(),
                   "--to", dut.link.mac, "--core", str(core), "--memory-mib", str(memory),
                   "--descriptors", str(dut.link.descriptors), "--family", str(point["family"]),
                   "--proto", point["proto"], "--flows", str(point["flows"]), "--services",
                   str(point["services"]), "--lengths", ",".join(map(str, point["lengths"]))]
        command += ["--hugepages"] if hugepages else []
        command += ["--reflect"] if not dut.translates else []
        command += ["--one-way"] if point["mode"] in ("dr", "ipip") and dut.translates else []
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(dut.generator_space.command(*command),
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=log, text=True)
        self.opened = None
        self._read()  # it says when its end of the link is there

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):  # it may be dead
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def open(self):
        """Waits until every flow is open. Returns its report."""
        self.opened = self._ask("open")
        if self.opened["opened"] < self.opened["asked"] or self.opened["bad_checksums"]:
            raise GeneratorError(f"flows were not opened: {self.opened}")
        return self.opened

    def save(self, path):
        """Writes all frames of the flows, opened before, to a capture file."""
        self._ask(f"save {path}")

    def load(self, seconds, **settings):
        """rate= (frames a second) or window= (frames in flight); fresh=, foreign= shares."""
        words = " ".join(f"{key}={value}" for key, value in settings.items() if value)
        own, pollers = [self.process.pid], self.dut.pollers()
        with machine.Realtime([*([] if self.polite else own), *pollers], seconds) \
                if self.realtime else contextlib.nullcontext():
            began = time.monotonic()
            with machine.Stolen(device=self.dut.core, generator=self.core) as stolen, \
                    machine.Waited(device=pollers, generator=own) as waited:
                result = self._ask(f"load seconds={seconds} {words}")
            result["window"] = began, time.monotonic()
            result["steal"], result["waited"] = stolen.ticks, waited.seconds
        if result["bad_checksums"]:
            raise GeneratorError(f"checksums of returned frames are wrong: {result}")
        if result["received"] > result["offered"] + settings.get("window", 0):
            raise GeneratorError(f"more frames came back than were sent: {result}")
        return result

    def _ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise GeneratorError("the generator ended\n" +
                                 self.log.read_text(errors="replace")[-1500:])
        return json.loads(line)

