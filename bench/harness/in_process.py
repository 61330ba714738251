"""The benches without I/O: their output, their `target` lines, profiles of what is short."""

import pathlib
import re
import subprocess
import tempfile

from . import budget, machine, profile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = re.compile(r"^target (\S+)\s+measured\s+(\S+)\s+wanted\s+(\S+)\s+goal\s+(\S+) (pass|short)"
                    r"(?:\s+# (.*))?$", re.M)
FLOOR = re.compile(r"^floor\s+(\S+)\s+(\S+)\s+\((.*)\)$", re.M)
MEDIAN = re.compile(r"\bmedian (-?[\d.]+)")
MEMORY_MIB = 3300  # of 16 million connections
# Of the tables of 4 million flows that are compared: IPv4's, and nat and probe of IPv6.
PIPELINE_MIB = 7200
FEW_MIB = 1800  # of those of a million


def targets_of(text):
    found = []
    for name, measured, wanted, goal, verdict, remark in TARGET.findall(text):
        median = MEDIAN.search(remark)
        measured, wanted, goal = float(measured), float(wanted), float(goal)
        # The bench knows the exact figure, so its verdict stands. Which way is better follows from
        # the goal, or from the verdict.
        more = goal > wanted if goal != wanted else (measured >= wanted) == (verdict == "pass")
        found.append({"name": name, "measured": measured, "wanted": wanted, "goal": goal,
                      "more": more, "pass": verdict == "pass", "proof": remark or "no I/O",
                      **({"median": float(median.group(1))} if median else {})})
    return found


def floors_of(text):
    """[(target, value, what it is)]: what the least program takes that does the target's job."""
    return [(name, float(value), what) for name, value, what in FLOOR.findall(text)]


def _flows(quick, roomy):
    few = ["64000"] if quick else ["1000", "64000", "1000000"]
    return ",".join(few + (["4000000"] if roomy else []))


def commands(kind, binaries, huge):
    """{name: command}; those of --quick are shorter. Without huge pages or the memory for 4 million
    flows these are left out."""
    pages = ["--hugepages"] if huge else []
    quick = kind == "quick"
    roomy = huge or machine.available_mib() * 0.8 > PIPELINE_MIB

    def bench(name, *options):
        return [str(binaries / f"sluice-bench-{name}"), *options]

    found = {
        "pipeline": bench("pipeline", *pages, "--modes",
                          "--memory-mib", str(PIPELINE_MIB if roomy else FEW_MIB),
                          "--flows", _flows(quick, roomy),
                          "--new-flow-seconds", "2" if quick else "60",
                          *(["--rounds", "4800", "--no-parts", "--only-targets"]
                            if quick else [])),
        "start": bench("start", *pages, "--connections", "16000000"),
        "change": bench("change", *(["--windows", "5", "--replaces", "5", "--firsts", "3"]
                                    if quick else [])),
        "kernel": bench("kernel", "--services", "10000", "--kind", "0", "--peer-seconds",
                        "0" if quick else "60")}
    if quick:
        return found
    lines = [str(ROOT / "bench" / "check"), "--lines", "--build", str(binaries.parent)]
    return {**found, "micro": bench("micro"), "cache lines": lines}


# What has threads of its own is not pinned, but goes before other programs (bench/change does so).
PINNED = ("pipeline", "start", "micro")
ROUND_ROBIN = ("chrt", "--rr", "1")
SECONDS = 900  # in which each must be done


def run(kind, binaries, core, say, wanted=True):
    """{"targets": [...], "floors": [...], "failed": [name, ...], "hugepages": {name: whether it had
    some}, name: text}; what failed has no targets. wanted: with huge pages, where they are to be
    had."""
    result = {"targets": [], "floors": [], "failed": [], "hugepages": {}}
    with machine.HugePages(max(MEMORY_MIB, PIPELINE_MIB), wanted) as pages:
        for name, command in commands(kind, binaries, pages.enough).items():
            _run_one(name, [*_before(name, core), *command], result, say)
    return result


