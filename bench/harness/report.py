"""Result file, Markdown report, plots, and what changed since the last result of such a machine."""

import json
import re

from . import machine, matrix, measure, plots, targets


def _rate(row):
    if "throughput" in row:
        t = row["throughput"]
        return f"{t['median']:.2f} +-{100 * t['spread']:.0f} %"
    return ""


def _remarks(row):
    if "not_measured" in row:
        return "not measured: " + row["not_measured"]
    if "failed" in row:
        return "FAILED: " + row["failed"].splitlines()[0]
    words = ["oversubscribed"] if row.get("oversubscribed") else []
    stolen = row.get("throughput", {}).get("host", {}).get("steal", [])
    if any(stolen):
        words.append(f"other guests had the CPUs in {sum(map(bool, stolen))} of {len(stolen)} "
                     "windows")
    if "throughput" in row:
        limit = row["throughput"]["limit"]
        if "full" in limit:
            words.append(f"bursts full {limit['full']:.0%}")
        if "queued" in limit:
            words.append(f"{min(1, limit['queued']):.0%} of the frames in flight at the device, "
                         f"generator idle {limit['generator_idle']:.0%}")
    if "search" in row:
        s = row["search"]
        rates = ", ".join(f"{name.upper()} {s[name]:.2f}" for name in measure.LOSSES if name in s)
        words.append(f"{rates} Mpps ({s['spoilt']} of {s['held_trials']} trials spoilt)")
    if "latency" in row:
        words.append("p99 " + ", ".join(f"{share} %: {measure.latency_text(found)}"
                                        for share, found in row["latency"].items()))
    if "new_flows" in row:
        words.append(f"{row['new_flows']['flows_millions']:.2f} million new flows/s")
    if "sync" in row:
        s = row["sync"]
        words.append(f"full sync {s['full_ms']:.0f} ms, CPU until ready "
                     f"{s['ready_cpu_ms']:.0f} ms; one endpoint in force in "
                     f"{s['change_ms']:.1f} ms (sync {s['change_sync_ms']:.2f} ms, CPU "
                     f"{s['change_cpu_ms']:.1f} ms)")
    for name, found in row.get("pushes", {}).items():
        words.append(f"{name.replace('_', ' ')}: goodput x{found['ratio']['goodput']:.4f}, without "
                     f"what the generator had no time to take x{found['ratio']['taken']:.4f}, "
                     f"{found['pushed']} of {found['asked']:.0f} pushes, "
                     f"{found['beside']['offered']['median']:.2f} Mpps offered")
    for name in ("flood", "foreign"):
        if name in row:
            f = row[name]
            words.append(f"goodput {f['beside']['median']:.4f} beside it (bursts full "
                         f"{f['beside']['full']:.0%}, {f['beside']['refused']:.1%} found the ring "
                         f"full), {f['alone']['median']:.4f} alone")
    return "; ".join(words)


def row_line(row):
    """One line for the terminal."""
    return f"{row['name']:<20} {_rate(row):<16} {_remarks(row)}"


def counted(row):
    """Has a figure that may be compared."""
    return "throughput" in row and "failed" not in row


def ratios(rows):
    """(row, peer, ratio, whether they lay in turn): every row of sluiced over the peers with the
    same point, those in turn with it if there are any."""
    for row in rows:
        if row["dut"] != "sluiced" or not counted(row):
            continue
        found = []
        for peer in rows:
            same = {"testpmd": ("flows", "lengths"), "probe": ("flows", "lengths", "family")}.get(
                peer["dut"].split("-")[0], tuple(row["point"]))
            if peer["dut"] != "sluiced" and counted(peer) and \
                    peer["generator"] == row["generator"] and \
                    peer["link"].split("-af")[0] == row["link"].split("-af")[0] and \
                    all(peer["point"][key] == row["point"][key] for key in same):
                ratio, turns = measure.ratio(row, peer)
                found.append((row["name"], peer["name"], ratio, bool(turns)))
        in_turn = [each for each in found if each[3]]
        yield from in_turn or [each for each in found if not matrix.is_yardstick(each[1])]


