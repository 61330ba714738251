"""Tests of the parts that compute: python3 -m harness.selftest, in bench/."""

import pathlib
import tempfile
import threading
import unittest
from unittest import mock

from . import (cluster, in_process, machine, matrix, measure, profile, report,
               session, stateful, targets)
from .beside_selftest import Goodput, Pushes, Turns  # noqa: F401  (their tests are of this run)
from .kube_proxy_selftest import KubeProxy  # noqa: F401  (its tests are of this run)
from .links_selftest import Links, PortsOfThisMachine  # noqa: F401  (as above)
from .session_selftest import NoDropRate, Time  # noqa: F401  (as above)


class FakeGenerator:
    """Passes `limit` frames a second of established flows and loses the rest, and every first frame
    of a new flow. Of every `spoilt[1]` trials the first `spoilt[0]` lose frames at any rate."""

    def __init__(self, limit, spoilt=(0, 1)):
        self.limit, self.spoilt = limit, spoilt
        self.trials = 0

    def passed(self, rate):
        """Frames a second that come back."""
        return min(rate, self.limit)

    def load(self, seconds, rate, fresh=0):
        held_up = self.trials % self.spoilt[1] < self.spoilt[0]
        self.trials += 1
        sent = int(rate * seconds)
        fresh_sent = int(sent * fresh)
        offered = sent - fresh_sent
        lost = sent - int(self.passed(rate) * seconds) + (300 if held_up else 0)
        return {"seconds": seconds, "offered": offered, "fresh_sent": fresh_sent,
                "fresh_received": 0, "received": max(0, offered - lost), "skipped": 0,
                "latency_us": {"p50": 0}}


class GrowingLoss(FakeGenerator):
    """Loses nothing up to the limit, then a share that reaches a hundredth at twice the limit."""

    def passed(self, rate):
        return rate * (1 - max(0, rate / self.limit - 1) / 100)


def result_with(rate, spread=0.01, **more):
    row = matrix.row("base")
    row.update(oversubscribed=False, throughput={"median": rate, "spread": spread, "windows": [],
                                                 "limit": {"device": True, "generator_idle": 1}})
    return {"machine": {"isolated": "", "cpus": 2}, "rows": [row], "in_process": {}, **more}


class Search(unittest.TestCase):
    def test_finds_the_no_drop_rate_within_its_bound_of_trials(self):
        generator = FakeGenerator(3.3e6)
        found = measure.search(generator, 10)
        self.assertAlmostEqual(found["ndr"], 3.3, delta=0.2)
        self.assertGreaterEqual(found["pdr"], found["ndr"])
        self.assertLessEqual(generator.trials, 16 * measure.TRIALS)
        self.assertEqual(found["spoilt"], 0)

    def test_is_not_misled_by_one_spoilt_trial_of_five_and_tells_of_it(self):
        found = measure.search(FakeGenerator(3.3e6, spoilt=(1, 5)), 10)
        self.assertAlmostEqual(found["ndr"], 3.3, delta=0.2)
        self.assertGreater(found["spoilt"], 0)

    def test_finds_no_rate_where_most_trials_lose(self):
        self.assertEqual(measure.search(FakeGenerator(3.3e6, spoilt=(3, 5)), 10)["ndr"], 0)

    def test_tells_no_loss_from_little_loss_where_loss_grows_with_the_rate(self):
        found = measure.search(GrowingLoss(3e6), 10)
        self.assertAlmostEqual(found["ndr"], 3, delta=0.2)
        self.assertAlmostEqual(found["pdr"], 4.5, delta=0.2)

    def test_decides_a_rate_as_soon_as_the_trials_left_out_cannot_change_it(self):
        self.assertIsNone(measure.verdict([0, 0], 0))
        self.assertIsNone(measure.verdict([0, 0.1, 0.1, 0], 0))
        self.assertTrue(measure.verdict([0, 0.1, 0, 0], 0))
        self.assertFalse(measure.verdict([0.1, 0.1, 0.1], 0))

    def test_of_a_device_that_loses_everything_is_zero(self):
        self.assertEqual(measure.search(FakeGenerator(0), 10)["ndr"], 0)

    def test_of_a_device_that_opens_no_flow_is_zero(self):
        for share in (0.5, 1):
            self.assertEqual(measure.search(FakeGenerator(5e6), 10, fresh=share)["pdr"], 0)


