"""One run of bench/run: rows, in-process benches, targets, result file, report."""

import contextlib
import datetime
import itertools
import json
import os
import pathlib
import shutil
import tempfile
import time

from . import (budget, dut, generators, in_process, kube_proxy, machine, matrix, measure, pktgen,
               ports, profile, pushing, report, stateful, syncing, targets)

TRIAL = 0.1         # seconds of a trial of a search
FLOW_TIMEOUT = 1.2  # after which a first packet without another is forgotten (dut.py), and a little
# seconds and number of the windows of a figure
WINDOWS = {"quick": (0.3, 5), "full": (0.8, 7), "smoke": (0.3, 1)}
WARM_RATE = 5e6  # frames a second in which a pair's device surely has all flows visited once
# Of rows of --full that no target is for; in turn twice as many, of half as long.
MATRIX_WINDOWS = (0.5, 5)
TARGETED = {names[0] for links in targets.PAIRS.values() for names in links.values()}
# A rate at whose nine tenths more is lost than decides a p99 was one of another moment: so many
# times it is searched anew.
SEARCHES = 2


def _text(error):
    return f"{type(error).__name__}: {str(error).strip()}"


class Session:
    """What all rows share."""

    def __init__(self, chosen, binaries, pages, limit):
        """limit: a Budget"""
        self.chosen, self.binaries, self.pages, self.limit = chosen, binaries, pages, limit
        cpus = machine.cpus()
        # The device under test has the last CPU, the generator the one before; control threads and
        # the kernel have the others, or share the generator's.
        self.dut_core = cpus[-1]
        self.generator_core = cpus[-2] if len(cpus) > 1 else cpus[-1]
        self.seconds, self.windows = chosen.windows or WINDOWS[chosen.kind]
        self.rows = []
        self.ndr = {}  # no-drop rates by row
        self.took = {}  # seconds by row or pair

    def say(self, text):
        print(text, flush=True)

    # ---- one row

    def make_dut(self, row, folder):
        kind, _, driver = row["link"].partition("-")
        if kind == "veth":
            link = dut.Link("veth", folder, packet_driver=driver or "auto")
        elif kind == "ports":
            link = dut.Link("ports", folder,
                            two_ports=ports.Ports(self.chosen.ports, self.chosen.dut_mac))
        else:
            link = dut.Link(row["link"], folder)
        core, point, huge = self.dut_core, row["point"], self.pages.enough
        name = row["dut"]
        if name == "sluiced":
            kind = pushing.PushedSluiced if point["pushed"] else dut.Sluiced
            return kind(link, folder, core, point, self.binaries, huge, point["workers"])
        if name.startswith("testpmd-"):
            return dut.Testpmd(link, folder, core, name.split("-")[1], huge)
        if name == "probe":
            return dut.Probe(link, folder, core, point, self.binaries, huge)
        if name.startswith("kube-proxy-"):
            return kube_proxy.KubeProxy(link, folder, core, point, self.binaries,
                                        name.removeprefix("kube-proxy-"))
        if name.startswith("kernel-"):
            return dut.Kernel(link, folder, core, point, self.binaries, *name.split("-")[1:])
        if name == "command":
            return dut.Command(link, folder, core, self.chosen.dut, self.chosen.dut_translates)
        raise ValueError(f"row {row['name']}: no device {name}")

    def unavailable(self, row):
        """Why a row cannot be measured here, or None."""
        name = row["dut"]
        if name.startswith("testpmd") and not dut.Testpmd.found():
            return "dpdk-testpmd is not found"
        if row["generator"] == "pktgen" and not pktgen.found():
            return "pktgen is not found (PKTGEN names its binary)"
        if name.startswith("kube-proxy-") and \
                (why := kube_proxy.missing(name.removeprefix("kube-proxy-"))):
            return why
        if row["point"]["workers"] > 1:
            return ("the generator has one queue; two workers are measured without I/O, "
                    "bench/pipeline --modes")
        if not self.pages.enough and row["link"] in ("memif-zero-copy", "vhost"):
            return "needs huge pages"
        return self.too_large(row["point"])

    def too_large(self, point):
        """Why a point does not fit the memory, or None."""
        if point["flows"] <= 1_000_000:
            return None
        # Tables of both families (192 and 320 bytes a connection), and images of the frames, twice
        # 64 or 128 bytes.
        tables = dut.connections_of(point) * 512 >> 20
        images = point["flows"] * (150 if point["family"] == 4 else 300) >> 20
        ordinary = machine.available_mib() * 0.8
        if self.pages.enough and tables > self.pages.mib:
            return f"needs {tables} MiB of huge pages"
        needed = images if self.pages.enough else images + tables
        return f"needs {needed} MiB" if needed > ordinary else None

    def measure(self, row):
        """Adds the row's figures to it."""
        reason = self.unavailable(row)
        if reason:
            row["not_measured"] = reason
            return
        try:
            with self.standing(row) as (device, generator):
                self._all(row, device, generator)
        except Exception as error:  # whatever it is: the other rows have taken half an hour
            row["failed"] = _text(error)

    @contextlib.contextmanager
    def standing(self, row):
        """Device and generator of a row, all flows opened."""
        row["oversubscribed"] = 1 + row["point"]["workers"] > len(machine.cpus())
        folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-bench-"))
        before = machine.steal_ticks()
        try:
            with self.make_dut(row, folder) as device:
                row["device"] = device.name
                with device.join(lambda: self.make_generator(device, row, folder)) as generator:
                    row["generator"] = generator.name
                    row["opened"] = generator.opened
                    yield device, generator
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            after = machine.steal_ticks()
            row["steal_ticks"] = {cpu: after[cpu] - before[cpu] for cpu in after}

    def _all(self, row, device, generator):
        for what in row["measures"]:
            if what not in row:  # the throughput of a pair is there before
                getattr(self, "_" + what)(row, device, generator)

    def measure_pair(self, pair):
        """The rows of a pair: their devices are there at once, all but one held, and the windows
        of their throughput lie in turn. What else is asked of them follows, row by row."""
        with contextlib.ExitStack() as stack:
            sides = {row["name"]: side for row in pair if (side := self._side(row, stack))}
            seconds, turns = self.seconds / 2, 4 * self.windows
            if self._is_short(pair[0]):
                seconds, turns = MATRIX_WINDOWS[0] / 2, 2 * MATRIX_WINDOWS[1]
            warm = max(seconds / 2, pair[0]["point"]["flows"] / WARM_RATE)
            figures = measure.in_turn(sides, seconds, turns, warm)
            for row in pair:
                figure = figures.get(row["name"])
                if isinstance(figure, Exception):
                    row["failed"] = _text(figure)
                elif figure:
                    row["throughput"] = figure
                    self._rest(row, *sides[row["name"]])

    def _is_short(self, row):
        """No target is for it."""
        return (self.chosen.kind == "full" and not self.chosen.windows
                and row["pair"] not in TARGETED)

    def _side(self, row, stack):
        """Its device, held, and its generator; None: it cannot be measured or has failed."""
        reason = self.unavailable(row)
        if reason:
            row["not_measured"] = reason
            return None
        try:
            device, generator = stack.enter_context(self.standing(row))
            stack.enter_context(device.held())
            return device, generator
        except Exception as error:
            row["failed"] = _text(error)
            return None

    def _rest(self, row, device, generator):
        try:
            with device.going():
                self._all(row, device, generator)
        except Exception as error:
            row["failed"] = _text(error)

    def make_generator(self, device, row, folder):
        # Two pollers of one CPU would wait for each other if neither gave way.
        realtime = self.chosen.realtime and not row["oversubscribed"]

        def own():
            return generators.Embedded(self.binaries, device, row["point"], self.generator_core,
                                       self.pages.enough, folder, realtime)
        if row["generator"] == "pktgen":
            return pktgen.Pktgen(device, row["point"], self.generator_core, folder, own, realtime)
        return own()

    def _throughput(self, row, device, generator):
        seconds, windows = MATRIX_WINDOWS if self._is_short(row) else (self.seconds, self.windows)
        row["throughput"] = measure.throughput(device, generator, seconds, windows)

    def _search(self, row, device, generator):
        most = row["throughput"]["median"] * 1.1
        # What pushes lie beside is a rate without loss; nobody asks for another one.
        names = ("ndr",) if "pushes" in row["measures"] else ("ndr", "pdr")
        row["search"] = measure.search(generator, most, min(TRIAL, self.seconds), names=names)
        self.ndr[row["name"]] = row["search"]["ndr"]

    def _latency(self, row, device, generator):
        """At parts of the row's own no-drop rate, or of that of the row its pair is named after.
        The largest first, as that rate is the newest then."""
        own = "search" in row
        ndr = row["search"]["ndr"] if own else self.ndr.get(row["pair"], 0)
        if ndr <= 0:  # a frame was lost at every rate: a part of nothing
            return
        most, searches = self._latency_at(generator, ndr * 0.9), 1
        while own and searches < SEARCHES and most["lost"] > measure.DECIDES:
            self._search(row, device, generator)
            searches += 1
            ndr = row["search"]["ndr"]
            if ndr <= 0:
                return
            most = self._latency_at(generator, ndr * 0.9)
        row["searches"] = searches
        row["latency"] = {"10": self._latency_at(generator, ndr * 0.1),
                          "50": self._latency_at(generator, ndr * 0.5), "90": most}

    def _latency_at(self, generator, rate):
        seconds, windows = measure.LATENCY
        return measure.latency(generator, rate, min(seconds, self.seconds),
                               min(windows, self.windows))

    def _creation(self, row, device, generator):
        """Frames a second with hardly a loss when so many are a flow's first, in millions."""
        share = row["point"]["fresh"]
        return measure.search(generator, row["throughput"]["median"] * 1.1,
                              min(TRIAL, self.seconds), names=("pdr",), settle=FLOW_TIMEOUT,
                              fresh=share)["pdr"]

    def _new_flows(self, row, device, generator):
        """The rate without loss at a share of new flows: of all frames, and of new flows."""
        share, rate = row["point"]["fresh"], self._creation(row, device, generator)
        row["new_flows"] = {"share": share, "mpps": rate, "flows_millions": rate * share}

    def _flood(self, row, device, generator):
        """Established flows at a third of what the device does, beside four times the new flows it
        can open."""
        established = row["throughput"]["median"] / 3
        creation = self._creation(row, device, generator) * row["point"]["fresh"]
        if creation <= 0:
            raise RuntimeError("no rate of new flows without loss: nothing to flood with")
        total = established + 4 * creation
        flood = {"rate": int(total * 1e6), "fresh": 4 * creation / total}
        row["flood"] = {"creation_millions": creation, **measure.goodput_beside(
            device, generator, self.seconds, self.windows, {"rate": int(established * 1e6)}, flood)}
        row["profile"] = profile.of_pollers(device, generator, **flood)

    def _pushes(self, row, device, generator):
        """At nine tenths of the no-drop rate, with and without a control plane that pushes."""
        rate = row["search"]["ndr"] * 0.9
        if rate <= 0:
            raise RuntimeError("no rate without loss: nothing to push beside")
        generator.polite = True
        row["pushes"] = {
            name: pushing.beside(device, generator, rate, self.seconds, min(3, self.windows),
                                 command)
            for name, command in pushing.PUSHES.items()}

    def _sync(self, row, device, generator):
        row["sync"] = syncing.measure(device)

    def _profile(self, row, device, generator):
        row["profile"] = profile.of_pollers(device, generator)

    def _foreign(self, row, device, generator):
        share = row["point"]["foreign"]
        rate = row["throughput"]["median"] / 2 * 1e6
        row["foreign"] = measure.goodput_beside(
            device, generator, self.seconds, self.windows, {"rate": int(rate)},
            {"rate": int(rate / (1 - share)), "foreign": share})

    # ---- all

    def run_rows(self):
        rows = matrix.ROWS[self.chosen.kind]()
        if self.chosen.ports:
            rows = matrix.ports() + rows
        if self.chosen.dut:
            rows.insert(4, matrix.row("dut", "command", pair="base"))
        if self.chosen.only:
            words = self.chosen.only.split(",")
            rows = [r for r in rows if any(word in r["name"] for word in words)]
        for name, group in itertools.groupby(rows, lambda row: row["pair"] or row["name"]):
            group = list(group)
            began = time.monotonic()
            self.pages.refill()
            if not self.limit.allows_rows(group):
                for row in group:
                    row["not_measured"] = budget.NO_TIME
            elif group[0]["pair"]:
                self.measure_pair(group)
            else:
                self.measure(group[0])
            self.took[name] = round(time.monotonic() - began, 1)
            self.rows += group
            for row in group:
                self.say(report.row_line(row))
        return rows


