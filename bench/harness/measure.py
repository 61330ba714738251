"""One figure: several windows, median and spread; the no-drop rate; latency; what was the limit."""

import statistics

WINDOW = 512       # frames in flight of a closed loop: half of the link's ring
QUEUED = 0.5       # a device is the limit when most frames in flight wait for it
FULL = 0.95        # and hardly a receive burst of it is not full
LOSSES = {"ndr": 0.0, "pdr": 0.005}  # RFC 2544 throughput, and the usual partial-drop rate


def spread(values):
    """Median and the half of the range over it, as a share of it."""
    middle = statistics.median(values)
    return {"median": middle, "spread": (max(values) - min(values)) / 2 / middle if middle else 0,
            "windows": values}


def merge(one, two):
    """The figure of both their windows."""
    limit = {key: (one["limit"][key] + two["limit"][key]) / 2 for key in one["limit"]
             if key in two["limit"]}
    limit["device"] = bool(one["limit"]["device"] and two["limit"]["device"])
    return {**spread(one["windows"] + two["windows"]), "limit": limit}


def limit_of(before, after, result, window):
    """What shows that the device was the limit. queued: share of the frames in flight that were at
    the device (Little's law: rate times the usual latency). full: share of its polls that found
    frames and got a whole burst, where it counts them. generator_idle: time the generator waited."""
    rate = result["received"] / result["seconds"]
    proof = {"generator_idle": result["idle"]}
    if "latency_us" in result:  # else it cannot be shown
        proof["queued"] = rate * result["latency_us"]["p50"] / 1e6 / window
    polls = after.get("poll_total", 0) - before.get("poll_total", 0)
    if polls:
        proof["full"] = (after["rx_full_bursts"] - before.get("rx_full_bursts", 0)) / polls
    proof["device"] = proof.get("queued", 0) >= QUEUED and proof.get("full", 1) >= FULL
    return proof


def throughput(dut, generator, seconds, windows, window=WINDOW, **shares):
    """Closed loop: the most the device does with frames always waiting for it. In Mpps."""
    generator.load(seconds / 4, window=window, **shares)  # warm
    rates, proofs = [], []
    for _ in range(windows):
        before = dut.counters()
        result = generator.load(seconds, window=window, **shares)
        if not result["received"]:
            raise RuntimeError(f"nothing came back: {result}")
        rates.append(result["received"] / result["seconds"] / 1e6)
        proofs.append(limit_of(before, dut.counters(), result, window))
    figure = spread(rates)
    keys = set.intersection(*[set(p) for p in proofs])
    figure["limit"] = {key: statistics.median(p[key] for p in proofs) for key in keys}
    figure["limit"]["device"] = bool(figure["limit"]["device"])
    return figure


def loss_of(result, fresh=False):
    """Share of the frames of established flows that were due and did not come back; fresh: of first
    frames of new flows, too."""
    due = result["offered"] + (result["fresh_sent"] if fresh else 0)
    back = result["received"] + (result["fresh_received"] if fresh else 0)
    return 1 - back / due if due else 0


def search(generator, most_mpps, trial=0.5, steps=8, **shares):
    """Rates without loss (ndr) and with at most half a per cent (pdr), by bisection,
    which for pdr begins with the bounds that the trials for ndr leave it. First frames of new
    flows count, too. Bounded: `steps` trials for each at most."""
    trials = []
    found = {}
    for name, allowed in LOSSES.items():
        low = max([rate for rate, loss in trials if loss <= allowed], default=0)
        high = min([rate for rate, loss in trials if loss > allowed], default=most_mpps)
        for _ in range(steps):
            if high - low < 0.02 * most_mpps:
                break
            rate = (low + high) / 2
            result = generator.load(trial, rate=int(rate * 1e6), **shares)
            # The generator itself was held up: what it offered is what was tried.
            rate = min(rate, (result["offered"] + result["fresh_sent"]) / result["seconds"] / 1e6)
            loss = loss_of(result, fresh=True)
            trials.append((rate, loss))
            low, high = (max(low, rate), high) if loss <= allowed else (low, rate)
        found[name] = low
    found["trials"] = trials
    return found


def latency(generator, rate_mpps, seconds, windows):
    """Percentiles in microseconds at a rate, the median of the windows for each."""
    seen = [generator.load(seconds, rate=int(rate_mpps * 1e6)) for _ in range(windows)]
    if not all(result["received"] for result in seen):
        raise RuntimeError(f"nothing came back: {seen}")
    if "latency_us" not in seen[0]:
        raise RuntimeError("this generator takes no times")
    return {key: statistics.median(r["latency_us"][key] for r in seen)
            for key in seen[0]["latency_us"]}


def goodput(generator, rate_mpps, seconds, windows, **shares):
    """Share of the frames of established flows that came back at a rate, beside others."""
    seen = [generator.load(seconds, rate=int(rate_mpps * 1e6), **shares) for _ in range(windows)]
    return spread([1 - loss_of(r) for r in seen])
