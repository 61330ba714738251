#!/usr/bin/env python3
"""One file per rule family: each names its rules, has a test file of its own, and is listed.

usage: rule_files_test.py ROOT            checks every file of control/compile that names rules
       rule_files_test.py ROOT --selftest proves that a missing test and a missing line are found
"""
import pathlib
import re
import sys

RULE = re.compile(r"\b([A-Z]{1,2})-\d+")


def families(text):
    """Prefixes of the rules that the comment at the top names: {"EP", "C"}."""
    comment = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        comment.append(line)
    return set(RULE.findall("\n".join(comment)))


def check(sources, tests, readme):
    """sources, tests: file stem -> text. Returns what is wrong."""
    wrong = []
    named = 0
    for stem, text in sorted(sources.items()):
        rules = families(text)
        if not rules:
            continue
        named += 1
        if f"`{stem}`" not in readme:
            wrong.append(f"control/compile/{stem}.cc is not in the table of the README")
        test = tests.get(f"{stem}_test")
        if test is None:
            wrong.append(f"control/compile/{stem}.cc has no {stem}_test.cc")
        elif not rules & set(RULE.findall(test)):
            wrong.append(f"{stem}_test.cc names no rule of {', '.join(sorted(rules))}")
    if named < 10:
        wrong.append(f"only {named} files name rules")
    return wrong


def read(folder, pattern):
    return {path.stem: path.read_text() for path in folder.glob(pattern)}


def main(root, selftest):
    sources = read(root / "control/compile", "*.cc")
    tests = read(root / "test/unit/control", "**/*_test.cc")
    readme = (root / "control/compile/README.md").read_text()
    if selftest:
        less = {stem: text for stem, text in tests.items() if stem != "topology_test"}
        broken = [check(sources, less, readme), check(sources, tests, readme.replace("`empty`", "")),
                  check(sources, {**tests, "empty_test": ""}, readme)]
        return 0 if all(broken) else 1
    wrong = check(sources, tests, readme)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), "--selftest" in sys.argv))
