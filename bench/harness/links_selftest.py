"""Tests of how generator and device under test are joined."""

import pathlib
import unittest

from . import dut, ports


class Links(unittest.TestCase):
    def test_of_memif_are_spoken_by_our_generator_others_by_drivers(self):
        for kind, word in (("memif", "--memif"), ("memif-zero-copy", "--memif-server"),
                           ("vhost", "--vdev"), ("veth", "--vdev")):
            options = dut.Link(kind, pathlib.Path("/run")).generator_options()
            self.assertIn(word, options)
            self.assertEqual("--memif-server" in options, kind == "memif-zero-copy")


class PortsOfThisMachine(unittest.TestCase):
    def test_with_a_pci_address_are_driven_by_it_and_their_mac_must_be_told(self):
        two = ports.Ports("0000:01:00.0,0000:01:00.1")
        self.assertEqual([two.device(two.dut), two.vdev(two.generator)],
                         ["0000:01:00.0", "0000:01:00.1"])
        with self.assertRaisesRegex(ValueError, "--dut-mac.*0000:01:00.0"):
            self.assertIsNone(two.mac)
        told = ports.Ports("0000:01:00.0,0000:01:00.1", mac=dut.MAC)
        self.assertEqual(dut.Link("ports", pathlib.Path(), two_ports=told).mac, dut.MAC)

    def test_with_the_name_of_an_interface_are_driven_by_a_packet_socket(self):
        two = ports.Ports("lo,eth9")
        link = dut.Link("ports", pathlib.Path(), two_ports=two)
        self.assertEqual(link.dut_device(), "auto:lo")
        self.assertIn("iface=lo,", link.dpdk_device())
        self.assertIn("iface=eth9,", link.generator_device())
        self.assertEqual(link.mac, "00:00:00:00:00:00")  # of lo
