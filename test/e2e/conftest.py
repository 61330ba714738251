"""Fixtures: every test has its own namespaces, nginx servers and sluiced (conf/lab.py)."""

import os
import pathlib
import re
import signal
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conf"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import lab  # noqa: E402

COUNTERS = ROOT / "dataplane" / "pipeline" / "counters.h"


def pytest_addoption(parser):
    parser.addoption("--port-kind", default="af_xdp", 
                     choices=["af_xdp", "af_packet", "nftables", "iptables"])
    parser.addoption("--binaries", default=os.environ.get("SLUICE_BINARIES",
                                                          str(ROOT / "build" / "bin")))


class Net(lab.Lab):
    """A lab with what tests ask of sluiced."""

    before = {}

    def apply(self, text, *options):
        path = self.dir / "objects.json"
        path.write_text(text)
        self.ctl("apply", "-f", path, *options)

    def replace(self, text):
        path = self.dir / "snapshot.json"
        path.write_text(text)
        self.ctl("replace", "-f", path)

    def counters(self):
        """{name: sum over the workers}; absent means 0."""
        answer = self.ctl_json("counters")
        return {row["name"]: int(row.get("total", 0)) for row in answer.get("counters", [])}

    def drops(self):
        """Counters of class kDrop that grew since settle(). Left out is the budget for new flows: it
        defers SYNs while a worker cannot keep up, and here workers, clients and servers share two
        cores. What a deferred SYN leads to is seen by the requests."""
        dropping = set(re.findall(r'X\(\w+, "(\w+)", kDrop', COUNTERS.read_text()))
        dropping.discard("conn_new_flow_budget")
        return {name: value - self.before.get(name, 0) for name, value in self.counters().items()
                if name in dropping and value > self.before.get(name, 0)}

    def settle(self):
        """Has every neighbour resolved, one request at a time; drops() counts from here. (While a
        neighbour is being resolved only 8 packets wait for it.)"""
        for family in (4, 6):
            for client, vip in (("c1", 100), ("c2", 101)):
                self.traffic(client, "http", lab.front(vip, family), 80, "--count", 12,
                             "--parallel", 1)
        self.before = self.drops()

    def end_loads(self, loads, more_than=0):
        """Ends loads of start_traffic(): each sent more than so many requests, and none failed."""
        for load in loads:
            result = self.stop_traffic(load)
            assert result["failed"] == 0, result
            assert result["sent"] > more_than, result

    def connections(self, *filters):
        return self.ctl_json("conns", *filters).get("connections", [])


@pytest.fixture
def port_kind(request):
    return request.config.getoption("--port-kind")


@pytest.fixture
def binaries(request):
    return request.config.getoption("--binaries")


@pytest.fixture
def net(request, port_kind, binaries):
    """Namespaces and nginx servers, no sluiced yet. A failing test prints sluiced's last lines."""
    params = getattr(request.node, "callspec", None)
    one_queue = params is not None and params.params.get("served") == "handed_over"
    with Net(binaries=binaries, port_kind=port_kind,
             far_queues=1 if one_queue else None) as made:
        made.build()
        made.start_backends()
        yield made
        report = getattr(request.node, "rep_call", None)
        if report is not None and report.failed:
            print(f"--- sluiced\n{made.log_tail(60)}")
            if made.sluiced is not None and made.sluiced.poll() is None:
                print(f"--- counters\n{made.ctl('counters', check=False).stdout}")
                print(f"--- status\n{made.ctl('status', check=False).stdout}")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    setattr(item, f"rep_{report.when}", report)


def pytest_collection_modifyitems(config, items):
    """A test marked kinds("a", ...) is not one of another kind's."""
    kind = config.getoption("--port-kind")
    chosen = [item for item in items
              if all(kind in mark.args for mark in item.iter_markers("kinds"))]
    others = [item for item in items if item not in chosen]
    if others:
        config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_configure(config):
    config.addinivalue_line("markers", "kinds(kind, ...): of these port kinds only")
    # An end from outside still removes namespaces and files.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