class Latency(unittest.TestCase):
    @staticmethod
    def window(p99, steal=0, waited=0.0, held=0.01, lost=0, skipped=0):
        return {"seconds": 1, "offered": 1000, "received": 1000 - lost, "skipped": skipped,
                "latency_us": {"p50": p99 / 2, "p99": p99},
                "steal": {"device": steal, "generator": 0}, "held": held,
                "waited": {"device": waited, "generator": 0}}

    @staticmethod
    def of(*windows, count=3):
        return measure.latency(mock.Mock(load=mock.Mock(side_effect=windows)), 1, 1, count)

    def test_of_a_device_that_loses_everything_is_an_error(self):
        with self.assertRaises(RuntimeError):
            measure.latency(FakeGenerator(0), 1, 1, 1)

    def test_is_the_median_window_where_nobody_disturbed_any(self):
        found = self.of(self.window(7), self.window(30), self.window(9))
        self.assertEqual((found["p99"], found["p50"]), (9, 4.5))
        self.assertEqual(measure.latency_text(found), "9 us (7 to 30 in 3 windows)")

    def test_repeats_a_window_that_was_disturbed_and_keeps_and_tells_it(self):
        for sign in ({"steal": 2}, {"waited": 0.02}, {"held": 0.03}):
            bad = self.window(2000, **sign)
            found = self.of(self.window(7), bad, self.window(9), bad, self.window(8))
            self.assertEqual(found["p99"], 8)
            self.assertEqual([w["disturbed"] for w in found["windows"]],
                             [False, True, False, True, False])
            self.assertEqual(found["host"]["steal"][1], sign.get("steal", 0))
            self.assertEqual(measure.latency_text(found),
                             "8 us (7 to 2000 in 5 windows, 2 of them disturbed)")

    def test_that_was_disturbed_all_the_time_is_that_of_all_windows_and_says_so(self):
        bad = [self.window(p99, steal=1) for p99 in (100, 200, 300, 400, 500)]
        found = self.of(*bad, self.window(7))
        self.assertEqual((found["p99"], found["quiet"]), (250, 1))
        self.assertIn("5 of them disturbed and not left out", measure.latency_text(found))

    def test_tells_what_was_lost_and_what_the_generator_left_out(self):
        found = self.of(self.window(7), self.window(8, lost=20),
                        self.window(9, lost=5, skipped=250))
        for window, lost in zip(found["windows"], (0, 0.02, 0.005)):
            self.assertAlmostEqual(window["lost"], lost)
        self.assertAlmostEqual(found["lost"], 0.005)
        self.assertEqual(measure.latency_text(found),
                         "8 us (7 to 9 in 3 windows, 0.50% lost, 2.00% in the worst, "
                         "generator left out up to 20.00%)")

    def test_reaches_no_target_where_the_slowest_frames_may_be_among_those_that_were_lost(self):
        for lost, passes in ((9, True), (10, False)):
            result = result_with(1)
            found = self.of(*[self.window(7, lost=lost)] * 3)
            result["rows"][0]["latency"] = dict.fromkeys(("10", "50", "90"), found)
            self.assertEqual(Targets.named(result, "latency_p99_us_at_10")["pass"], passes)

    def test_tells_of_whom_it_is_not_known_who_else_had_its_cpu(self):
        found = self.of(*[self.window(7, waited=None)] * 3)
        self.assertEqual(found["quiet"], 3)
        self.assertIn("of device not known who else had its CPU", measure.latency_text(found))

    def test_is_told_beside_that_of_devices_that_do_less(self):
        result = result_with(1)
        shares = ("10", "50", "90")
        probe = {**matrix.row("probe", "probe"), "oversubscribed": False}
        for row, held, p99 in ((result["rows"][0], (0.01, 0.03, 0.02), 30), (probe, (0, 0, 0), 28)):
            found = {**self.of(*[self.window(p99)] * 3), "host": {"held": held}}
            row["latency"] = dict.fromkeys(shares, found)
            result["rows"] += [row] if row["name"] == "probe" else []
        [target] = [t for t in targets.reached(result) if t["name"] == "latency_p99_us_at_10"]
        self.assertEqual(target["measured"], 30)
        for words in ("at the same rate probe 28 us", "away for 2.0%", "30 us (30 to 30"):
            self.assertIn(words, target["proof"])


