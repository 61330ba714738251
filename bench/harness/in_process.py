"""The benches without I/O: their output, and their `target` lines."""

import re
import subprocess

TARGET = re.compile(r"^target (\S+)\s+measured\s+(\S+)\s+wanted\s+(\S+)\s+goal\s+(\S+) (pass|short)",
                    re.M)


def targets_of(text):
    found = []
    for name, measured, wanted, goal, verdict in TARGET.findall(text):
        measured, wanted, goal = float(measured), float(wanted), float(goal)
        # The line says pass or short; which way is better follows from it.
        more = (measured >= wanted) == (verdict == "pass")
        found.append({"name": name, "measured": measured, "wanted": wanted, "goal": goal,
                      "more": more, "proof": "no I/O"})
    return found


def commands(kind, binaries, pages):
    huge = ["--hugepages"] if pages.enough else []
    pipeline = [str(binaries / "sluice-bench-pipeline"), *huge]
    if kind == "quick":
        return {"pipeline": pipeline + ["--flows", "64000", "--rounds", "3000", "--only-nat4",
                                        "--memory-mib", "1200"]}
    return {"pipeline": pipeline + ["--modes", "--new-flow-seconds", "60"],
            "micro": [str(binaries / "sluice-bench-micro")], "start": [str(binaries / "sluice-bench-start"), "--connections", "16000000",
                                            *huge]}


def run(kind, binaries, core, pages, say):
    """{"targets": [...], "failed": [name, ...], name: text}; what failed has no targets."""
    result = {"targets": [], "failed": []}
    for name, command in commands(kind, binaries, pages).items():
        done = subprocess.run(["taskset", "-c", str(core), *command], capture_output=True,
                              text=True)
        text = done.stdout + (done.stderr if done.returncode else "")
        say(text.rstrip())
        result[name] = text
        if done.returncode:
            result["failed"].append(name)
            say(f"FAILED: {name} ended with status {done.returncode}")
        else:
            result["targets"] += targets_of(text)
    return result
