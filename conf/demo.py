#!/usr/bin/python3
"""The second half of conf/quickstart: runs sluiced in a lab, sends traffic, prints what happened.

Exit status 0 only when every request was answered, by every backend, on the path that the Service
asks for. Whether a flow was nat or fullnat is taken from the source address that nginx saw.
"""

import argparse
import pathlib
import re
import signal
import sys
import time

import lab
from lab import back, front, url

EXAMPLE = pathlib.Path(__file__).resolve().parent / "examples" / "quickstart.yaml"
# Part of the rules, by mode.
KERNEL_LISTS = {"nftables": ("nft", "list", "map", "ip", "sluice", "service-ips"),
                "iptables": ("iptables", "-t", "nat", "-S", "KUBE-SERVICES")}
HTTP_REQUESTS, UDP_REQUESTS = 300, 150
LOAD_SECONDS = 2


class Flow:
    """One kind of traffic: who is asked, and what its path must be."""

    def __init__(self, service, protocol, address, port, path):
        self.service, self.protocol, self.address, self.port = service, protocol, address, port
        self.path = path

    def where(self):
        return f"[{self.address}]:{self.port}" if ":" in self.address \
            else f"{self.address}:{self.port}"


def flows():
    result = []
    for family in (4, 6):
        cluster_ip = "10.96.0.103" if family == 4 else "fd00:96::103"
        result += [
            Flow("web", "http", front(100, family), 80, "nat"),
            Flow("web (node port)", "http", back(lab.GW, family), 30080, "nat"),
            Flow("shop", "http", front(101, family), 80, "fullnat"),
            Flow("dns", "udp", front(102, family), 53, "nat"),
            Flow("api", "http", cluster_ip, 80, "nat"),
            Flow("api", "udp", cluster_ip, 53, "nat"),
        ]
    return result


class Demo:
    """Prints each step, collects complaints."""

    def __init__(self, net):
        self.net = net
        self.faults = []
        self.began = time.monotonic()

    def step(self, text):
        print(f"[{time.monotonic() - self.began:5.1f} s] {text}", flush=True)

    def fault(self, text):
        print(f"          FAULT: {text}", flush=True)
        self.faults.append(text)

    def start(self):
        self.step("namespaces: clients c1 c2, gateway gw, backends b1 b2 b3")
        self.net.build()
        self.step("nginx in b1 b2 b3: HTTP on 8080, UDP on 8053")
        self.net.start_backends()
        if self.net.kernel:
            self.step(f"sluiced in gw: mode {self.net.port_kind}, the kernel forwards")
        else:
            self.step(f"sluiced in gw: two workers, ports {self.net.port_kind}:front and "
                      f"{self.net.port_kind}:back")
        self.net.start_sluiced(workers=2)
        self.step(f"sluicectl apply -f {EXAMPLE.relative_to(lab.ROOT)}")
        print(indent(self.net.ctl("apply", "-f", EXAMPLE).stdout))

    def curl(self):
        for flow in flows():
            if flow.protocol != "http":
                continue
            address = url(flow.address, flow.port)
            done = self.net.run("c1", "curl", "-sS", "-m", "5", address, check=False)
            print(f"          c1$ curl {address:<33} {(done.stdout or done.stderr).strip()}")
            if done.returncode != 0:
                self.fault(f"curl {address}: exit {done.returncode}")

    def ask_all(self):
        """Every request on a connection of its own, from both clients in turn."""
        rows = []
        for number, flow in enumerate(flows()):
            client = f"c{number % 2 + 1}"
            count = HTTP_REQUESTS if flow.protocol == "http" else UDP_REQUESTS
            result = self.net.traffic(client, flow.protocol, flow.address, flow.port, "--count",
                                      count)
            rows.append((flow, client, result, self.judge(flow, client, result)))
        return rows

    def judge(self, flow, client, result):
        """The path of these flows by what nginx saw; faults are recorded."""
        number = lab.CLIENTS[client]
        clients = {front(number), front(number, 6)}
        seen = set(result["sources"])
        path = "nat" if seen <= clients else "fullnat" if seen <= {lab.NODE4, lab.NODE6} else "?"
        if result["failed"]:
            self.fault(f"{flow.service} {flow.where()}: {result['failed']} of {result['sent']} "
                       f"failed: {result['errors']}")
        elif set(result["by_backend"]) != set(lab.BACKENDS):
            self.fault(f"{flow.service} {flow.where()}: not every backend served")
        elif path != flow.path:
            self.fault(f"{flow.service} {flow.where()}: path {path}, expected {flow.path}; "
                       f"nginx saw {sorted(seen)}")
        return path

    def load(self, family, service, number):
        address = url(front(number, family), 80)
        done = self.net.run("c2", "wrk", "-t1", "-c16", f"-d{LOAD_SECONDS}s", address, check=False)
        rate = re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)
        if done.returncode != 0 or not rate or "Socket errors" in done.stdout \
                or "Non-2xx" in done.stdout:
            self.fault(f"wrk {address}: {(done.stdout + done.stderr).strip()}")
            return
        print(f"          c2$ wrk -c16 {address:<30} {float(rate[1]):9.0f} requests/s ({service})")

    def table(self, rows):
        heading = ("Service", "address", "proto", "client", "path", "sent", "failed",
                   *lab.BACKENDS)
        lines = [heading]
        for flow, client, result, path in rows:
            served = [str(result["by_backend"].get(name, 0)) for name in lab.BACKENDS]
            protocol = "TCP" if flow.protocol == "http" else "UDP"
            lines.append((flow.service, flow.where(), protocol, client, path,
                          str(result["sent"]), str(result["failed"]), *served))
        total = [sum(row[2]["by_backend"].get(name, 0) for row in rows) for name in lab.BACKENDS]
        lines.append(("all", "", "", "", "", str(sum(row[2]["sent"] for row in rows)),
                      str(sum(row[2]["failed"] for row in rows)), *map(str, total)))
        widths = [max(len(line[i]) for line in lines) for i in range(len(heading))]
        for line in lines:
            print("  " + "  ".join(cell.rjust(width) if i > 4 else cell.ljust(width)
                                   for i, (cell, width) in enumerate(zip(line, widths))))

    def run(self):
        self.start()
        self.step("curl, one request for each address")
        self.curl()
        self.step("a new connection for each request")
        rows = self.ask_all()
        self.step("load with connections kept alive")
        self.load(4, "nat", 100)
        self.load(6, "fullnat", 101)
        self.step("what each backend served")
        print()
        self.table(rows)
        if self.net.kernel:
            command = KERNEL_LISTS[self.net.port_kind]
            print(f"\n  what the kernel has ({' '.join(command)}):\n")
            print(indent(self.net.run("gw", *command).stdout))
        else:
            print("\n  counters of the workers (sluicectl counters):\n")
            print(indent(self.net.ctl("counters").stdout))