class Waited(unittest.TestCase):
    def test_is_no_time_of_threads_that_do_not_run_or_have_ended(self):
        with machine.Waited(device=[threading.get_native_id()], generator=[1 << 30]) as waited:
            pass
        self.assertEqual(waited.seconds["generator"], 0)
        self.assertGreaterEqual(waited.seconds["device"], 0)

    def test_is_unknown_where_the_kernel_does_not_tell_or_no_thread_is_known(self):
        with machine.Waited(device=[]) as waited:
            pass
        self.assertIsNone(waited.seconds["device"])
        with mock.patch.object(machine, "SCHEDSTAT", pathlib.Path("/proc/self/no-such-file")), \
                machine.Waited(generator=[threading.get_native_id()]) as waited:
            pass
        self.assertIsNone(waited.seconds["generator"])


class Limit(unittest.TestCase):
    @staticmethod
    def proof(p50_us, full):
        result = {"idle": 0, "received": 5e6, "seconds": 1, "latency_us": {"p50": p50_us}}
        return measure.limit_of({}, {"poll_total": 100, "rx_full_bursts": full}, result, 512)

    def test_is_the_device_when_frames_wait_for_it_and_its_bursts_are_full(self):
        self.assertTrue(self.proof(p50_us=90, full=99)["device"])

    def test_is_not_the_device_when_frames_are_back_at_once(self):
        self.assertFalse(self.proof(p50_us=8, full=99)["device"])

    def test_is_not_the_device_without_a_latency_that_shows_it(self):
        result = {"idle": 0, "received": 5e6, "seconds": 1}
        self.assertFalse(measure.limit_of({}, {}, result, 512)["device"])

    def test_is_not_the_device_when_its_bursts_are_not_full(self):
        self.assertFalse(self.proof(p50_us=90, full=50)["device"])


class Changes(unittest.TestCase):
    def test_within_both_spreads_are_none(self):
        [(_, _, _, verdict)] = report.changes(result_with(1.01), result_with(1.0))
        self.assertIn("same", verdict)

    def test_beyond_them_are_named(self):
        [(_, _, _, verdict)] = report.changes(result_with(0.5), result_with(1.0))
        self.assertIn("worse", verdict)


