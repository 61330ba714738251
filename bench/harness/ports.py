"""Two ports of this machine as the link between generator and device under test."""

import contextlib
import os
import pathlib
import re
import subprocess


class Ports:
    """Two ports of this machine with a cable between: --ports DUT,GENERATOR. Each is the PCI
    address of one that is bound to vfio-pci, or the name of a kernel interface, which is driven by
    af_packet (sluiced: as driver says) in a namespace of its own meanwhile."""

    def __init__(self, text, mac=None, driver="auto"):
        self.dut, self.generator = text.split(",")
        self.given_mac, self.driver = mac, driver

    @staticmethod
    def is_pci(port):
        return re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", port) is not None

    @property
    def mac(self):
        """Of the device under test: a PCI port's is not known before a program drives it."""
        if self.given_mac:
            return self.given_mac
        if self.is_pci(self.dut):
            raise ValueError(f"--dut-mac is missing: the MAC address of {self.dut}")
        return pathlib.Path(f"/sys/class/net/{self.dut}/address").read_text().strip()

    def device(self, port):
        """For sluiced."""
        return port if self.is_pci(port) else f"{self.driver}:{port}"

    def vdev(self, port):
        """For programs that call DPDK with what they are told."""
        return port if self.is_pci(port) else (
            f"net_af_packet0,iface={port},qpairs=1,framesz=2048,framecnt=4096,blocksz=4096")

    @contextlib.contextmanager
    def moved(self, port, space):
        """A kernel interface, from the caller's namespace to another one and back."""
        if self.is_pci(port):
            yield
            return
        subprocess.run(["ip", "link", "set", port, "netns", space.name], check=True)
        try:
            space.run("ip", "link", "set", port, "up")
            space.run("sysctl", "-qw", f"net.ipv6.conf.{port}.disable_ipv6=1")  # it is silent
            yield
        finally:
            space.run("ip", "link", "set", port, "netns", str(os.getpid()))
