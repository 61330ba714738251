"""The targets of the design: each is on a line of every run, measured, or not measured and why."""

import contextlib
import statistics

from . import measure

# name: (wanted, goal, whether more is better, the command that measures it apart from bench/run)
_PIPELINE = "bench/pipeline --modes --new-flow-seconds 60"
_START = "sluice-bench-start --connections 16000000 --hugepages"
_FULL = "bench/run --full"
_NOBODY = "nothing subscribes to a control server yet"
TARGETS = {
    "memif_64k/macswap": (0.75, 0.85, True, _FULL),
    "memif_1m/macswap": (0.55, 0.65, True, _FULL),
    "latency_p99_us_at_10": (20, 20, False, _FULL),
    "latency_p99_us_at_50": (40, 40, False, _FULL),
    "latency_p99_us_at_90": (150, 150, False, _FULL),
    "flood_goodput": (0.99, 0.99, True, _FULL),
    "changes_10ms_goodput": (0.98, 1, True, _FULL),
    "snapshots_1s_goodput": (0.98, 1, True, _FULL),
    "nat4_64k": (80, 60, False, _PIPELINE),
    "nat4_4m": (170, 150, False, _PIPELINE),
    "nat6_64k/nat4_64k": (1.25, 1.25, False, _PIPELINE),
    "nat6_4m/nat4_4m": (1.25, 1.25, False, _PIPELINE),
    "fullnat4_64k/nat4_64k": (1.05, 1, False, _PIPELINE),
    "fullnat4_4m/nat4_4m": (1.05, 1, False, _PIPELINE),
    "handed4_64k-nat4_64k": (60, 60, False, _PIPELINE),
    "handed4_4m-nat4_4m": (60, 60, False, _PIPELINE),
    "ipip4-nat4": (20, 20, False, _PIPELINE),
    "workers_2/1": (1.9, 2, True, _PIPELINE),
    "changes_every_10ms_goodput": (0.98, 1, True, _PIPELINE),
    "new_flows_millions": (1.5, 3, True, _PIPELINE),
    "tcp_connections_millions": (0.5, 0.5, True, _PIPELINE),
    "memory_bytes_ipv4": (192, 192, False, _START),
    "memory_bytes_ipv6": (320, 320, False, _START),
    "start_16m_seconds": (2, 2, False, _START),
    "endpoint_change_p99_ms": (1, 1, False, "bench/change"),
    "full_snapshot_ms": (250, 250, False, "bench/change"),
    "nftables_full_cpu_ms": (300, 300, False, "sluice-bench-kernel"),
    "nftables_change_cpu_ms": (3, 3, False, "sluice-bench-kernel"),
    "fan_out_1000_p99_ms": (100, 100, False, _NOBODY),
}
# Rows (of sluiced, testpmd macswap, the bare probe) of one point, by link.
PAIRS = {
    "memif_64k/macswap": {"memif": ("base", "macswap", "probe"),
                          "memif-zero-copy": ("base-zero-copy", "macswap-zero-copy",
                                              "probe-zero-copy")},
    "memif_1m/macswap": {"memif": ("flows-1m", "macswap-1m", "probe-1m"),
                         "memif-zero-copy": ("flows-1m-zero-copy", "macswap-1m-zero-copy",
                                             "probe-1m-zero-copy")}}
# Devices that do less: what their latency is, link, generator and machine make.
LATENCY_FLOORS = ("macswap", "probe")
# The row whose profile shows why a target is short, beside those of PAIRS.
PROFILED = {"flood_goodput": "flood"}


class Missing(Exception):
    """Why there is no figure."""


def _row(rows, name, key="throughput"):
    """A row that may be compared, or Missing."""
    row = rows.get(name)
    if row is None:
        raise Missing(f"row {name} was not in this run")
    for reason in ("not_measured", "failed"):
        if reason in row:
            raise Missing(f"row {name}: {row[reason].splitlines()[0]}")
    if row.get("oversubscribed"):
        raise Missing(f"row {name}: more pollers than CPUs")
    if key not in row:
        raise Missing(f"row {name}: no rate was without loss" if key == "latency" else
                      f"row {name} has no {key}")
    return row


def _ratio(rows, ours, peer):
    """(ratio, whether it counts, proof)"""
    one, other = _row(rows, ours), _row(rows, peer)
    if not other["throughput"]["median"]:
        raise Missing("the peer passed nothing")
    limit, peer_limit = (row["throughput"]["limit"].get("device", False) for row in (one, other))
    ratio, turns = measure.ratio(one, other)
    proof = f"{len(turns)} turns, {min(turns):.2f} to {max(turns):.2f}; " if turns else ""
    proof += "device was the limit" if limit else "device was NOT the limit"
    # A peer that could have done more makes the ratio look better than it is.
    proof += "" if peer_limit else "; the generator limited the peer"
    return ratio, limit and peer_limit, proof