class Targets(unittest.TestCase):
    @staticmethod
    def beside_a_peer(rate, limit=True, peer_limit=True, suffix=""):
        result = result_with(rate)
        result["rows"][0]["name"] = "base" + suffix
        peer = {**result_with(1.0)["rows"][0], "name": "macswap" + suffix, "dut": "testpmd-macswap"}
        result["rows"].append(peer)
        for row, device in zip(result["rows"], (limit, peer_limit)):
            row["throughput"]["limit"]["device"] = device
        return result

    @staticmethod
    def named(result, name="memif_64k/macswap"):
        [target] = [t for t in targets.reached(result) if t["name"] == name]
        return target

    def test_are_reached_only_where_both_devices_were_the_limit(self):
        for limit, peer_limit in ((False, True), (True, False)):
            target = self.named(self.beside_a_peer(0.8, limit, peer_limit))
            self.assertFalse(target["pass"])
            self.assertIn("limit", target["proof"])
        self.assertTrue(self.named(self.beside_a_peer(0.8))["pass"])

    def test_are_all_on_a_line_of_a_run_that_measured_none_and_none_passes(self):
        empty = {**result_with(1), "rows": []}
        for target in targets.reached(empty):
            self.assertNotIn("pass", target)
            self.assertRegex(targets.line(target), r"^target \S+ +not measured \(.+\)$")
        self.assertEqual(len(targets.reached(empty)), len(targets.TARGETS))

    def test_leave_oversubscribed_and_failed_rows_out_and_say_so(self):
        for key, value, words in (("oversubscribed", True, "more pollers"),
                                  ("failed", "it fell", "it fell"),
                                  ("not_measured", "no time", "no time")):
            result = self.beside_a_peer(0.8)
            result["rows"][0][key] = value
            target = self.named(result)
            self.assertNotIn("pass", target)
            self.assertIn(words, target["not_measured"])

    def test_take_the_better_link_of_those_that_count(self):
        result = self.beside_a_peer(0.7)
        result["rows"] += self.beside_a_peer(0.8, suffix="-zero-copy")["rows"]
        self.assertIn("memif-zero-copy", self.named(result)["proof"])
        result["rows"][-1]["throughput"]["limit"]["device"] = False
        self.assertEqual(self.named(result)["measured"], 0.7)

    def test_have_a_floor_where_the_probe_was_measured(self):
        result = self.beside_a_peer(0.5)
        result["rows"].append({**result_with(0.9)["rows"][0], "name": "probe", "dut": "probe"})
        self.assertEqual(targets.floors(result), [("memif_64k/macswap", 0.9,
                                                   "the bare probe over the same memif")])

    def test_have_the_floors_that_a_bench_without_io_tells(self):
        text = "target a-b  measured  88.84 wanted  60.00 goal  60.00 short\n" \
               "floor  a-b                       -1.50 (median 2.00; two loops (bare), less one)\n" \
               "floor other 0.7 (what it is)\n# floor is no word of its own here 1.0 (no)\n"
        found = in_process.floors_of(text)
        self.assertEqual(found, [("a-b", -1.5, "median 2.00; two loops (bare), less one"),
                                 ("other", 0.7, "what it is")])
        result = {**result_with(1), "in_process": {"floors": found}}
        self.assertEqual(targets.floors(result), found)
        self.assertEqual(targets.floor_line(found[1]),
                         "floor  other                      0.70 (what it is)")

    def test_of_pushes_count_on_two_cpus_what_sluiced_did_not_lose(self):
        result = result_with(1)
        result["rows"][0].update(name="pushes", pushes={"changes_10ms": {
            "late": False, "ratio": {"goodput": 0.7, "taken": 0.999}, "pushed": 50, "asked": 50}})
        pushes = result["rows"][0]["pushes"]
        pushes["snapshots_1s"] = pushes["changes_10ms"]
        for cpus, passes in ((2, True), (4, False)):
            result["machine"]["cpus"] = cpus
            self.assertEqual(self.named(result, "changes_10ms_goodput")["pass"], passes)
        pushes["changes_10ms"].update(late=True)
        self.assertNotIn("pass", self.named(result, "changes_10ms_goodput"))

    def test_of_a_bench_without_io_keep_which_way_is_better_and_their_remark(self):
        text = "target a  measured  90.00 wanted  80.00 goal  60.00 short  # for 5 s\n" \
               "target b  measured   2.00 wanted   1.50 goal   3.00 pass\n"
        found = in_process.targets_of(text)
        self.assertEqual([t["more"] for t in found], [False, True])
        self.assertEqual([t["proof"] for t in found], ["for 5 s", "no I/O"])

    def test_of_a_bench_without_io_tell_their_median_too(self):
        text = "target a-b  measured  59.00 wanted  60.00 goal  60.00 pass" \
               "  # 5 % quantile; median -64.50; no I/O\n"
        [found] = in_process.targets_of(text)
        self.assertEqual((found["measured"], found["median"]), (59, -64.5))
        self.assertIn("5 % quantile; median -64.50", targets.line(found))

    def test_of_a_bench_without_io_keep_its_verdict_on_the_exact_figure(self):
        text = "target workers_2/1  measured  1.90 wanted  1.90 goal  2.00 short\n" \
               "target other  measured  1.25 wanted  1.25 goal  1.25 short\n"
        result = {**result_with(1), "in_process": {"targets": in_process.targets_of(text)}}
        self.assertFalse(self.named(result, "workers_2/1")["pass"])
        self.assertTrue(self.named(result, "workers_2/1")["more"])
        self.assertFalse(self.named(result, "other")["pass"])

    def test_of_a_bench_that_failed_are_none(self):
        script = "echo 'target a  measured  0.00 wanted  80.00 goal  60.00 pass'; exit 1"
        with mock.patch.object(in_process, "commands",
                               lambda *_: {"pipeline": ["sh", "-c", script]}):
            done = in_process.run("quick", None, min(machine.cpus()), lambda _: None, False)
        self.assertEqual((done["targets"], done["failed"]), ([], ["pipeline"]))
        result = {**result_with(1), "in_process": done}
        self.assertIn("failed", self.named(result, "nat4_64k")["not_measured"])


