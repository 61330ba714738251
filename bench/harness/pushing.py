"""A control plane beside traffic: changes and snapshots pushed to sluiced from another process."""

import json
import os
import subprocess

from . import dut, measure

# What is pushed, and how often: the names of the targets.
PUSHES = {"changes_10ms": "change 10", "snapshots_1s": "snapshot 1000"}
MOST_LATE = 0.5  # share of the pushes in a window that may be late: beyond, it says nothing


class Pusher:
    """sluice-bench-push, on any CPU but the one of the device under test."""

    def __init__(self, device):
        self.device = device
        self.log = device.folder / "push.log"
        point = device.point
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(device.binaries / "sluice-bench-push"), "--server", f"unix:{device.socket}",
                 "--services", str(point["services"]), "--endpoints", str(point["backends"])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        others = os.sched_getaffinity(0) - {device.core}
        os.sched_setaffinity(self.process.pid, others or {device.core})

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise dut.DutError("the pusher ended\n" + self.log.read_text(errors="replace")[-1500:])
        answer = json.loads(line)
        if answer["failed"]:
            raise dut.DutError(f"{command}: {answer['failed']} pushes were refused\n" +
                               self.log.read_text(errors="replace")[-1500:])
        return answer

    def close(self):
        self.process.kill()
        self.process.wait()


class PushedSluiced(dut.Sluiced):
    """A sluiced that gets its cluster from the pusher."""

    def ready(self):
        self.pusher = Pusher(self)
        self.pusher.ask("load")

    def __exit__(self, *exception):
        if getattr(self, "pusher", None):
            self.pusher.close()
        return super().__exit__(*exception)


def _window(device, generator, rate, seconds):
    """{offered, goodput, taken, window}: Mpps; shares of the frames due that came back, and that
    sluiced did not lose: what the generator had no time to take back is not sluiced's loss."""
    before = device.counters()
    result = generator.load(seconds, rate=int(rate * 1e6))
    after = device.counters()
    grown = {key: after[key] - before.get(key, 0) for key in after}
    lost_inside = max(0, grown["rx_frames"] - grown["tx_frames"] - grown["tx_dropped"])
    due = result["offered"]
    return {"offered": due / result["seconds"] / 1e6, "goodput": 1 - measure.loss_of(result),
            "taken": 1 - (result["refused"] + lost_inside) / due if due else 0,
            "window": result["window"], "host": result}


def beside(device, generator, rate, seconds, windows, command):
    """The same with and without the pushes of `command`. The windows of a figure lie in turn,
    because a machine's speed drifts."""
    every_ms = int(command.split()[1])
    seconds = max(seconds, 2.5 * every_ms / 1000)  # a few pushes each
    seen = {"alone": [], "beside": []}
    pushed, asked = 0, 0.0
    for _ in range(windows):
        seen["alone"].append(_window(device, generator, rate, seconds))
        device.pusher.ask(command)
        seen["beside"].append(_window(device, generator, rate, seconds))
        began, ended = seen["beside"][-1]["window"]
        pushed += sum(began <= at < ended for at in device.pusher.ask("stop")["at"])
        asked += (ended - began) * 1000 / every_ms
    figures = {side: {**{key: measure.spread([w[key] for w in all_windows])
                         for key in ("offered", "goodput", "taken")},
                      "host": measure.disturbed([w["host"] for w in all_windows])}
               for side, all_windows in seen.items()}
    ratio = {key: figures["beside"][key]["median"] / figures["alone"][key]["median"]
             if figures["alone"][key]["median"] else 0 for key in ("goodput", "taken")}
    return {**figures, "rate": rate, "ratio": ratio, "pushed": pushed, "asked": asked,
            "late": pushed < MOST_LATE * asked}
