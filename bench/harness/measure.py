"""One figure: several windows, median and spread; the no-drop rate; latency; what was the limit."""

import statistics
import time

WINDOW = 512       # frames in flight of a closed loop: half of the link's ring
QUEUED = 0.5       # a device is the limit when most frames in flight wait for it
FULL = 0.95        # and hardly a receive burst of it is not full
LOSSES = {"ndr": 0.0, "pdr": 0.005}  # RFC 2544 throughput, and the usual partial-drop rate
TRIALS = 5         # of one rate, at most
EXCEED = 0.5       # share of them that may lose more than that
LATENCY = (0.2, 5) # seconds and number of the undisturbed windows of a latency
REPEATS = 2        # in so many times as many windows at most
AWAY = 0.005       # share of a window; twice that decides its p99
DECIDES = 0.01     # share of the frames; where that is lost, the p99 is of those that were fast


def spread(values):
    """Median and the half of the range over it, as a share of it."""
    middle = statistics.median(values)
    return {"median": middle, "spread": (max(values) - min(values)) / 2 / middle if middle else 0,
            "windows": values}


def disturbed(results):
    """{"steal": ticks of each window in which another guest had a CPU of ours, "held": share of it
    in which the generator's CPU was away}. No window is left out for it: the median is told."""
    return {"steal": [sum(r.get("steal", {}).values()) for r in results],
            "held": [r.get("held") for r in results]}


def ratio(ours, peer):
    """(ratio of two rows, the turns' own ratios or []). What lay in turn is compared turn by turn:
    a machine that does twice as much in one minute as in the next one moves both sides of a
    turn."""
    if ours["pair"] and ours["pair"] == peer["pair"]:
        turns = [one / other for one, other in zip(ours["throughput"]["windows"],
                                                   peer["throughput"]["windows"])]
        return statistics.median(turns), turns
    return ours["throughput"]["median"] / peer["throughput"]["median"], []


def limit_of(before, after, result, window):
    """What shows that the device was the limit. queued: share of the frames in flight that were at
    the device (Little's law: rate times the usual latency). full: share of its polls that found
    frames and got a whole burst, where it counts them. generator_idle: time the generator
    waited."""
    rate = result["received"] / result["seconds"]
    proof = {"generator_idle": result["idle"]}
    if "latency_us" in result:  # else it cannot be shown
        proof["queued"] = rate * result["latency_us"]["p50"] / 1e6 / window
    polls = after.get("poll_total", 0) - before.get("poll_total", 0)
    if polls:
        proof["full"] = (after["rx_full_bursts"] - before.get("rx_full_bursts", 0)) / polls
    proof["device"] = proof.get("queued", 0) >= QUEUED and proof.get("full", 1) >= FULL
    return proof


def _saturated(dut, generator, seconds, window, shares):
    """One window of a closed loop: (result, what shows whose limit it was)."""
    before = dut.counters()
    result = generator.load(seconds, window=window, **shares)
    if not result["received"]:
        raise RuntimeError(f"nothing came back: {result}")
    return result, limit_of(before, dut.counters(), result, window)


def _figure(seen):
    """Of windows of _saturated(), in Mpps."""
    results, proofs = zip(*seen)
    figure = {**spread([r["received"] / r["seconds"] / 1e6 for r in results]),
              "host": disturbed(results)}
    keys = set.intersection(*[set(p) for p in proofs])
    figure["limit"] = {key: statistics.median(p[key] for p in proofs) for key in keys}
    figure["limit"]["device"] = bool(figure["limit"]["device"])
    return figure


def throughput(dut, generator, seconds, windows, window=WINDOW, **shares):
    """Closed loop: the most the device does with frames always waiting for it. In Mpps."""
    generator.load(seconds / 4, window=window, **shares)  # warm
    return _figure([_saturated(dut, generator, seconds, window, shares) for _ in range(windows)])


def in_turn(sides, seconds, turns, warm, window=WINDOW):
    """The same of several devices, a window of each in every turn; all but one are held meanwhile.
    sides: {name: (device, generator)}. warm: seconds before each window, because the caches are
    another's then. Returns {name: figure, or the exception that ended it}."""
    seen, ended = {name: [] for name in sides}, {}
    for _ in range(turns):
        for name, (device, generator) in sides.items():
            if name in ended:
                continue
            try:
                with device.going():
                    generator.load(warm, window=window)
                    seen[name].append(_saturated(device, generator, seconds, window, {}))
            except Exception as error:  # the others go on
                ended[name] = error
    return {name: ended.get(name) or _figure(seen[name]) for name in sides}