class InProcess(unittest.TestCase):
    def test_tells_of_each_bench_on_which_pages_it_ran(self):
        script = "echo 'target {}  measured  1.00 wanted  2.00 goal  2.00 pass'"
        commands = {name: ["sh", "-c", script.format(name), *options]
                    for name, options in (("start", ["--hugepages"]), ("change", []))}
        with mock.patch.object(in_process, "commands", lambda *_: commands), \
                mock.patch.object(in_process, "_before", lambda *_: ()):
            done = in_process.run("quick", None, 0, lambda _: None, False)
        self.assertEqual(done["hugepages"], {"start": True, "change": False})
        self.assertEqual([t["proof"] for t in done["targets"]],
                         ["no I/O; huge pages", "no I/O; ordinary pages"])
        self.assertEqual(report._pages({"rows": False, **done["hugepages"]}),
                         "huge pages: start; ordinary: rows, change")

    def test_leaves_out_4_million_flows_where_their_tables_have_no_room(self):
        for huge, mib, flows, memory in ((True, 0, "64000,4000000", "7200"),
                                         (False, 9100, "64000,4000000", "7200"),
                                         (False, 8900, "64000", "1800")):
            with mock.patch.object(machine, "available_mib", lambda: mib):
                command = in_process.commands("quick", pathlib.Path(), huge)["pipeline"]
            self.assertEqual(command[command.index("--flows") + 1], flows)
            self.assertEqual(command[command.index("--memory-mib") + 1], memory)

    def test_that_takes_too_long_is_ended_and_has_failed(self):
        with mock.patch.object(in_process, "commands", lambda *_: {"start": ["sleep", "60"]}), \
                mock.patch.object(in_process, "SECONDS", 0.1):
            done = in_process.run("quick", None, min(machine.cpus()), lambda _: None, False)
        self.assertEqual(done["failed"], ["start"])


class Profile(unittest.TestCase):
    TEXT = "   120  librte_net_memif.so  [.] eth_memif_rx\n" \
           "   300  sluiced              [.] run<a, b<d>>(c&)\n" \
           "    10  [kernel.kallsyms]    [k] irq\n" \
           "     7  librte_hash.so.23.0  [.] 0x0000000000005457\n" \
           "     3  librte_hash.so.23.0  [.] 0x0000000000004768\n" \
           "   900  sluice-bench         [.] sluice::bench::Ring::put\n"
    COUNTS = {"run(c&)": 300, "eth_memif_rx": 120, "irq (kernel)": 10,
              "librte_hash.so.23.0, not named": 10}

    def test_counts_what_is_not_the_benchs_own_a_library_without_names_as_one(self):
        self.assertEqual(profile.counts_of(self.TEXT), self.COUNTS)

    def test_is_of_the_symbols_with_the_most_samples(self):
        self.assertEqual(profile.shares_of({"a": 1, "b": 3, "c": 0}), [(0.75, "b"), (0.25, "a")])

    def test_is_without_empty_polls(self):
        rest = {"run": 300, "clock": 100, "rare": 1}
        loaded = {"run": 900, "clock": 100, "rx": 1000}  # of which 400 are what rest is made of
        idle = profile.idle_share(loaded, rest)
        self.assertAlmostEqual(idle, 0.2, delta=0.01)
        left = profile.without(loaded, rest, idle)
        self.assertAlmostEqual(left["run"], 600, delta=5)
        self.assertEqual(left["rx"], 1000)
        self.assertLess(left.get("clock", 0), 1)

    def test_without_one_at_rest_keeps_everything(self):
        self.assertEqual(profile.idle_share({"rx": 100}, {}), 0)
        self.assertEqual(profile.without({"rx": 100}, {}, 0), {"rx": 100})

    def test_has_a_section_of_each_target_that_the_pipeline_bench_measures(self):
        for name, (_, _, _, command) in targets.TARGETS.items():
            if "bench/pipeline" in command:
                self.assertIsNotNone(in_process.section_of(name, False), name)

    def test_of_a_bench_is_in_the_report_with_what_it_takes_of_each_packet(self):
        result = {**result_with(1), "targets": [], "profiles": {
            "nat4_64k": {"section": "nat4_64k", "each": 200, "unit": "cycles",
                         "symbols": [(0.25, "worst")]}}}
        self.assertIn("| 25.0% | 50.0 | `worst` |", report.profiles(result))

    def test_is_in_the_report_of_a_target_that_is_short(self):
        for rate, shown in ((0.5, True), (0.9, False)):
            result = Targets.beside_a_peer(rate)
            result["rows"][0]["profile"] = {"symbols": [(0.3, "worst")], "idle": 0}
            result["targets"] = targets.reached(result)
            self.assertEqual("worst" in report.profiles(result), shown)


