"""What a result was measured on, huge pages for its time, and who else used the CPUs."""

import contextlib
import os
import pathlib
import platform
import re
import subprocess
import time

SCHEDSTAT = pathlib.Path("/proc/self/schedstat")  # not every kernel has it
POOL = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB")


def _first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip().split("\n")[0]


def cpu_model(text=None):
    """Name, and the numbers by which one name's generations differ: in a VM "AMD EPYC" may be Zen 3
    or Zen 5. text: /proc/cpuinfo"""
    text = text if text is not None else pathlib.Path("/proc/cpuinfo").read_text()
    found = {name: value.strip() for name, value in
             re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)", text, re.M)}
    if "model name" not in found:
        return platform.machine()
    numbers = "".join(f" {word} {found[key]}" for word, key in
                      (("family", "cpu family"), ("model", "model")) if key in found)
    return found["model name"] + numbers


def cpus():
    return sorted(os.sched_getaffinity(0))


def available_mib():
    """Memory that a program can still have."""
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable:\s+(\d+)", text).group(1)) // 1024


def describe():
    """Machine, versions and settings, as they go into the result. `kind` is what two machines must
    share before their figures are compared."""
    model = cpu_model()
    meminfo = pathlib.Path("/proc/meminfo").read_text()
    memory = int(re.search(r"MemTotal:\s+(\d+)", meminfo).group(1))
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return {
        "kind": f"{model}, {len(cpus())} CPUs" + (", virtual" if " hypervisor" in flags else ""),
        "cpu": model, "cpus": len(cpus()), "memory_mib": memory // 1024,
        "kernel": platform.release(),
        "isolated": pathlib.Path("/sys/devices/system/cpu/isolated").read_text().strip(),
        "dpdk": _first_line("pkg-config", "--modversion", "libdpdk"),
        "compiler": _first_line("c++", "--version"),
        "commit": _first_line("git", "-C", str(pathlib.Path(__file__).parent), "describe",
                              "--always", "--dirty"),
        "load_before": os.getloadavg()[0]}


def slug(model):
    """A file name of a CPU's: intel-xeon-2.80ghz."""
    text = re.sub(r"\((R|TM|r|tm)\)|CPU|Processor|@", " ", model)
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def steal_ticks():
    """{cpu: ticks since boot in which another guest had it}"""
    ticks = {}
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        match = re.match(r"cpu(\d+) (.+)", line)
        if match:
            ticks[int(match.group(1))] = int(match.group(2).split()[7])
    return ticks


class Stolen:
    """Ticks in which another guest had our CPUs within a context; .ticks after it."""

    def __init__(self, **cpus):
        """name=cpu"""
        self.cpus, self.ticks = cpus, {}

    def __enter__(self):
        self._before = steal_ticks()
        return self

    def __exit__(self, *_):
        after = steal_ticks()
        self.ticks = {name: after.get(cpu, 0) - self._before.get(cpu, 0)
                      for name, cpu in self.cpus.items()}


class Waited:
    """How long each of the threads was ready to run and another had its CPU within a context;
    .seconds, by name, after it: None where the kernel does not tell (no schedstat, or no thread is
    known). name=threads; one that has ended counts as never."""

    def __init__(self, **tids):
        self.tids, self.seconds = tids, {}

    def __enter__(self):
        self._before = {name: self._of(tids) for name, tids in self.tids.items()}
        return self

    def __exit__(self, *_):
        self.seconds = {name: self._since(self._before[name], self._of(tids))
                        for name, tids in self.tids.items()}

    @staticmethod
    def _since(before, after):
        return None if before is None or after is None else max(0, after - before)

    @staticmethod
    def _of(tids):
        if not tids or not SCHEDSTAT.exists():
            return None
        total = 0
        for tid in tids:
            with contextlib.suppress(OSError):  # it has ended
                total += int(pathlib.Path(f"/proc/{tid}/schedstat").read_text().split()[1])
        return total / 1e9


def threads(pid, *names):
    """Threads of a process whose name begins with one of these."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if (task / "comm").read_text().startswith(names):
                found.append(int(task.name))
    return found


def kernel_threads(name):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if path.read_text().strip() == name:
                found.append(int(path.parent.name))
    return found


def pollers(pid):
    """Threads of a DPDK process that move packets."""
    return threads(pid, "lcore-worker", "rte-worker")


class Realtime:
    """Gives threads real-time priority for one window, so that what else runs on this machine
    waits. The kernel takes a twentieth of each second back when others starve; the pause after a
    window, a third of it but at most 0.3 s, leaves them more than that in any second."""

    PRIORITY = 10  # what is built or tested in real time beside it waits, too

    def __init__(self, tids, seconds):
        self.tids, self.pause = tids, min(0.3, seconds / 3)

    def __enter__(self):
        self._set(os.SCHED_FIFO, self.PRIORITY)

    def __exit__(self, *_):
        self._set(os.SCHED_OTHER, 0)
        time.sleep(self.pause)

    def _set(self, policy, priority):
        for tid in self.tids:
            os.sched_setscheduler(tid, policy, os.sched_param(priority))


class HugePages:
    """Takes 2 MiB pages from the kernel and gives them back."""

    def __init__(self, mib, wanted=True):
        self.count = mib // 2 if wanted else 0
        self.taken = 0

    def __enter__(self):
        if self.count:
            before = self._number()
            (POOL / "nr_hugepages").write_text(str(before + self.count))
            self.taken = self._number() - before
            if self.taken < self.count:  # who has to do with ordinary pages needs these
                self.__exit__()
                self.taken = 0
        return self

    def refill(self):
        """What another program took of ours, or gave back as if it were its own. To be called while
        nobody of us holds any."""
        short = self.taken - self._number("free_hugepages")
        if short > 0:
            (POOL / "nr_hugepages").write_text(str(self._number() + short))

    def __exit__(self, *_):
        if self.taken:
            (POOL / "nr_hugepages").write_text(str(max(0, self._number() - self.taken)))

    @property
    def enough(self):
        return self.count > 0 and self.taken == self.count

    @property
    def mib(self):
        return 2 * self.taken

    @staticmethod
    def _number(name="nr_hugepages"):
        return int((POOL / name).read_text())