def loss_of(result, fresh=False):
    """Share of the frames of established flows that were due and did not come back; fresh: of first
    frames of new flows, too."""
    due = result["offered"] + (result["fresh_sent"] if fresh else 0)
    back = result["received"] + (result["fresh_received"] if fresh else 0)
    return 1 - back / due if due else 0


def verdict(losses, allowed):
    """Of the trials of one rate: True, it holds; False, it does not; None, that takes another one.
    It holds when no more than EXCEED of TRIALS trials lose more than is allowed, whatever those
    lose that were left out."""
    exceeding = sum(loss > allowed for loss in losses)
    if exceeding > EXCEED * TRIALS:
        return False
    return True if exceeding + TRIALS - len(losses) <= EXCEED * TRIALS else None


def _try_rate(generator, rate, trial, allowed, shares):
    """Trials of one rate until it is decided. Returns {rate that was offered, losses}."""
    offered, losses, results = [], [], []
    while verdict(losses, allowed) is None:
        result = generator.load(trial, rate=int(rate * 1e6), **shares)
        offered.append((result["offered"] + result["fresh_sent"]) / result["seconds"] / 1e6)
        losses.append(loss_of(result, fresh=True))
        results.append(result)
    # Where the generator itself was held up, what it offered is what was tried.
    return {"rate": min(rate, statistics.median(offered)), "losses": losses,
            "steal": disturbed(results)["steal"]}


def search(generator, most_mpps, trial=0.1, steps=8, names=("ndr", "pdr"), settle=0, **shares):
    """Rates without loss (ndr) and with at most half a per cent (pdr), by bisection, which for pdr
    begins with the bounds that the trials for ndr leave it. First frames of new flows count, too.
    As in MLRsearch (RFC 9971) a rate has several short trials and most of them decide: a CPU that
    is taken away for longer than the ring lasts spoils a trial at any rate. spoilt: trials that
    lost more than allowed at the rates found to hold. Bounded: `steps` rates for each at most.
    settle: seconds before each, in which the device forgets what it was sent."""
    tried, found = [], {}
    for name in names:
        allowed = LOSSES[name]
        low = max([t["rate"] for t in tried if verdict(t["losses"], allowed)], default=0)
        high = min([t["rate"] for t in tried if verdict(t["losses"], allowed) is False],
                   default=most_mpps)
        for _ in range(steps):
            if high - low < 0.02 * most_mpps:
                break
            time.sleep(settle)
            tried.append(_try_rate(generator, (low + high) / 2, trial, allowed, shares))
            rate, holds = tried[-1]["rate"], verdict(tried[-1]["losses"], allowed)
            low, high = (max(low, rate), high) if holds else (low, rate)
        found[name] = low
    allowed = LOSSES[names[0]]
    held = [t["losses"] for t in tried if verdict(t["losses"], allowed)]
    return {**found, "trial_seconds": trial, "tried": tried,
            "held_trials": sum(map(len, held)),
            "spoilt": sum(loss > allowed for losses in held for loss in losses)}


def _is_disturbed(result, least_held):
    """Whether a CPU of ours was taken away in a window: by another guest, by another thread (of
    another program or of the device's own), or, for longer than in the quietest window, by whoever
    held the generator up. Who waited unknown to the kernel (None) waited not."""
    waited = max(filter(None, result.get("waited", {}).values()), default=0) / result["seconds"]
    held = (result.get("held") or 0) - least_held
    return any(result.get("steal", {}).values()) or max(waited, held) > AWAY


def _are_disturbed(results):
    least = min(r.get("held") or 0 for r in results)
    return [_is_disturbed(r, least) for r in results]


def _window(result, bad):
    """What is kept of a window. skipped: share of the frames that the generator left out."""
    asked = result["offered"] + result["skipped"]
    return {**result["latency_us"], "disturbed": bad, "lost": loss_of(result),
            "skipped": result["skipped"] / asked if asked else 0}