class Rows(unittest.TestCase):
    def test_name_every_row_that_a_target_is_of(self):
        names = {row["name"] for row in matrix.ROWS["full"]()}
        for links in targets.PAIRS.values():
            for rows in links.values():
                self.assertLessEqual(set(rows), names)
        self.assertLessEqual({"flood", "pushes", "foreign"}, names)


    def test_cover_every_value_of_every_factor_or_say_why_not(self):
        names = {row["name"] for row in matrix.ROWS["full"]()}
        for factor, values in matrix.FACTORS.items():
            for value, name in values.items():
                self.assertTrue(name in names or name in matrix.WITHOUT_IO, f"{factor} {value}")
        result = {**result_with(2), "targets": [], "in_process": {
            "pipeline": "handed25%_4        396.9 cycles per packet, median 410.2\n",
            "targets": [{"name": "workers_2/1", "measured": 1.93, "median": 1.91}]}}
        result["targets"] = result["in_process"]["targets"]
        result["rows"].append({**matrix.row("workers-2"), "not_measured": "one queue"})
        result["rows"].append({**result_with(2)["rows"][0], "name": "flood",
                               "flood": {"ratio": 0.75}})
        found = {(factor, value): figure for factor, value, figure in report.coverage(result)}
        self.assertEqual(found["handed over", "25 %"], "397 cycles (median 410)")
        self.assertEqual(found["workers", "2, no I/O"], "1.93 (median 1.91)")
        self.assertEqual(found["handed over", "50 %"], "not in this run")
        self.assertEqual(found["flows", "64 k"], "2.00 +-1 % Mpps")
        self.assertIn("one queue", found["workers", "2"])
        self.assertEqual(found["beside established flows", "a flood of new ones"],
                         "goodput x0.7500")


class Memory(unittest.TestCase):
    def test_that_is_too_little_for_all_huge_pages_is_given_back(self):
        with tempfile.TemporaryDirectory() as folder:
            pool = pathlib.Path(folder)
            (pool / "nr_hugepages").write_text("19")

            class Scarce(machine.HugePages):
                def _number(self, name="nr_hugepages"):
                    return min(100, int((pool / name).read_text()))

            with mock.patch.object(machine, "POOL", pool), Scarce(2000) as pages:
                self.assertEqual((pages.enough, pages.mib), (False, 0))
                self.assertEqual((pool / "nr_hugepages").read_text(), "19")

    def test_of_tables_is_huge_and_of_images_ordinary(self):
        point = {**matrix.BASE, "flows": 4_000_000}
        for enough, mib, available, fits in ((True, 3000, 1000, True), (True, 2000, 1000, False),
                                             (True, 3000, 500, False), (False, 0, 5000, True),
                                             (False, 0, 3000, False)):
            run = mock.Mock(pages=mock.Mock(enough=enough, mib=mib))
            with mock.patch.object(machine, "available_mib", lambda: available):
                self.assertEqual(session.Session.too_large(run, point) is None, fits)


class Connections(unittest.TestCase):
    def test_that_failed_are_counted_by_what_went_wrong(self):
        text = "  Socket errors: connect 0, read 2, write 0, timeout 31\n" \
               "  Non-2xx or 3xx responses: 7\n"
        self.assertEqual(stateful.errors_of(text), {"read": 2, "timeout": 31, "status": 7})

    def test_without_an_error_have_none(self):
        self.assertEqual(stateful.errors_of("Requests/sec:  41421.15\n"), {})


class Took(unittest.TestCase):
    def test_is_told_in_all_and_by_part(self):
        took = {"rows": 100.4}
        with session.timed(took, "rows"), session.timed(took, "wrk"):
            pass
        self.assertEqual(took, {"rows": 100.4, "wrk": 0})
        self.assertEqual(session.took_line({"rows": 100.4, "wrk": 25}),
                         "# took 2 min 5 s: rows 100 s, wrk 25 s")


class Names(unittest.TestCase):
    def test_of_rows_are_unique(self):
        for rows in matrix.ROWS.values():
            names = [row["name"] for row in rows()]
            self.assertEqual(len(names), len(set(names)))

    def test_of_files_are_plain(self):
        self.assertEqual(machine.slug("Intel(R) Xeon(R) Processor @ 2.80GHz"),
                         "intel-xeon-2.80ghz")

    def test_of_cpus_tell_their_generation(self):
        text = "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n"
        self.assertEqual(machine.cpu_model(text), "AMD EPYC family 26 model 2")

    def test_of_addresses_are_the_generators(self):
        self.assertEqual(cluster.numbered(12, 258), "12.0.1.2")
        self.assertEqual(cluster.numbered(12, 1, 6), "fd0c::c00:0:0:1")


if __name__ == "__main__":
    unittest.main()