_PIPELINE = {"nat4_64k": "nat4_64k", "nat4_64k/probe4_64k": "nat4_64k", "nat4_4m": "nat4_4m",
             "nat4_4m/probe4_4m": "nat4_4m", "nat6_64k/nat4_64k": "nat6_64k",
             "nat6_4m/nat4_4m": "nat6_4m", "fullnat4_64k/nat4_64k": "fullnat4_64k",
             "fullnat4_4m/nat4_4m": "fullnat4_4m", "handed4_64k-nat4_64k": "handed4_64k",
             "handed4_4m-nat4_4m": "handed4_4m", "ipip4-nat4": "modes_ipip4",
             "workers_2/1": "beside_workers_2", "changes_every_10ms_goodput": "beside_changes",
             "new_flows_millions": "new_flows", "tcp_connections_millions": "tcp_connections"}
# (bench, its options, the section of it) by target
_OTHERS = {"endpoint_change_p99_ms": ("change", ["--windows", "1", "--changes", "500",
                                                 "--replaces", "1", "--firsts", "1"], "changes"),
           "full_snapshot_ms": ("change", ["--windows", "1", "--changes", "1", "--replaces", "3",
                                            "--firsts", "1"], "snapshots"),
           "nftables_full_cpu_ms": ("kernel", ["--services", "10000", "--kind", "0",
                                               "--peer-seconds", "0", "--changes", "1"], "full")}
SECTION = re.compile(r"^section (\S+) ([\d.]+)$", re.M)
SECTION_SECONDS = 120  # in which the profile of one must be done


def section_of(target, huge):
    """(name, bench, options) of what has the profile of a target, or None."""
    if target in _PIPELINE:
        name = _PIPELINE[target]
        flows = "4000000" if name.endswith("_4m") else "64000"
        return name, "pipeline", ["--section", name, "--flows", flows, "--rounds", "40000",
                                  "--new-flow-seconds", "1", "--memory-mib", "2600",
                                  *(["--hugepages"] if huge else [])]
    if target in _OTHERS:
        bench, options, name = _OTHERS[target]
        return name, bench, options
    return None


def profiles(kind, short, binaries, core, say, wanted=True, limit=None):
    """{target: profile, or why it is missing} of those of `short` that a bench without I/O
    measures; {} without perf. --quick has no time to open 4 million flows for each. limit: a
    Budget."""
    found, known = {}, {}
    if not profile.found():
        return found
    with machine.HugePages(MEMORY_MIB, wanted) as pages, tempfile.TemporaryDirectory() as folder:
        for target in short:
            section = section_of(target, pages.enough)
            if section is None:
                continue
            name, bench, options = section
            if kind == "quick" and name.endswith("_4m"):
                found[target] = {"missing": "--full takes it"}
                continue
            if name not in known and limit and not limit.allows(budget.PROFILE):
                found[target] = {"missing": budget.NO_TIME}
                continue
            if name not in known:
                # Never before other programs: perf is one of them.
                pinned = ["taskset", "-c", str(core)] if bench in PINNED else []
                known[name] = _profile(folder, name, [*pinned, str(
                    binaries / f"sluice-bench-{bench}"), *options], say)
            found[target] = known[name]
    return found


def _profile(folder, name, command, say):
    try:
        picture, output = profile.of_bench(folder, command, SECTION_SECONDS, name)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        say(f"no profile of {name}: {error}")
        return {"missing": str(error)}
    figure = SECTION.search(output)
    cycles = float(figure.group(2)) if figure else 0
    say(f"profile {name}: " + ", ".join(f"{share:.0%} {symbol}"
                                        for share, symbol in picture["symbols"][:3]))
    return {**picture, "section": name, "each": cycles, "unit": "cycles"}


def _before(name, core):
    if name in PINNED:
        return ("taskset", "-c", str(core))
    allowed = subprocess.run([*ROUND_ROBIN, "true"], capture_output=True).returncode == 0
    return ROUND_ROBIN if allowed else ()


def _run_one(name, command, result, say):
    huge = result["hugepages"][name] = "--hugepages" in command
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, 124, "", f"{name}: not done in {SECONDS} s\n")
    text = done.stdout + (done.stderr if done.returncode else "")
    say(text.rstrip())
    result[name] = text
    if done.returncode:
        result["failed"].append(name)
        say(f"FAILED: {name} ended with status {done.returncode}")
    else:
        result["floors"] += floors_of(text)
        for target in targets_of(text):
            target["proof"] += "; huge pages" if huge else "; ordinary pages"
            result["targets"].append(target)
