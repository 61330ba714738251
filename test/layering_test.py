#!/usr/bin/env python3
"""Executes the include table of the design: which folder may include which.

usage: layering_test.py ROOT            checks every source file
       layering_test.py ROOT --selftest proves that a violation of each kind is found
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".h", ".cc", ".c", ".cpp", ".hpp"}

# Third-party and system headers by what they are.
KINDS = {
    "dpdk": re.compile(r"^(rte_|bus_.*driver|ethdev_driver)"),
    "grpc": re.compile(r"^(grpc|grpcpp|google/protobuf)(/|\.h)"),
    "protobuf": re.compile(r"^(google/protobuf/|sluice/v1/)|\.pb\.h$"),
    "yaml": re.compile(r"^(yaml-cpp/|yaml\.h)"),
    "log": re.compile(r"^spdlog/"),
    "kernel": re.compile(r"^(linux/|libmnl/|libnftnl/|libnetfilter_conntrack/|netlink/)"),
    "os": re.compile(r"^(sys/|unistd\.h|fcntl\.h|poll\.h|pthread\.h|sched\.h|net/|netinet/|arpa/|"
                     r"linux/|dirent\.h|signal\.h|mutex$|thread$|condition_variable$|fstream$|"
                     r"iostream$|filesystem$)"),
}

# (folder, project prefixes it may include besides itself, kinds it may not include). The longest
# matching folder counts. A project include is one written from the root.
RULES = [
    ("dataplane/core", [], ["dpdk", "grpc", "protobuf", "yaml", "log", "kernel", "os"]),
    ("dataplane/core/net", [], ["dpdk", "grpc", "protobuf", "yaml", "log", "kernel", "os"]),
    ("dataplane/pipeline", ["dataplane/core/"],
     ["dpdk", "grpc", "protobuf", "yaml", "log", "kernel"]),
    ("dataplane/dpdk", ["dataplane/core/", "dataplane/pipeline/"],
     ["grpc", "protobuf", "yaml"]),
    ("kni", ["dataplane/core/"], ["dpdk", "grpc", "protobuf", "yaml"]),
    # The mirror writes next hops and routes of the workers: their contract is pipeline/next_hop.h.
    ("kni/exception", ["dataplane/core/", "dataplane/pipeline/next_hop.h",
                       "dataplane/pipeline/packet.h"],
     ["dpdk", "grpc", "protobuf", "yaml"]),
    ("control/model", ["dataplane/core/net/", "dataplane/core/fwd/"],
     ["dpdk", "grpc", "protobuf", "yaml", "log", "kernel", "os"]),
    # sched/: what schedulers there are, sizes of their tables, the pick that explain shows; sink.h has
    # Result.
    ("control/compile", ["control/model/", "dataplane/core/net/", "dataplane/core/fwd/",
                         "dataplane/core/sched/", "dataplane/core/sink.h"],
     ["dpdk", "grpc", "protobuf", "yaml", "log", "kernel", "os"]),
    ("control/publish", ["control/model/", "control/compile/", "proto/", "dataplane/core/",
                         "dataplane/pipeline/worker_view.h"], ["dpdk", "kernel", "yaml"]),
    ("control/server", ["control/model/", "control/compile/", "control/publish/", "proto/",
                        "dataplane/core/", "dataplane/pipeline/worker_view.h"],
     ["dpdk", "yaml"]),
    ("control/http", ["control/model/", "control/compile/", "control/publish/", "proto/",
                      "dataplane/core/", "dataplane/pipeline/worker_view.h"], ["dpdk", "yaml"]),
    ("control/cli", ["proto/"], ["dpdk", "kernel", "log"]),
    ("proto", ["control/model/", "dataplane/core/"], ["dpdk", "kernel", "log"]),
    # The forms of an address to listen on have one parser.
    ("conf", ["dataplane/core/", "control/model/", "control/http/bind_address.h"], ["dpdk", "grpc", "protobuf", "kernel"]),
]
# Mains (the files of control/ itself), tests and benches wire everything together.
FREE = re.compile(r"^(control/[^/]+|(test|bench)/.+)$")
PROJECT = ("dataplane/", "control/", "kni/", "proto/", "conf/", "test/", "bench/")


def rule_for(path):
    best = None
    for folder, allowed, forbidden in RULES:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best[0])):
            best = (folder, allowed, forbidden)
    if best is not None:
        return best
    return None if FREE.match(path) else (None, [], [])


def home_of(folder):
    """What counts as a folder's own: a kni adapter may not look into its siblings."""
    if folder == "dataplane/core/net":
        return "dataplane/core/net/"
    return folder + "/"