def _best_pair(rows, name):
    """The link whose ratio counts and is the better one."""
    found, why = [], None
    for link, (ours, peer, _) in PAIRS[name].items():
        try:
            ratio, counts, proof = _ratio(rows, ours, peer)
            found.append((counts, ratio, link, proof))
        except Missing as missing:
            why = why or missing
    if not found:
        raise why
    counts, ratio, link, proof = max(found)
    return {"measured": ratio, "counts": counts, "link": link, "proof": f"{link}; {proof}"}


def _latency(rows, name, isolated):
    share = name.rsplit("_", 1)[1]
    percentiles = _row(rows, "base", "latency")["latency"][share]
    proof = [measure.latency_text(percentiles),
             "isolated core" if isolated else "core not isolated"]
    floors = []
    for peer in LATENCY_FLOORS:
        with contextlib.suppress(Missing):
            floors.append(f"{peer} {_row(rows, peer, 'latency')['latency'][share]['p99']:.0f} us")
    if floors:
        proof.append(f"at the same rate {', '.join(floors)}")
    held = [part for part in percentiles.get("host", {}).get("held", []) if part is not None]
    if held:
        proof.append(f"the generator's CPU was away for {statistics.median(held):.1%} of the time")
    return {"measured": percentiles["p99"], "counts": percentiles["lost"] < measure.DECIDES,
            "proof": "; ".join(proof)}


def _flood(found):
    """What shows whose fault a loss is: a worker that keeps up finds bursts that are not full."""
    beside, alone = found["beside"], found["alone"]
    return {"measured": found["ratio"],
            "proof": f"{beside['median']:.4f} beside, {alone['median']:.4f} alone, flood of "
                     f"{4 * found['creation_millions']:.2f} M/s; bursts full {beside['full']:.0%}, "
                     f"ring full for {beside['refused']:.1%}, generator left out "
                     f"{beside['skipped']:.1%}"}


def _pushes(rows, name, cpus):
    found = _row(rows, "pushes", "pushes")["pushes"][name.removesuffix("_goodput")]
    if found["late"]:
        raise Missing(f"only {found['pushed']} of {found['asked']:.0f} pushes were made in time")
    if cpus > 2:
        return {"measured": found["ratio"]["goodput"], "proof": ""}
    # Control plane, sluiced's own threads and the generator share a CPU: what the generator has no
    # time to take back says nothing about the worker.
    return {"measured": found["ratio"]["taken"],
            "proof": "what sluiced did not lose: the generator shares its CPU with the control "
                     f"side, {found['ratio']['goodput']:.3f} came back"}


def _of_rows(result, name):
    rows = {row["name"]: row for row in result["rows"]}
    if name in PAIRS:
        return _best_pair(rows, name)
    if name.startswith("latency"):
        return _latency(rows, name, bool(result["machine"]["isolated"]))
    if name == "flood_goodput":
        return _flood(_row(rows, "flood", "flood")["flood"])
    if name in ("changes_10ms_goodput", "snapshots_1s_goodput"):
        return _pushes(rows, name, result["machine"]["cpus"])
    return None


def _of_benches(result, name, command):
    for target in result["in_process"].get("targets", []):
        if target["name"] == name:
            return target
    failed = result["in_process"].get("failed", [])
    raise Missing(command if command == _NOBODY else
                  f"{', '.join(failed)} failed" if failed else f"not in this run: {command}")


def reached(result):
    """[{name, wanted, goal, more, measured, pass, proof}], or not_measured instead of the last
    three. A ratio of rates that were not the devices' own is no pass, whatever it is: "counts" is
    false."""
    found = []
    for name, (wanted, goal, more, command) in TARGETS.items():
        target = {"name": name, "wanted": wanted, "goal": goal, "more": more}
        try:
            target.update(_of_rows(result, name) or _of_benches(result, name, command))
            better = target["measured"] >= wanted if more else target["measured"] <= wanted
            target["more"] = more
            # A bench has decided on the exact figure.
            target.setdefault("pass", better and target.get("counts", True))
        except Missing as missing:
            target["not_measured"] = str(missing)
        found.append(target)
    known = set(TARGETS)
    return found + [target for target in result["in_process"].get("targets", [])
                    if target["name"] not in known]


def floors(result):
    """[(target, value, what it is)]: over memif about what a table on the same index reaches, and
    what the benches without I/O tell of their targets."""
    rows = {row["name"]: row for row in result["rows"]}
    found = []
    for name, links in PAIRS.items():
        for link, (_, peer, probe) in links.items():
            try:
                found.append((name, _ratio(rows, probe, peer)[0],
                              f"the bare probe over the same {link}"))
            except Missing:
                continue
    return found + result["in_process"].get("floors", [])


def floor_line(floor):
    name, value, what = floor
    return f"floor  {name:<26} {value:.2f} ({what})"


def line(target):
    if "not_measured" in target:
        return f"target {target['name']:<26} not measured ({target['not_measured']})"
    text = (f"target {target['name']:<26} measured {target['measured']:8.2f} wanted "
            f"{target['wanted']:8.2f} goal {target['goal']:8.2f} "
            f"{'pass' if target['pass'] else 'short'}")
    return text + (f"  # {target['proof']}" if target.get("proof") else "")