def indent(text):
    return "\n".join("          " + line for line in text.strip().splitlines())


def say_what_next(net):
    ctl = f"{net.binaries}/sluicectl --server unix:{net.socket}"
    print(f"""
Left running. Try:
  ip netns exec {net.ns('c1')} curl {url(front(100), 80)}
  {ctl} status
  {ctl} services
  {ctl} conns
  edit {EXAMPLE.relative_to(lab.ROOT)}, then {ctl} apply -f {EXAMPLE}
  log: {net.sluiced_log}
End it with:
  conf/quickstart --stop {net.prefix}""")


def run(args):
    net = lab.Lab(args.binaries, args.port, args.prefix, keep=args.keep)
    kept = False
    try:
        demo = Demo(net)
        demo.run()
        if not demo.faults:
            status = "left running" if args.keep else end(demo)
            kept = args.keep and not demo.faults
        if demo.faults:
            print(f"\nquickstart: {len(demo.faults)} faults; the first: {demo.faults[0]}\n"
                  f"Last lines of sluiced:\n{net.log_tail()}", file=sys.stderr)
            return 1
        print(f"\nquickstart: everything was answered; sluiced {status}")
        if kept:
            say_what_next(net)
        return 0
    except lab.LabError as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 1
    finally:
        if not kept:
            net.close()


def end(demo):
    status, seconds = demo.net.stop_sluiced()
    if status != 0:
        demo.fault(f"sluiced ended with {status} after SIGTERM")
    return f"ended with {status} in {seconds:.2f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries", default=str(lab.ROOT / "build" / "bin"))
    parser.add_argument("--port", default="auto", 
                        choices=["auto", "af_xdp", "af_packet", "nftables", "iptables"])
    parser.add_argument("--prefix")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--stop", metavar="PREFIX")
    args = parser.parse_args()
    if args.stop:
        names = lab.remove(args.stop)
        if not names:
            print(f"quickstart: nothing runs under {args.stop}", file=sys.stderr)
            return 1
        print(f"quickstart: ended what ran under {args.stop}, removed its {len(names)} namespaces")
        return 0
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, lambda number, _: sys.exit(128 + number))
    try:
        return run(args)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
