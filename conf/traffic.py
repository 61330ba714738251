#!/usr/bin/python3
"""Clients whose every answer counts. Prints one JSON object:

    {"sent": n, "ok": n, "failed": n, "errors": {text: n}, "by_backend": {name: n},
     "sources": {address: n}, "seconds": s}

    traffic.py http HOST PORT [--count N] [--parallel P]   a new TCP connection for each request
    traffic.py udp  HOST PORT [--count N] [--one-socket]   a datagram and its answer
    traffic.py udp-pair HOST1 HOST2 PORT                   one socket asks two addresses

--until-signal goes on until SIGTERM instead of counting to N; what was begun is finished. The
answering server names itself in the first word of its answer and the source address it saw in the
second.
"""

import argparse
import asyncio
import collections
import json
import os
import signal
import socket
import sys
import time

ANSWER_SECONDS = 10.0


class Tally:
    """Counts of one run."""

    def __init__(self):
        self.sent = 0
        self.by_backend = collections.Counter()
        self.sources = collections.Counter()
        self.errors = collections.Counter()
        self.began = time.monotonic()

    def answer(self, text):
        words = text.split()
        if len(words) != 2:
            self.errors[f"odd answer {text[:40]!r}"] += 1
            return
        self.by_backend[words[0]] += 1
        self.sources[words[1]] += 1

    def print(self):
        failed = sum(self.errors.values())
        print(json.dumps({
            "sent": self.sent, "ok": sum(self.by_backend.values()), "failed": failed,
            "errors": dict(self.errors), "by_backend": dict(sorted(self.by_backend.items())),
            "sources": dict(self.sources), "seconds": round(time.monotonic() - self.began, 3)}))


class Budget:
    """How many requests are left to start; a signal ends it early."""

    def __init__(self, count):
        self.left = count

    def take(self):
        if self.left == 0:
            return False
        if self.left is not None:
            self.left -= 1
        return True

    def end(self, *_):
        self.left = 0


async def http_once(host, port):
    """Body of one answer; raises on anything but a complete 200."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: sluice\r\nConnection: close\r\n\r\n")
        answer = await reader.read(-1)
    finally:
        writer.close()
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator or not head.startswith(b"HTTP/1.1 200"):
        raise OSError(f"answer is no 200: {head[:40]!r}")
    return body.decode()


def reason(error):
    """asyncio names the address, not what happened."""
    return os.strerror(error.errno) if error.errno else str(error)


async def http_client(args, budget, tally):
    while budget.take():
        tally.sent += 1
        try:
            tally.answer(await asyncio.wait_for(http_once(args.host, args.port), ANSWER_SECONDS))
        except asyncio.TimeoutError:
            tally.errors["no answer"] += 1
        except OSError as error:
            tally.errors[reason(error)] += 1


async def http(args, budget, tally):
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, budget.end)
    await asyncio.gather(*(http_client(args, budget, tally) for _ in range(args.parallel)))


def udp_socket(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.settimeout(2.0)
    return udp


def udp_ask(udp, host, port, tally):
    """One datagram and its answer, which must come from where the question went."""
    tally.sent += 1
    try:
        udp.sendto(b"who\n", (host, port))
        answer, source = udp.recvfrom(2048)
        if source[:2] != (host, port):
            raise OSError(f"answer came from {source[0]}")
        tally.answer(answer.decode())
    except socket.timeout:
        tally.errors["no answer"] += 1
    except OSError as error:
        tally.errors[reason(error)] += 1


def udp(args, budget, tally):
    signal.signal(signal.SIGTERM, budget.end)
    shared = udp_socket(args.host) if args.one_socket else None
    while budget.take():
        asker = shared or udp_socket(args.host)
        udp_ask(asker, args.host, args.port, tally)
        if not shared:
            asker.close()


def udp_pair(args, budget, tally):
    """One socket asks both addresses in turn, so both flows live at the same time."""
    shared = udp_socket(args.host)
    while budget.take():
        udp_ask(shared, args.host, args.port, tally)
        udp_ask(shared, args.host2, args.port, tally)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["http", "udp", "udp-pair"])
    parser.add_argument("host")
    parser.add_argument("rest", nargs="+")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--one-socket", action="store_true")
    parser.add_argument("--until-signal", action="store_true")
    args = parser.parse_args()
    args.port = int(args.rest[-1])
    args.host2 = args.rest[0]
    budget = Budget(None if args.until_signal else args.count)
    tally = Tally()
    if args.kind == "http":
        asyncio.run(http(args, budget, tally))
    else:
        (udp if args.kind == "udp" else udp_pair)(args, budget, tally)
    tally.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