def previous(folder, result, own):
    """The newest stored result of the same kind of machine, or None."""
    for path in sorted(folder.glob("*.json"), reverse=True):
        if path == own:
            continue
        old = json.loads(path.read_text())
        if old["machine"]["kind"] == result["machine"]["kind"]:
            return path, old
    return None


def changes(result, old):
    """(row, now, before, verdict): a change counts when it is more than both spreads."""
    before = {row["name"]: row for row in old["rows"] if counted(row)}
    for row in result["rows"]:
        if not counted(row) or row["name"] not in before or matrix.is_yardstick(row["name"]):
            continue
        now, then = row["throughput"], before[row["name"]]["throughput"]
        change = now["median"] / then["median"] - 1 if then["median"] else 0
        noise = now["spread"] + then["spread"]
        verdict = "same" if abs(change) <= noise else "better" if change > 0 else "worse"
        yield row["name"], now["median"], then["median"], f"{change:+.0%} ({verdict})"


def _table(head, lines):
    text = "| " + " | ".join(head) + " |\n|" + " --- |" * len(head) + "\n"
    return text + "".join("| " + " | ".join(str(c) for c in line) + " |\n" for line in lines) + "\n"


def profiles(result):
    """Where the cycles go of what is short: of rows, and of benches without I/O."""
    short = {t["name"] for t in result["targets"] if not t.get("pass", True)}
    text = ""
    for name, links in targets.PAIRS.items():
        ours = [names[0] for names in links.values()]
        for row in result["rows"]:
            if name in short and row.get("profile") and row["name"] in ours:
                text += _profile_table(f"row {row['name']}", [name], row["profile"])
    for row in result["rows"]:
        of = [name for name in short if targets.PROFILED.get(name) == row["name"]]
        if of and row.get("profile"):
            text += _profile_table(f"row {row['name']}", of, row["profile"])
    # One section may show why several targets are short.
    of_section = {}
    for name, picture in result.get("profiles", {}).items():
        if "missing" in picture:
            text += f"No profile of {name}: {picture['missing']}.\n\n"
            continue
        of_section.setdefault(picture["section"], ([], picture))[0].append(name)
    for section, (names, picture) in of_section.items():
        text += _profile_table(f"{section}, no I/O", names, picture)
    return text


MODE = re.compile(r"^(\S+)\s+([\d.]+) cycles per packet, median ([\d.]+)$", re.M)


def _figure(row):
    """What a row of the matrix is for."""
    if not _rate(row) or "failed" in row:
        return _remarks(row)
    words = []
    if "new_flows" in row:
        found = row["new_flows"]
        words.append(f"{found['mpps']:.2f} Mpps of which {found['share']:.0%} are first packets, "
                     f"{found['flows_millions']:.2f} million new flows/s")
    if "pushes" in row:
        words.append(f"goodput x{row['pushes']['changes_10ms']['ratio']['taken']:.4f}")
    words += [f"goodput x{row[name]['ratio']:.4f}" for name in ("flood", "foreign") if name in row]
    return "; ".join(words) or f"{_rate(row)} Mpps"


def coverage(result):
    """[(factor, value, figure or why there is none)]: the whole matrix."""
    rows = {row["name"]: row for row in result["rows"]}
    without_io = {name: f"{float(low):.0f} cycles (median {float(median):.0f})"
                  for name, low, median in MODE.findall(result["in_process"].get("pipeline", ""))}
    without_io.update({t["name"]: f"{t['measured']:.2f}" +
                       (f" (median {t['median']:.2f})" if "median" in t else "")
                       for t in result["targets"] if "measured" in t})
    for factor, values in matrix.FACTORS.items():
        for value, name in values.items():
            if name in matrix.WITHOUT_IO:
                yield factor, value, without_io.get(name, "not in this run")
            else:
                yield factor, value, _figure(rows[name]) if name in rows else "not in this run"


