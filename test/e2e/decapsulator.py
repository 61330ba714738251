#!/usr/bin/python3
"""Takes IP-in-IP packets of either family in either family and hands what is inside to the kernel,
by a tun device, as an ipip or ip6tnl device would. For kernels without these.

    decapsulator.py TUN

Prints "ready", runs until it is killed. A line "DONE n" is printed at SIGTERM: packets handed on.
"""

import fcntl
import os
import selectors
import signal
import socket
import struct
import sys

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
IPV4_INSIDE, IPV6_INSIDE = 4, 41
BUFFER = 8 << 20
SO_RCVBUFFORCE = 33  # <asm-generic/socket.h>; Python does not name it


def open_tun(name):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def raw_socket(family, protocol):
    made = socket.socket(family, socket.SOCK_RAW, protocol)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    made.setblocking(False)
    return made


def inner_of(family, packet):
    """IPv4 raw sockets give the outer header as well, IPv6 ones do not."""
    return packet[(packet[0] & 15) * 4:] if family == socket.AF_INET else packet


def main():
    tun = open_tun(sys.argv[1])
    selector = selectors.DefaultSelector()
    for family in (socket.AF_INET, socket.AF_INET6):
        for protocol in (IPV4_INSIDE, IPV6_INSIDE):
            selector.register(raw_socket(family, protocol), selectors.EVENT_READ)
    handed = 0
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print("ready", flush=True)
    while not ended:
        for key, _ in selector.select(0.2):
            try:
                while True:
                    packet = key.fileobj.recv(65535)
                    os.write(tun, inner_of(key.fileobj.family, packet))
                    handed += 1
            except BlockingIOError:
                pass
    print(f"DONE {handed}", flush=True)


if __name__ == "__main__":
    main()
