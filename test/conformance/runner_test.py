#!/usr/bin/env python3
"""What the runner says and how it ends: one line per failing probe, what is not applicable by name
and why, the totals, and the exit code.

usage: runner_test.py RUNNER CASES
"""
import pathlib
import re
import subprocess
import sys
import tempfile

RUNNER, CASES = sys.argv[1], pathlib.Path(sys.argv[2])
TOTALS = re.compile(r"(\d+) passed, (\d+) failed, (\d+) not applicable")


def run(*args):
    done = subprocess.run([RUNNER, *args], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    totals = TOTALS.fullmatch(lines[-1]) if lines else None
    return done.returncode, lines, totals and tuple(int(n) for n in totals.groups()), done.stderr


def first_case(file="01-service-kinds.yaml"):
    """The head of a file and its first case."""
    text = (CASES / file).read_text()
    return text[:text.index("\n- name:", text.index("- name:"))] + "\n"


def check(what, good, seen):
    if not good:
        sys.exit(f"{what}: {seen}")


def main(folder):
    case = folder / "case.yaml"

    case.write_text(first_case())
    code, lines, totals, _ = run("--subject", "core", "--cases", str(case))
    check("a case that passes", (code, totals, len(lines)) == (0, (1, 0, 0), 1), lines)

    case.write_text(first_case().replace("verdict: forward", "verdict: reject"))
    code, lines, totals, _ = run("--subject", "core", "--cases", str(case))
    check("a failing probe is one line", len(lines) == 2 and lines[0].startswith("FAIL "), lines)
    check("it says where, expected, got, rules",
          all(word in lines[0] for word in ("case.yaml clusterip-basic", "expected reject",
                                            "got forward", "[P-4 Q-2 EP-2]")), lines[0])
    check("a failure", (code, totals) == (1, (0, 1, 0)), lines)

    case.write_text(first_case().replace("[nftables, iptables]", "[hns]"))
    code, lines, totals, _ = run("--subject", "core", "--cases", str(case))
    check("not applicable is no failure", (code, totals) == (0, (0, 0, 1)), lines)
    check("it is named with its reason",
          re.fullmatch(r"not applicable: case\.yaml clusterip-basic: .+", lines[0]), lines)

    rendered = first_case("19-iptables-rendering.yaml")
    case.write_text(rendered)
    code, lines, totals, _ = run("--subject", "iptables", "--cases", str(case))
    check("rules as they are wanted", (code, totals) == (0, (1, 0, 0)), lines)
    case.write_text(rendered.replace("--or-mark 0x4000", "--or-mark 0x8000")
                    .replace("route_localnet: 1", "route_localnet: 0"))
    code, lines, totals, _ = run("--subject", "iptables", "--cases", str(case))
    check("other rules", (code, totals, len(lines)) == (1, (0, 1, 0), 3), lines)
    check("the chain and both rules are named",
          all(word in lines[0] for word in ("KUBE-MARK-MASQ: expected", "0x8000", "got", "0x4000",
                                            "[IT-1 IT-2]")), lines[0])
    check("so is the setting", "route_localnet: expected {0}, got {1}" in lines[1], lines[1])

    case.write_text("cases: [")
    for args in ((), ("--subject", "core"), ("--subject", "none", "--cases", str(case)),
                 ("--subject", "core", "--cases", str(folder / "absent")),
                 ("--subject", "core", "--cases", str(case))):
        code, lines, _, error = run(*args)
        check(f"wrong use {args}", code == 2 and not lines and error.count("\n") == 1,
              (code, lines, error))


with tempfile.TemporaryDirectory(prefix="sluice-runner-") as temporary:
    main(pathlib.Path(temporary))
