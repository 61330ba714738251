"""Tests of what is measured beside something else: pushes, a flood, other devices in turn."""

import contextlib
import os
import pathlib
import subprocess
import unittest

from . import dut, matrix, measure, pushing, report, targets


class FakePushed:
    """A device and its pusher at once: each window lasts a second, in which frames are lost where
    the pusher runs; it pushes at the times `at` after a window began."""

    def __init__(self, lost_inside, at):
        self.lost_inside, self.at = lost_inside, at
        self.pushing, self.now = False, 0.0
        self.total = {"rx_frames": 0, "tx_frames": 0, "tx_dropped": 0}
        self.pusher = self

    def ask(self, command):
        self.pushing = command != "stop"
        return {"failed": 0, "at": [self.now - 1 + at for at in self.at]}

    def counters(self):
        return dict(self.total)

    def load(self, seconds, rate):
        began, self.now = self.now, self.now + 1
        lost = 50_000 if self.pushing else 0
        self.total["rx_frames"] += rate
        self.total["tx_frames"] += rate - lost
        self.total["tx_dropped"] += 0 if self.lost_inside else lost
        return {"seconds": seconds, "offered": rate, "received": rate - lost, "refused": 0,
                "fresh_sent": 0, "fresh_received": 0, "window": (began, self.now)}


class Pushes(unittest.TestCase):
    @staticmethod
    def beside(lost_inside, at):
        device = FakePushed(lost_inside, at)
        return pushing.beside(device, device, 1, 1, 2, "change 100")

    def test_tell_what_sluiced_lost_from_what_the_generator_did_not_take(self):
        for lost_inside, taken in ((True, 0.95), (False, 1)):
            found = self.beside(lost_inside, [0.1 * n for n in range(10)])
            self.assertAlmostEqual(found["ratio"]["goodput"], 0.95)
            self.assertAlmostEqual(found["ratio"]["taken"], taken)
            self.assertFalse(found["late"])

    def test_count_only_where_they_were_made_in_a_window(self):
        found = self.beside(True, [0.1, 0.2, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6])
        self.assertEqual((found["pushed"], found["asked"], found["late"]), (4, 20, True))