def check(path, lines):
    rule = rule_for(path)
    if rule is None:
        return []
    folder, allowed, forbidden = rule
    if folder is None:
        return [f"{path}: in no folder of the include table"]
    home = home_of(folder)
    if folder == "kni":
        home = "/".join(path.split("/")[:2]) + "/"
    faults = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, header = match.groups()
        where = f"{path}:{number}"
        if header.startswith(PROJECT):
            generated = header.endswith(".pb.h")
            if not generated and not header.startswith(tuple([home, *allowed])):
                faults.append(f"{where}: {folder} may not include {header}")
        elif quote == '"' and "/" not in header and not KINDS["dpdk"].match(header) \
                and not header.endswith(".pb.h"):
            faults.append(f"{where}: write {header} from the root")
        for kind in forbidden:
            if KINDS[kind].search(header):
                faults.append(f"{where}: {folder} may not include {kind} header {header}")
                break
    return faults


def check_tree(root):
    faults = []
    count = 0
    for top in ("dataplane", "control", "kni", "proto", "conf", "bench", "test"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SOURCES and file.is_file():
                count += 1
                name = file.relative_to(root).as_posix()
                faults += check(name, file.read_text(errors="replace").splitlines())
    return count, faults


def selftest():
    bad = [
        ("dataplane/core/net/parse.cc", '#include "dataplane/core/fwd/decide.h"'),
        ("dataplane/core/fwd/decide.cc", '#include "control/model/model.h"'),
        ("dataplane/core/fwd/decide.cc", "#include <rte_mbuf.h>"),
        ("dataplane/core/conn/a.cc", "#include <mutex>"),
        ("dataplane/pipeline/worker.h", '#include <rte_hash.h>'),
        ("dataplane/dpdk/port.cc", '#include "control/publish/publisher.h"'),
        ("kni/nftables/apply.cc", '#include "control/compile/compile.h"'),
        ("kni/nftables/apply.cc", '#include "kni/iptables/render.h"'),
        ("control/compile/select.cc", "#include <spdlog/spdlog.h>"),
        ("control/server/server.cc", '#include "dataplane/dpdk/eal.h"'),
        ("control/cli/main.cc", '#include "control/model/model.h"'),
        ("conf/load.cc", "#include <grpcpp/server.h>"),
        ("dataplane/core/fwd/decide.cc", '#include "decide.h"'),
        ("control/stray/x.cc", "#include <vector>"),
    ]
    good = [
        ("dataplane/core/fwd/decide.cc", '#include "dataplane/core/net/address.h"'),
        ("control/sluiced.cc", '#include "dataplane/dpdk/eal.h"'),
        ("kni/nftables/apply.cc", '#include "kni/nftables/render.h"'),
    ]
    missed = [b for b in bad if not check(b[0], [b[1]])]
    wrong = [g for g in good if check(g[0], [g[1]])]
    for item in missed:
        print("not found:", *item)
    for item in wrong:
        print("wrongly refused:", *item)
    return 1 if missed or wrong else 0


def main():
    root = pathlib.Path(sys.argv[1])
    if "--selftest" in sys.argv[2:]:
        return selftest()
    count, faults = check_tree(root)
    for fault in faults:
        print(fault)
    print(f"{count} files, {len(faults)} violations")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
