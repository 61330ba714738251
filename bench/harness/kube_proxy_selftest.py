"""Tests of the row kube-proxy without one."""

import itertools
import json
import pathlib
import tempfile
import threading
import unittest
import urllib.request
from unittest import mock

from . import kube_api, kube_proxy, matrix, syncing


def named(kind, name, **more):
    return {"kind": kind, "metadata": {"name": name}, **more}


class KubeProxy(unittest.TestCase):
    SERVICES = "/api/v1/services"

    def setUp(self):
        self.objects = kube_api.Objects([named("Service", "s0"), named("Node", "bench")])

    def get(self, target):
        return kube_api.answer(self.objects, target)

    def test_is_given_lists_and_nodes(self):
        status, body, _ = self.get(self.SERVICES + "?limit=500")
        self.assertEqual((status, body["kind"], len(body["items"])), (200, "ServiceList", 1))
        self.assertEqual(self.get("/api/v1/nodes/bench")[1]["metadata"]["name"], "bench")
        for target in ("/api/v1/nodes/other", "/api/v1/pods"):
            self.assertEqual(self.get(target)[0], 404)

    def test_hears_by_a_watch_what_changed_behind_its_list(self):
        version = self.get(self.SERVICES)[1]["metadata"]["resourceVersion"]
        for name in ("s0", "s1"):
            self.objects.put(named("Service", name, spec={}))
        events = self.get(f"{self.SERVICES}?watch=true&resourceVersion={version}")[2]
        self.assertEqual([(what, each["metadata"]["name"], each["metadata"]["resourceVersion"])
                          for what, each in itertools.islice(events, 2)],
                         [("MODIFIED", "s0", "2"), ("ADDED", "s1", "3")])

    def test_hears_by_one_watch_of_all_there_is_and_of_what_changes(self):
        events = self.get(self.SERVICES + "?watch=1&sendInitialEvents=true")[2]
        first, end = next(events), next(events)
        self.objects.put(named("Node", "bench"))
        self.objects.put(named("Service", "s0"))
        self.assertEqual([first[0], end[0], next(events)[0]], ["ADDED", "BOOKMARK", "MODIFIED"])
        self.assertEqual(end[1]["metadata"]["annotations"], kube_api.INITIAL_END)

    def test_is_served_over_http(self):
        with kube_api.server_of(self.objects) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_address[1]}{self.SERVICES}"
            with urllib.request.urlopen(url, timeout=10) as answered:
                self.assertEqual(json.load(answered)["kind"], "ServiceList")
            with urllib.request.urlopen(url + "?watch=1&sendInitialEvents=true",
                                        timeout=10) as answered:
                self.assertEqual(json.loads(answered.readline())["type"], "ADDED")
            server.shutdown()

    def test_leaves_a_clients_address_by_policy_local_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cluster.json"
            for mode, policy, node in (("nat", "Local", "bench"), ("fullnat", None, None)):
                kube_proxy.write_cluster(path, {**matrix.BASE, "services": 1, "mode": mode})
                service, slices, _ = json.loads(path.read_text())["items"]
                self.assertEqual(service["spec"].get("externalTrafficPolicy"), policy)
                self.assertEqual({e.get("nodeName") for e in slices["endpoints"]}, {node})

    def test_and_ours_say_how_long_syncs_took_by_the_same_names(self):
        page = "\n".join(f'{name}_{what}{{ip_family="IPv{family}"}} {value}'
                         for name in syncing.NAMES.values()
                         for family, what, value in ((4, "sum", "0.25"), (4, "count", "2"),
                                                     (6, "sum", "9"), (6, "count", "9")))
        self.assertEqual(syncing.read(page, 4), syncing.Syncs(*[syncing.Durations(2, 0.25)] * 3))
        self.assertEqual(syncing.read("", 4).full, syncing.Durations(0, 0))

    def test_is_told_of_one_endpoint_less_and_then_of_all(self):
        point = {**matrix.BASE, "services": 3}
        sizes = [len(syncing.change_of(point, 2, turn)[0]["endpoints"]) for turn in range(4)]
        self.assertEqual(sizes, [9, 10, 9, 10])

    def test_that_is_not_here_is_a_row_that_says_so(self):
        with mock.patch.dict("os.environ", {"KUBE_PROXY": "no-such-program"}):
            self.assertIn("KUBE_PROXY", kube_proxy.missing("nftables"))
