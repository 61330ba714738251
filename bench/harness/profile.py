"""Where a worker's cycles go: `perf record` of its threads beside a closed loop."""

import re
import shlex
import shutil
import subprocess

from . import measure

SECONDS = 2
TOP = 12
LINE = re.compile(r"^\s*([\d.]+)%\s+\[.\]\s+(.+?)\s*$", re.M)


def _plain(symbol):
    """Without template arguments, which say nothing here and fill lines."""
    shorter = re.sub(r"<[^<>]*>", "", symbol)
    return symbol if shorter == symbol else _plain(shorter)


def symbols_of(text):
    """[(share, symbol)] of a perf report, the largest first."""
    return sorted(((float(share) / 100, _plain(symbol)) for share, symbol in LINE.findall(text)),
                  reverse=True)[:TOP]


def of_pollers(device, generator):
    """[(share, symbol)] of the device's pollers under load; [] where perf is missing or refuses."""
    if not shutil.which("perf") or not device.pollers():
        return []
    data = device.folder / "perf.data"
    # In a VM there is often no counter of cycles: the clock serves. The load begins before and
    # lasts longer, or idle polls would be in the picture.
    record = shlex.join(["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-t",
                         ",".join(map(str, device.pollers())), "-o", str(data), "--", "sleep",
                         str(SECONDS)])
    recorder = subprocess.Popen(["sh", "-c", f"sleep 0.3; exec {record}"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        generator.load(SECONDS + 1.5, window=measure.WINDOW)
    finally:
        recorder.wait()
    done = subprocess.run(["perf", "report", "--stdio", "-q", "--no-children", "-F",
                           "overhead,symbol", "-i", str(data)], capture_output=True, text=True)
    return symbols_of(done.stdout)