class FakeFlooded:
    """A device and its generator at once: it passes 1,000 frames a second and refuses more."""

    def __init__(self):
        self.total = {"poll_total": 0, "rx_full_bursts": 0, "unchanged": 7}

    def counters(self):
        return dict(self.total)

    def load(self, seconds, rate, fresh=0):
        sent, lost = int(rate * (1 - fresh)), max(0, rate - 1000)
        self.total["poll_total"] += 100
        self.total["rx_full_bursts"] += 100 if lost else 0
        return {"seconds": 1, "offered": sent, "received": sent - lost, "refused": lost,
                "fresh_sent": 0, "fresh_received": 0, "skipped": rate // 10}


class Goodput(unittest.TestCase):
    def test_beside_a_flood_tells_a_worker_that_does_not_keep_up(self):
        fake = FakeFlooded()
        found = measure.goodput_beside(fake, fake, 1, 3, {"rate": 1000},
                                       {"rate": 1100, "fresh": 0.5})
        self.assertAlmostEqual(found["ratio"], 1 - 100 / 550)
        self.assertAlmostEqual(found["beside"]["refused"], 100 / 550)
        self.assertEqual((found["alone"]["full"], found["beside"]["full"]), (0, 1))
        self.assertAlmostEqual(found["beside"]["skipped"], 0.1)
        self.assertEqual(found["device"], {"poll_total": 300, "rx_full_bursts": 300})
        self.assertIn("bursts full 100%",
                      targets._flood({"creation_millions": 0.2, **found})["proof"])


class OneOfSeveral:
    """A device and its generator: tells when it goes, and passes so many frames a turn."""

    def __init__(self, name, rates, log):
        self.name, self.rates, self.log = name, list(rates), log

    @contextlib.contextmanager
    def going(self):
        self.log.append(self.name)
        yield
        self.log.append(f"-{self.name}")

    @staticmethod
    def counters():
        return {}

    def load(self, seconds, window):
        if seconds == 0:
            return None  # warm
        rate = self.rates.pop(0)
        return {"received": rate * 1e6 * seconds, "seconds": seconds, "idle": 0,
                "latency_us": {"p50": 100}}


class Turns(unittest.TestCase):
    @staticmethod
    def measured(**rates):
        log = []
        sides = {name: OneOfSeveral(name, found, log) for name, found in rates.items()}
        return log, measure.in_turn({n: (s, s) for n, s in sides.items()}, 1, 3, warm=0)

    @staticmethod
    def rows(figures, pair="p"):
        return [{"pair": pair, "throughput": figure} for figure in figures.values()]

    def test_are_of_one_device_at_a_time_each_in_every_turn(self):
        log, figures = self.measured(a=[1, 2, 3], b=[4, 5, 6])
        self.assertEqual(log, ["a", "-a", "b", "-b"] * 3)
        self.assertEqual([f["windows"] for f in figures.values()], [[1, 2, 3], [4, 5, 6]])

    def test_are_compared_turn_by_turn(self):
        _, figures = self.measured(a=[1, 2, 12], b=[2, 4, 4])  # medians: 2 of 4
        ratio, turns = measure.ratio(*self.rows(figures))
        self.assertEqual((ratio, turns), (0.5, [0.5, 0.5, 3]))
        _, figures = self.measured(a=[1, 8, 1], b=[2, 16, 5])  # medians: 1 of 5
        self.assertEqual(measure.ratio(*self.rows(figures))[0], 0.5)
        self.assertEqual(measure.ratio(*self.rows(figures, pair=None)), (0.2, []))

    def test_go_on_without_a_device_that_passes_nothing(self):
        log, figures = self.measured(a=[1, 0], b=[4, 5, 6])
        self.assertIsInstance(figures["a"], RuntimeError)
        self.assertEqual(figures["b"]["windows"], [4, 5, 6])
        self.assertEqual(log.count("a"), 2)

    @staticmethod
    def row(name, rates, **more):
        return {**matrix.row(name, **more), "throughput": measure.spread(rates)}

    def test_are_what_a_ratio_in_the_report_is_of_where_there_are_some(self):
        rows = [self.row("macswap", [10, 10], dut="testpmd-macswap", pair="base"),
                self.row("1500", [2, 8], lengths=[1514], pair="1500"),
                self.row("macswap@1500", [4, 16], dut="testpmd-macswap", lengths=[1514],
                         pair="1500"),
                self.row("udp", [2, 8], proto="udp", pair="udp"),
                self.row("macswap@udp", [4, 16], dut="testpmd-macswap", pair="udp"),
                self.row("flood", [4, 4], fresh=0.5)]
        self.assertEqual(list(report.ratios(rows)), [("1500", "macswap@1500", 0.5, True),
                                                     ("udp", "macswap@udp", 0.5, True),
                                                     ("flood", "macswap", 0.4, False)])

    def test_are_of_every_row_of_the_matrix_and_a_peer_with_its_traffic(self):
        rows = {row["name"]: row for row in matrix.ROWS["full"]()}
        for name in ("services-10k", "imix", "ipv6", "new-10", "scheduler-lc", "flows-1k"):
            peer = rows[matrix.YARDSTICK + name]
            self.assertEqual(peer["pair"], rows[name]["pair"])
            for key in ("flows", "lengths", "family"):
                self.assertEqual(peer["point"][key], rows[name]["point"][key])
        for name in ("flood", "pushes", "flows-16m", "workers-2", "veth-sluiced", "base"):
            self.assertNotIn(matrix.YARDSTICK + name, rows)

    def test_leave_a_device_no_cpu_that_is_held(self):
        def state():
            stat = pathlib.Path(f"/proc/{device.process.pid}/stat").read_text()
            return stat.rsplit(") ", 1)[1][0]
        device = dut.Dut(None, pathlib.Path(), 0)
        # SIGCONT works at once, a stop when the process is scheduled.
        with subprocess.Popen(["sleep", "60"]) as device.process:
            with device.held():
                os.waitid(os.P_PID, device.process.pid, os.WSTOPPED)
                self.assertEqual(state(), "T")
                with device.going():
                    self.assertNotEqual(state(), "T")
                os.waitid(os.P_PID, device.process.pid, os.WSTOPPED)
            self.assertNotEqual(state(), "T")
            device.process.kill()
