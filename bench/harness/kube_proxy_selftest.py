"""Tests of the row kube-proxy without one."""

import itertools
import json
import pathlib
import subprocess
import tempfile
import threading
import unittest
import urllib.request
from unittest import mock

from . import dut, kube_api, kube_proxy, matrix, syncing


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

    def test_hears_from_any_version_that_is_none_of_ours_of_all_changes(self):
        self.objects.put(named("Service", "s0"))
        events = self.get(self.SERVICES + "?watch=true&resourceVersion=0")[2]
        self.assertEqual(next(events)[0], "MODIFIED")

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
        self.assertEqual(syncing.read(page, 4), syncing.Syncs(*[syncing.Durations(2, 0.25)] * 4))
        self.assertEqual(syncing.read("", 4).full, syncing.Durations(0, 0))

    @staticmethod
    def device(page):
        """One whose metrics are that page; None: it serves none."""
        run = mock.Mock(side_effect=subprocess.CalledProcessError(7, "curl")) if page is None else \
            mock.Mock(return_value=mock.Mock(stdout=page))
        return mock.Mock(space=mock.Mock(run=run), point=matrix.BASE)

    def test_has_synced_by_the_metric_that_every_mode_has_and_not_before_it_serves(self):
        name = syncing.NAMES["all"] + '_count{ip_family="IPv4"} '
        for page, synced in ((name + "1", True), (name + "0", False), (None, False)):
            self.assertEqual(kube_proxy.KubeProxy._has_synced(self.device(page)), synced)

    def test_that_does_not_answer_later_has_not_synced_no_time(self):
        with self.assertRaises(subprocess.CalledProcessError):
            syncing.of(self.device(None))

    def test_has_no_figure_of_a_first_sync_that_was_none_or_two(self):
        name = syncing.NAMES["full"]
        for count in (0, 2):
            page = f'{name}_sum{{ip_family="IPv4"}} 3\n{name}_count{{ip_family="IPv4"}} {count}'
            with self.assertRaisesRegex(dut.DutError, f"{count} full syncs"):
                syncing.measure(self.device(page))

    def test_is_told_of_one_endpoint_less_and_then_of_all(self):
        point = {**matrix.BASE, "services": 3}
        sizes = [len(syncing.change_of(point, 2, turn)[0]["endpoints"]) for turn in range(4)]
        self.assertEqual(sizes, [9, 10, 9, 10])

    def test_that_is_not_here_is_a_row_that_says_so(self):
        with mock.patch.dict("os.environ", {"KUBE_PROXY": "no-such-program"}):
            self.assertIn("KUBE_PROXY", kube_proxy.missing("nftables"))
