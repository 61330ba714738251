"""Tests of the parts that compute: python3 -m harness.selftest, in bench/."""

import unittest

from . import cluster, in_process, machine, matrix, measure, report, targets


class FakeGenerator:
    """Passes `limit` frames a second and loses the rest."""

    def __init__(self, limit):
        self.limit = limit
        self.trials = 0

    def load(self, seconds, rate):
        self.trials += 1
        offered = int(rate * seconds)
        return {"seconds": seconds, "offered": offered, "fresh_sent": 0,
                "received": min(offered, int(self.limit * seconds))}


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
        self.assertLessEqual(generator.trials, 16)

    def test_of_a_device_that_loses_everything_is_zero(self):
        self.assertEqual(measure.search(FakeGenerator(0), 10)["ndr"], 0)


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
    def test_leave_oversubscribed_rows_out(self):
        result = result_with(0.8)
        peer = {**result_with(1.0)["rows"][0], "name": "macswap", "dut": "testpmd-macswap"}
        result["rows"].append(peer)
        [target] = targets.reached(result)
        self.assertTrue(target["pass"])
        result["rows"][0]["oversubscribed"] = True
        self.assertEqual(targets.reached(result), [])

    def test_of_a_bench_without_io_keep_which_way_is_better(self):
        text = "target a  measured  90.00 wanted  80.00 goal  60.00 short\n" \
               "target b  measured   2.00 wanted   1.50 goal   3.00 pass\n"
        self.assertEqual([t["more"] for t in in_process.targets_of(text)], [False, True])


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
