"""Tests of the parts that compute: python3 -m harness.selftest, in bench/."""

import unittest
from unittest import mock

from . import cluster, in_process, machine, matrix, measure, report, targets


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
                "fresh_received": 0, "received": max(0, offered - lost),
                "latency_us": {"p50": 0}}


class GrowingLoss(FakeGenerator):
    """Loses nothing up to the limit, then a share that reaches a hundredth at twice the limit."""

    def passed(self, rate):
        return rate * (1 - max(0, rate / self.limit - 1) / 100)


def result_with(rate, spread=0.01, **more):
    row = matrix.row("base")
    row.update(oversubscribed=False, throughput={"median": rate, "spread": spread, "windows": [],
                                                 "limit": {"device": True, "generator_idle": 1}})
    return {"machine": {"isolated": ""}, "rows": [row], "in_process": {}, **more}


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
    def test_of_a_device_that_loses_everything_is_an_error(self):
        with self.assertRaises(RuntimeError):
            measure.latency(FakeGenerator(0), 1, 1, 1)


class Limit(unittest.TestCase):
    @staticmethod
    def proof(p50_us, full):
        result = {"idle": 0, "received": 5e6, "seconds": 1, "latency_us": {"p50": p50_us}}
        return measure.limit_of({}, {"poll_total": 100, "rx_full_bursts": full}, result, 512)

    def test_is_the_device_when_frames_wait_for_it_and_its_bursts_are_full(self):
        self.assertTrue(self.proof(p50_us=90, full=99)["device"])

    def test_is_not_the_device_when_frames_are_back_at_once(self):
        self.assertFalse(self.proof(p50_us=8, full=99)["device"])

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
    def beside_a_peer(rate, limit=True, peer_limit=True):
        result = result_with(rate)
        peer = {**result_with(1.0)["rows"][0], "name": "macswap", "dut": "testpmd-macswap"}
        result["rows"].append(peer)
        for row, device in zip(result["rows"], (limit, peer_limit)):
            row["throughput"]["limit"]["device"] = device
        return result

    def test_are_reached_only_where_both_devices_were_the_limit(self):
        for limit, peer_limit in ((False, True), (True, False)):
            [target] = targets.reached(self.beside_a_peer(0.8, limit, peer_limit))
            self.assertFalse(target["pass"])
            self.assertIn("limit", target["proof"])

    def test_leave_oversubscribed_rows_out(self):
        result = self.beside_a_peer(0.8)
        [target] = targets.reached(result)
        self.assertTrue(target["pass"])
        result["rows"][0]["oversubscribed"] = True
        self.assertEqual(targets.reached(result), [])

    def test_of_a_bench_without_io_keep_which_way_is_better(self):
        text = "target a  measured  90.00 wanted  80.00 goal  60.00 short\n" \
               "target b  measured   2.00 wanted   1.50 goal   3.00 pass\n"
        self.assertEqual([t["more"] for t in in_process.targets_of(text)], [False, True])

    def test_of_a_bench_that_failed_are_none(self):
        script = "echo 'target a  measured  0.00 wanted  80.00 goal  60.00 pass'; exit 1"
        with mock.patch.object(in_process, "commands",
                               lambda *_: {"pipeline": ["sh", "-c", script]}):
            done = in_process.run("quick", None, min(machine.cpus()), None, lambda _: None)
        self.assertEqual((done["targets"], done["failed"]), ([], ["pipeline"]))


class Names(unittest.TestCase):
    def test_of_rows_are_unique(self):
        for rows in matrix.ROWS.values():
            names = [row["name"] for row in rows()]
            self.assertEqual(len(names), len(set(names)))

    def test_of_files_are_plain(self):
        self.assertEqual(machine.slug("Intel(R) Xeon(R) Processor @ 2.80GHz"),
                         "intel-xeon-2.80ghz")

    def test_of_addresses_are_the_generators(self):
        self.assertEqual(cluster.numbered(12, 258), "12.0.1.2")
        self.assertEqual(cluster.numbered(12, 1, 6), "fd0c::c00:0:0:1")


if __name__ == "__main__":
    unittest.main()