def _profile_table(what, names, picture):
    each, unit = picture.get("each", 0), picture.get("unit", "")
    remark = (f" {picture['idle']:.0%} of the samples, empty polls, are left out."
              if "idle" in picture else "")
    lines = [(f"{share:.1%}", f"{share * each:.1f}" if each else "", f"`{symbol}`")
             for share, symbol in picture["symbols"]]
    return (f"## Where the cycles of {what} go\n\nShort: {', '.join(names)}."
            + (f" {each:.0f} {unit} each." if each else "") + remark + "\n\n"
            + _table(["share", unit if each else "", "symbol"], lines))


def _pages(huge):
    """"huge pages: rows, start; ordinary: change", of {what: whether it had huge ones}."""
    kinds = {"huge pages": [name for name, had in huge.items() if had],
             "ordinary": [name for name, had in huge.items() if not had]}
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)


def markdown(result, old, pictures):
    m = result["machine"]
    text = (f"# {result['date']}, {m['kind']}\n\n"
            f"`bench/run --{result['run']}`, commit {m['commit']}, kernel {m['kernel']}, "
            f"DPDK {m['dpdk']}, {m['compiler']}; "
            f"{_pages(result['settings']['hugepages'])}; load before "
            f"{m['load_before']:.1f}; isolated CPUs: {m['isolated'] or 'none'}.\n\n"
            "Frames that came back, in million a second: median of "
            f"{result['settings']['windows']} windows of {result['settings']['seconds']} s "
            "(four times as many, of half as long, for rows of a pair; in --full 5 of 0.5 s, in turn "
            "10 of 0.25 s, for rows that no target is for) and half their range. Compare ratios; "
            "absolute figures hold for this machine and hour.\n\n")
    text += "## Ratio to the peers\n\n" + _table(
        ["row", "peer", "ratio", ""], [(a, b, f"{r:.2f}", "" if in_turn else "not in turn")
                                       for a, b, r, in_turn in ratios(result["rows"])])
    text += "## Targets\n\n```\n" + "".join(targets.line(t) + "\n" for t in result["targets"])
    text += "".join(targets.floor_line(f) + "\n" for f in result["floors"])
    text += "```\n\n" + profiles(result) + "## Rows\n\n" + _table(
        ["row", "device", "link", "Mpps", "remarks"],
        [(r["name"], r["dut"], r["link"], _rate(r), _remarks(r)) for r in result["rows"]
         if "failed" in r or not matrix.is_yardstick(r["name"])])
    if result["run"] == "full":
        text += "## Matrix\n\n" + _table(["factor", "value", "figure"], coverage(result))
    if old:
        text += f"## Since {old[0].name}\n\n" + _table(["row", "now", "before", "change"],
            [(n, f"{a:.2f}", f"{b:.2f}", v) for n, a, b, v in changes(result, old[1])])
    text += "".join(f"![{p.stem}]({p.name})\n\n" for p in pictures)
    lines = [(kind, name.replace("_", " "), f"{r['requests_per_second']:.0f}",
              "" if r["p99_ms"] is None else f"{r['p99_ms']:.1f}",
              ", ".join(f"{count} {word}" for word, count in r["errors"].items()))
             for kind, runs in result.get("stateful", {}).items()
             for name, r in runs.items() if isinstance(r, dict)]
    if lines:
        text += ("## wrk and nginx in namespaces\n\nAll on the same CPUs; `direct` is the gateway "
                 "as a router.\n\n" + _table(["through", "connections", "requests/s", "p99 ms",
                                              "errors"], lines))
    for name, output in result["in_process"].items():
        if isinstance(output, str):
            text += f"## {name}, no I/O\n\n```\n{output.rstrip()}\n```\n\n"
    return text


def write(result, folder):
    """@return paths that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{result['date']}-{machine.slug(result['machine']['cpu'])}"
    own = folder / f"{stem}.json"
    old = previous(folder, result, own)
    own.write_text(json.dumps(result, indent=1) + "\n")
    pictures = plots.draw(result, folder, stem)
    page = folder / f"{stem}.md"
    page.write_text(markdown(result, old, pictures))
    return [own, page, *pictures]
