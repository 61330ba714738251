#!/usr/bin/python3
"""Sums up the logs of ctest: test/tally.py [--broken N] [--names README] LOG...

Counts single cases of GoogleTest and pytest where a program reports them, else the program as one.
A stage that could not be built counts as one failure. A skip is allowed when its name, in backticks,
stands in the "Named skips" section of README. The last line is "N passed, M failed, K skipped".
"""

import argparse
import pathlib
import re
import sys

GTEST_PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\S+)(?: \(\d+ ms\)|, where .* \(\d+ ms\))$", re.M)
GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.M)
PYTEST_SUMMARY = re.compile(r"^(?=.*\bin [\d.]+s)((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.M)
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (\S+?):\d+: (.*)$", re.M)


class Tally:
    def __init__(self):
        self.passed, self.failures, self.skips = 0, [], []

    def add(self, stage, name, output, ok):
        """One ctest entry."""
        passed = [int(n) for n in GTEST_PASSED.findall(output)]
        failed = [f"{stage}: {name}: {case}" for case in GTEST_FAILED.findall(output)]
        skipped = GTEST_SKIPPED.findall(output)
        for summary in PYTEST_SUMMARY.findall(output):
            counts = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", summary)}
            passed.append(counts.get("passed", 0))
            bad = counts.get("failed", 0) + counts.get("errors", 0) + counts.get("error", 0)
            failed += [f"{stage}: {name}: pytest"] * bad
            skipped += [f"{where}: {why}" for where, why in PYTEST_SKIPPED.findall(output)]
        if not ok and not failed:
            failed.append(f"{stage}: {name}")  # it crashed, ran out of time, or is one whole test
        self.passed += sum(passed) if passed else int(ok and not skipped)
        self.failures += failed
        self.skips += skipped


def entries(log):
    """(name, output, passed) of every test in a ctest log."""
    for block in re.split(r"^(?=\d+/\d+ Testing: )", log, flags=re.M):
        head = re.search(r"^\d+/\d+ Testing: (\S+)$", block, re.M)
        if head:
            yield head[1], block, re.search(r"^Test Passed\.$", block, re.M) is not None


def named_skips(readme):
    text = pathlib.Path(readme).read_text()
    section = re.search(r"^## Named skips$(.*?)(?=^## |\Z)", text, re.M | re.S)
    return re.findall(r"`([^`]+)`", section[1]) if section else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--broken", type=int, default=0)
    parser.add_argument("--names")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    tally = Tally()
    for path in map(pathlib.Path, args.logs):
        for name, output, ok in entries(path.read_text(errors="replace")):
            tally.add(path.stem, name, output, ok)
    allowed = named_skips(args.names) if args.names else []
    unnamed = [skip for skip in tally.skips if not any(name in skip for name in allowed)]
    for failure in tally.failures:
        print(f"FAILED   {failure}")
    for skip in tally.skips:
        print(f"SKIPPED  {skip}{'  (not named in test/README.md)' if skip in unnamed else ''}")
    failed = len(tally.failures) + len(unnamed) + args.broken
    print(f"{tally.passed} passed, {failed} failed, {len(tally.skips)} skipped")
    return 1 if failed or tally.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