def latency(generator, rate_mpps, seconds, windows):
    """Percentiles in microseconds at a rate, for each the median of the windows that nobody
    disturbed: one that was is repeated, for twice as many windows at most. Where those hardly leave
    one of two, the median is that of all. lost: share of the frames, by the same windows; a frame
    that was lost has no latency. All are kept; range: the least and the most p99 of all.
    unwatched: threads of which the kernel does not tell how long they waited for a CPU."""
    seen = []
    while len(seen) < windows or (len(seen) < REPEATS * windows
                                  and _are_disturbed(seen).count(False) < windows):
        seen.append(generator.load(seconds, rate=int(rate_mpps * 1e6)))
    if not all(result["received"] for result in seen):
        raise RuntimeError(f"nothing came back: {seen}")
    if "latency_us" not in seen[0]:
        raise RuntimeError("this generator takes no times")
    spoilt = _are_disturbed(seen)
    quiet = [r for r, bad in zip(seen, spoilt) if not bad]
    told = quiet if 2 * len(quiet) > windows else seen
    unwatched = {name for r in seen for name, s in r.get("waited", {}).items() if s is None}
    p99 = [r["latency_us"]["p99"] for r in seen]
    return {**{key: statistics.median(r["latency_us"][key] for r in told)
               for key in seen[0]["latency_us"]},
            "lost": statistics.median(map(loss_of, told)),
            "windows": [_window(r, bad) for r, bad in zip(seen, spoilt)],
            "unwatched": sorted(unwatched), "quiet": len(quiet), "told": len(told),
            "range": [min(p99), max(p99)], "host": disturbed(seen)}


def latency_text(found):
    """p99, its range, how many windows it is of, and what was lost in them."""
    low, high = found["range"]
    count, quiet = len(found["windows"]), found["quiet"]
    text = f"{found['p99']:.0f} us ({low:.0f} to {high:.0f} in {count} windows"
    if quiet < count:
        text += f", {count - quiet} of them disturbed"
        text += "" if found["told"] < count else " and not left out"
    if found["unwatched"]:
        text += f", of {' and '.join(found['unwatched'])} not known who else had its CPU"
    lost = max(window["lost"] for window in found["windows"])
    if lost > 0:
        text += f", {found['lost']:.2%} lost, {lost:.2%} in the worst"
    skipped = max(window["skipped"] for window in found["windows"])
    if skipped > 0:
        text += f", generator left out up to {skipped:.2%}"
    return text + ")"


def _goodput(device, generator, seconds, load):
    """Of one window: share of the frames of established flows that came back; of those that found
    the device's ring full; of the device's bursts that were full; of the frames the generator did
    not send because it was held up itself."""
    before = device.counters()
    result = generator.load(seconds, **load)
    after = device.counters()
    grown = {key: value - before.get(key, 0) for key, value in after.items()}
    due = max(1, result["offered"])
    polls = grown.get("poll_total", 0)
    asked = load["rate"] * result["seconds"]
    return {"goodput": 1 - loss_of(result), "refused": result["refused"] / due,
            "skipped": result["skipped"] / asked if asked else 0,
            "full": grown.get("rx_full_bursts", 0) / polls if polls else 0,
            "host": result}, grown


def goodput_beside(device, generator, seconds, windows, alone, beside):
    """{"alone", "beside": figures of the goodput of established flows; "ratio"; "device": what its
    counters grew by beside it}. alone, beside: what load() is told. The windows lie in turn,
    because a machine's speed drifts."""
    seen, device_grown = {"alone": [], "beside": []}, {}
    for _ in range(windows):
        for side, load in (("alone", alone), ("beside", beside)):
            window, grown = _goodput(device, generator, seconds, load)
            seen[side].append(window)
            for key, value in grown.items() if side == "beside" else ():
                device_grown[key] = device_grown.get(key, 0) + value
    figures = {side: {**spread([w["goodput"] for w in all_windows]),
                      **{key: statistics.median(w[key] for w in all_windows)
                         for key in ("refused", "skipped", "full")},
                      "host": disturbed([w["host"] for w in all_windows])}
               for side, all_windows in seen.items()}
    before = figures["alone"]["median"]
    return {**figures, "ratio": figures["beside"]["median"] / before if before else 0,
            "device": {key: value for key, value in device_grown.items() if value}}
