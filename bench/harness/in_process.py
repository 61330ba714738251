"""The benches without I/O: their output, and their `target` lines."""

import re
import subprocess

from . import machine

TARGET = re.compile(r"^target (\S+)\s+measured\s+(\S+)\s+wanted\s+(\S+)\s+goal\s+(\S+) (pass|short)"
                    r"(?:\s+# (.*))?$", re.M)
MEMORY_MIB = 3300  # of the largest: 16 million connections


def targets_of(text):
    found = []
    for name, measured, wanted, goal, verdict, remark in TARGET.findall(text):
        measured, wanted, goal = float(measured), float(wanted), float(goal)
        # The line says pass or short; which way is better follows from it.
        more = (measured >= wanted) == (verdict == "pass")
        found.append({"name": name, "measured": measured, "wanted": wanted, "goal": goal,
                      "more": more, "proof": remark or "no I/O"})
    return found


def commands(kind, binaries, huge):
    """{name: command}; those of --quick are shorter."""
    pages = ["--hugepages"] if huge else []
    quick = kind == "quick"

    def bench(name, *options):
        return [str(binaries / f"sluice-bench-{name}"), *options]

    found = {
        "pipeline": bench("pipeline", *pages, "--modes", "--memory-mib", "2600",
                          "--new-flow-seconds", "5" if quick else "60",
                          *(["--flows", "64000,4000000", "--rounds", "1500"] if quick else [])),
        "start": bench("start", *pages, "--connections", "16000000"),
        "change": bench("change"),
        "kernel": bench("kernel", "--services", "10000", "--kind", "0", "--peer-seconds",
                        "0" if quick else "120")}
    return found if quick else {**found, "micro": bench("micro")}


# What has threads of its own is not pinned, but goes before other programs (bench/change does so).
PINNED = ("pipeline", "start", "micro")
ROUND_ROBIN = ("chrt", "--rr", "1")
SECONDS = 900  # in which each must be done


def run(kind, binaries, core, say, wanted=True):
    """{"targets": [...], "failed": [name, ...], name: text}; what failed has no targets.
    wanted: with huge pages, where they are to be had."""
    result = {"targets": [], "failed": []}
    with machine.HugePages(MEMORY_MIB, wanted) as pages:
        for name, command in commands(kind, binaries, pages.enough).items():
            _run_one(name, [*_before(name, core), *command], result, say)
    return result


def _before(name, core):
    if name in PINNED:
        return ("taskset", "-c", str(core))
    allowed = subprocess.run([*ROUND_ROBIN, "true"], capture_output=True).returncode == 0
    return ROUND_ROBIN if allowed else ()


def _run_one(name, command, result, say):
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
        result["targets"] += targets_of(text)