def hugepages_mib(kind):
    """What the largest row or pair of a run takes: tables of sluiced and the probe, packets of
    all."""
    return {"quick": 3200, "full": 8_800, "smoke": 0}[kind]


@contextlib.contextmanager
def timed(took, part):
    """Adds the seconds that the context takes to a part of the run."""
    began = time.monotonic()
    yield
    took[part] = round(took.get(part, 0) + time.monotonic() - began, 1)


def took_line(took):
    total = round(sum(took.values()))
    return (f"# took {total // 60} min {total % 60} s: "
            + ", ".join(f"{part} {seconds:.0f} s" for part, seconds in took.items()))


def run(chosen, binaries):
    """@return exit status: 1 when a row or a bench failed."""
    took, limit = {}, budget.Budget(chosen.kind)
    wanted = not chosen.no_hugepages and chosen.kind != "smoke"
    with contextlib.ExitStack() as stack:
        pages = stack.enter_context(machine.HugePages(hugepages_mib(chosen.kind), wanted))
        description = machine.describe()
        session = Session(chosen, binaries, pages, limit)
        session.say(f"# {description['kind']}; {'huge' if pages.enough else 'ordinary'} pages; "
                    f"device on CPU {session.dut_core}, generator on {session.generator_core}")
        with timed(took, "rows"):
            session.run_rows()
        inside, connections = {}, {}
        if chosen.kind != "smoke" and not chosen.only:
            with timed(took, "wrk"):
                connections = stateful.run(binaries, chosen.kind, session.say)
    if chosen.kind != "smoke" and not chosen.only:
        shorter = "quick" if chosen.windows else chosen.kind
        with timed(took, "without I/O"):
            inside = in_process.run(shorter, binaries, session.dut_core, session.say,
                                    not chosen.no_hugepages)
    failed = [row["name"] for row in session.rows if "failed" in row]
    failed += inside.get("failed", [])
    failed += [f"wrk {kind}" for kind, runs in connections.items() if "failed" in runs]
    if chosen.kind == "smoke":
        return 1 if failed else 0
    result = {"format": 1, "date": datetime.date.today().isoformat(), "run": chosen.kind,
              "machine": description,
              "settings": {"hugepages": {"rows": pages.enough, **inside.get("hugepages", {})},
                           "window": measure.WINDOW,
                           "seconds": session.seconds, "windows": session.windows,
                           "realtime": chosen.realtime, "dut_core": session.dut_core,
                           "generator_core": session.generator_core},
              "rows": session.rows, "in_process": inside, "stateful": connections}
    result["targets"] = targets.reached(result)
    result["floors"] = targets.floors(result)
    if inside:
        short = [t["name"] for t in result["targets"] if not t.get("pass", True)]
        with timed(took, "profiles"):
            result["profiles"] = in_process.profiles(shorter, short, binaries, session.dut_core,
                                                     session.say, not chosen.no_hugepages, limit)
    result["took_seconds"] = {**took, "each": session.took}
    for line in [*map(targets.line, result["targets"]), *map(targets.floor_line, result["floors"])]:
        session.say(line)
    for path in report.write(result, pathlib.Path(chosen.out)):
        session.say(f"wrote {os.path.relpath(path)}")
    session.say(took_line(took))
    return 1 if failed else 0
