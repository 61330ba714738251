"""Tests of a run's time and of what a row is asked in which order."""

import types
import unittest

from . import budget, in_process, matrix, profile, session


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Time(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.limit = budget.Budget("quick", self.clock)

    def test_is_enough_for_targets_in_a_bad_hour(self):
        groups = {}
        for row in matrix.ROWS["quick"]():
            groups.setdefault(row["pair"] or row["name"], []).append(row)
        for name in ("base", "flows-1m", "flood", "pushes"):
            self.assertTrue(self.limit.allows_rows(groups[name]), name)
            self.clock.now += budget.seconds_of(groups[name])

    def test_for_what_comes_after_the_rows_is_kept(self):
        small = [matrix.row("ipv6", family=6)]
        last = budget.LIMIT["quick"] - budget.AFTER_ROWS["quick"] - budget.ROW
        self.clock.now += last
        self.assertTrue(self.limit.allows_rows(small))
        self.assertFalse(self.limit.allows_rows(matrix.pair(64_000)))
        self.clock.now += 1
        self.assertFalse(self.limit.allows_rows(small))
        self.assertTrue(self.limit.allows(budget.AFTER_ROWS["quick"]))

    def test_of_rows_without_a_target_is_short_in_turn_too(self):
        run = types.SimpleNamespace(chosen=types.SimpleNamespace(kind="full", windows=None))
        rows = {row["name"]: row for row in matrix.ROWS["full"]()}
        short = [name for name, row in rows.items() if session.Session._is_short(run, row)]
        self.assertIn("services-10k", short)
        self.assertIn("macswap@services-10k", short)
        for name in ("base", "macswap", "probe-1m", "flows-1m-zero-copy"):
            self.assertNotIn(name, short)

    def test_of_targets_comes_before_that_of_others(self):
        names = [row["name"] for row in matrix.ROWS["quick"]()]
        for target in ("base", "flows-1m", "flood", "pushes"):
            self.assertLess(names.index(target), names.index("ipv6"))

    def test_that_is_over_leaves_out_a_whole_pair_and_says_so(self):
        self.clock.now += budget.LIMIT["quick"]
        said = []
        run = types.SimpleNamespace(
            chosen=types.SimpleNamespace(kind="quick", ports=None, dut=None, only="base,macswap"),
            pages=types.SimpleNamespace(refill=lambda: None), limit=self.limit, took={}, rows=[],
            say=said.append)
        session.Session.run_rows(run)
        self.assertGreater(len(run.rows), 3)
        self.assertEqual({row["not_measured"] for row in run.rows}, {budget.NO_TIME})
        self.assertEqual(len(said), len(run.rows))

    def test_that_is_over_leaves_out_profiles(self):
        self.clock.now += budget.LIMIT["quick"]
        found, profile.found = profile.found, lambda: True
        try:
            told = in_process.profiles("quick", ["nat4_64k"], None, 0, lambda _: None, False,
                                       self.limit)
        finally:
            profile.found = found
        self.assertEqual(told, {"nat4_64k": {"missing": budget.NO_TIME}})


class NoDropRate(unittest.TestCase):
    """Of which the latencies are parts."""

    def latencies(self, rates, lossy_above):
        """The row, and the rates that were measured in turn; a search finds the next of `rates`."""
        asked, rates = [], iter(rates)

        def search(row, *_):
            row["search"] = {"ndr": next(rates)}

        def latency_at(_, rate):
            asked.append(round(rate, 3))
            return {"p99": 1, "lost": 0.3 if rate > lossy_above else 0}

        run = types.SimpleNamespace(ndr={"base": 4.0}, _search=search, _latency_at=latency_at)
        row = {"name": "base", "pair": "base"}
        search(row)
        session.Session._latency(run, row, None, None)
        return row, asked

    def test_that_holds_is_searched_once(self):
        row, asked = self.latencies([10], lossy_above=20)
        self.assertEqual((asked, row["searches"]), ([9, 1, 5], 1))

    def test_of_another_moment_is_searched_again(self):
        row, asked = self.latencies([20, 10], lossy_above=15)
        self.assertEqual((asked, row["searches"]), ([18, 9, 1, 5], 2))
        self.assertEqual(list(row["latency"]), ["10", "50", "90"])

    def test_is_searched_so_many_times_at_most(self):
        row, asked = self.latencies([20, 10, 5], lossy_above=1)
        self.assertEqual((asked, row["searches"]), ([18, 9, 1, 5], session.SEARCHES))
        self.assertEqual(row["latency"]["90"]["lost"], 0.3)

    def test_of_none_gives_no_latency(self):
        row, asked = self.latencies([20, 0], lossy_above=1)
        self.assertEqual((asked, "latency" in row), ([18], False))
