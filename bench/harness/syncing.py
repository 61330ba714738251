"""How long a kernel mode takes to make the kernel match, as its own metrics tell.

kube-proxy's and ours have the same names. CPU time is of the process and of the programs it ran.
"""

import datetime
import os
import re
import statistics
import time
import typing

from . import cluster, dut

CHANGES = 20
PAUSE = 0.25       # seconds between them: most are in force then, and nobody has asked meanwhile
SECONDS = 120      # in which one must be
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
TICK = os.sysconf("SC_CLK_TCK")


class Durations(typing.NamedTuple):
    count: int
    seconds: float


class Syncs(typing.NamedTuple):
    full: Durations
    partial: Durations
    programming: Durations  # from the change of an endpoint until it was in force
    all: Durations  # whichever it was; a mode that knows no partial ones (ipvs) tells only this


NAMES = {"full": "kubeproxy_sync_full_proxy_rules_duration_seconds",
         "partial": "kubeproxy_sync_partial_proxy_rules_duration_seconds",
         "programming": "kubeproxy_network_programming_duration_seconds",
         "all": "kubeproxy_sync_proxy_rules_duration_seconds"}


def read(page, family):
    """Of one family, from a page of metrics; what is not there has happened no time."""
    def value(name):
        match = re.search(rf'^{name}{{[^}}]*ip_family="IPv{family}"[^}}]*}} (\S+)$', page, re.M)
        return float(match.group(1)) if match else 0

    return Syncs(**{what: Durations(int(value(name + "_count")), value(name + "_sum"))
                    for what, name in NAMES.items()})


def of(device):
    """Errors: CalledProcessError, it does not serve (which is not that nothing happened)."""
    page = device.space.run("curl", "-sf", "http://127.0.0.1:10249/metrics").stdout
    return read(page, device.point["family"])


def cpu_seconds(pid):
    """Of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / TICK


def change_of(point, number, turn):
    """Service `number` with one endpoint fewer in every other turn, as a list of slices."""
    slices = list(cluster.endpoint_slices(number, point["backends"], point["family"],
                                          point["proto"], point["mode"]))
    if turn % 2 == 0:
        slices[-1]["endpoints"].pop()
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
    slices[-1]["metadata"]["annotations"] = {TRIGGER: now.replace("+00:00", "Z")}
    return slices[-1:]


def measure(device):
    """Of a device that is ready, in ms: full (the first sync of all), ready_cpu (all CPU time until
    now), and of one changed endpoint change (until in force), change_sync and change_cpu. Errors:
    DutError, it made another number of full syncs than one, whose mean would be of none of them."""
    start = of(device)
    if start.full.count != 1:
        raise dut.DutError(f"{start.full.count} full syncs instead of one")
    figures = {"full_ms": start.full.seconds * 1e3,
               "ready_cpu_ms": cpu_seconds(device.process.pid) * 1e3}
    programming, syncs, cpu = [], [], 0.0
    for turn in range(CHANGES):
        before, used = of(device), cpu_seconds(device.process.pid)
        device.change(change_of(device.point, turn // 2 * 7 % device.point["services"], turn))
        time.sleep(PAUSE)
        until = cpu_seconds(device.process.pid)
        now = []

        def in_force():
            now.append(of(device))
            return now[-1].programming.count > before.programming.count

        if not in_force():  # then the questions are in its CPU time, too
            dut.wait_for("a change is not in force", in_force, SECONDS, device.process, device.log,
                         every=PAUSE)
            until = cpu_seconds(device.process.pid)
        cpu += until - used
        after = now[-1]
        programming.append(after.programming.seconds - before.programming.seconds)
        # Whichever of the two it was: a full one takes the place of a partial one now and then.
        syncs.append(sum(a.seconds - b.seconds for a, b in zip(after[:2], before[:2])))
    return {**figures, "change_ms": statistics.median(programming) * 1e3,
            "change_sync_ms": statistics.median(syncs) * 1e3,
            "change_cpu_ms": cpu / CHANGES * 1e3}
