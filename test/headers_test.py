#!/usr/bin/env python3
"""Every header compiles alone, with the flags of its folder. One that a source of the build includes
first has been compiled so already.

usage: headers_test.py ROOT BUILD [PREFIX...]   only headers below the prefixes
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

TOPS = ("dataplane", "control", "kni", "proto", "conf", "bench", "test")


def flags_by_folder(build):
    """One compile command per folder, without the source, the output and the launcher, but with the
    include paths of every target: a folder has several, and who may use which is layering's work."""
    found, paths = {}, {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        kept, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-o", "-MT", "-MF", "-c"):
                skip = True
            elif word not in ("-MD",):
                kept.append(word)
        for word, following in zip(kept, kept[1:] + [""]):
            if word.startswith("-I"):
                paths[(word,)] = None
            elif word in ("-isystem", "-include"):
                paths[(word, following)] = None
        found.setdefault(str(pathlib.Path(entry["file"]).parent), (kept, entry["directory"]))
    more = [word for path in paths for word in path]
    found = {folder: (kept + more, directory) for folder, (kept, directory) in found.items()}
    return found


def flags_for(header, root, found):
    folder = header.parent
    while folder != root.parent:
        if str(folder) in found:
            return found[str(folder)]
        folder = folder.parent
    below = [f for f in sorted(found) if f.startswith(str(root))]
    return found[below[0]]


def first_includes(root, build):
    """Headers that the build has compiled before anything else."""
    found = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(root):
            continue
        for line in source.read_text().splitlines():
            if line.startswith("#include"):
                found.add(root / line.split()[1].strip('"<>'))
                break
    return found


def compile_alone(header, root, found):
    command, directory = flags_for(header, root, found)
    # Unused things are a header's right; "pragma once in main file" is how it is compiled here.
    source = f'#include "{header.relative_to(root).as_posix()}"\n'
    run = subprocess.run([*command, "-I", str(root), "-Wno-unused", "-fsyntax-only", "-x", "c++", "-"],
                         input=source, cwd=directory, capture_output=True, text=True)
    return "" if run.returncode == 0 else f"{header.relative_to(root)}:\n{run.stderr[:2000]}"


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    prefixes = tuple(sys.argv[3:]) or TOPS
    found = flags_by_folder(build)
    headers = [h for top in TOPS for h in sorted((root / top).rglob("*.h"))
               if h.relative_to(root).as_posix().startswith(prefixes)]
    proved = first_includes(root, build)
    rest = [h for h in headers if h not in proved]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [f for f in pool.map(lambda h: compile_alone(h, root, found), rest) if f]
    for fault in faults:
        print(fault)
    print(f"{len(headers)} headers, {len(headers) - len(rest)} of them by the build, "
          f"{len(faults)} do not compile alone")
    return 1 if faults or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
