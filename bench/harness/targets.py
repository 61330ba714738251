"""The targets of the design that a result has figures for."""


def _median(rows, name):
    """Median rate of a row that may be compared: measured, not oversubscribed, device the limit."""
    row = rows.get(name, {})
    if row.get("oversubscribed") or "throughput" not in row:
        return None, False
    return row["throughput"]["median"], row["throughput"]["limit"].get("device", False)


def _ratio(rows, name, of, against, wanted, goal):
    ours, limit = _median(rows, of)
    peer, peer_limit = _median(rows, against)
    if not ours or not peer:
        return []
    proof = "device was the limit" if limit else "device was NOT the limit"
    # A peer that could have done more makes the ratio look better than it is.
    proof += "" if peer_limit else "; the generator limited the peer"
    return [{"name": name, "measured": ours / peer, "wanted": wanted, "goal": goal, "more": True,
             "counts": limit and peer_limit, "proof": proof}]


def reached(result):
    """[{name, measured, wanted, goal, more, pass, proof}]; a ratio of rates that were not the devices'
    own is no pass, whatever it is: "counts" is false."""
    rows = {row["name"]: row for row in result["rows"]}
    found = _ratio(rows, "memif_64k/macswap", "base", "macswap", 0.75, 0.85)
    found += _ratio(rows, "memif_1m/macswap", "flows-1m", "macswap-1m", 0.55, 0.65)
    isolated = bool(result["machine"]["isolated"])
    for share, wanted in (("10", 20), ("50", 40), ("90", 150)):
        percentiles = rows.get("base", {}).get("latency", {}).get(share)
        if percentiles:
            found.append({"name": f"latency_p99_us_at_{share}", "measured": percentiles["p99"],
                          "wanted": wanted, "goal": wanted, "more": False,
                          "proof": "isolated core" if isolated else "core not isolated"})
    flood = rows.get("flood", {})
    if "flood" in flood and not flood.get("oversubscribed"):
        found.append({"name": "flood_goodput", "measured": flood["flood"]["ratio"], "wanted": 0.99,
                      "goal": 0.99, "more": True, "proof": ""})
    found += result["in_process"].get("targets", [])
    for target in found:
        better = target["measured"] >= target["wanted"] if target["more"] else \
            target["measured"] <= target["wanted"]
        target["pass"] = better and target.get("counts", True)
    return found


def line(target):
    text = (f"target {target['name']:<26} measured {target['measured']:8.2f} wanted "
            f"{target['wanted']:8.2f} goal {target['goal']:8.2f} "
            f"{'pass' if target['pass'] else 'short'}")
    return text + (f"  # {target['proof']}" if target.get("proof") else "")
