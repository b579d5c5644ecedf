# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Real traffic through the link: echoes by TCP, UDP and ICMP, IPv4 and IPv6.

usage: exchange.py serve | talk NAME [4|6]...
"""

import hashlib
import os
import select
import socket
import struct
import sys
import threading

PORT = 5001
LARGE = 3_000_000


def echo_tcp(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=echo_stream, args=(connection,), daemon=True).start()


def echo_stream(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def serve() -> None:
    datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    datagrams.bind(("::", PORT))
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=echo_tcp, args=(listener,), daemon=True).start()
    while True:
        data, sender = datagrams.recvfrom(65536)
        datagrams.sendto(data, sender)


def talk_tcp(address: tuple, family: int) -> None:
    payload = os.urandom(1000) * (LARGE // 1000)
    received = hashlib.sha256()
    with socket.socket(family, socket.SOCK_STREAM) as stream:
        stream.connect(address)
        sender = threading.Thread(target=lambda: (stream.sendall(payload), stream.shutdown(1)))
        sender.start()
        while data := stream.recv(65536):
            received.update(data)
        sender.join()
    assert received.digest() == hashlib.sha256(payload).digest()


def talk_udp(address: tuple, family: int) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(20)
        datagrams.connect(address)
        for length in (0, 1, 777, 1400, 4000):
            payload = os.urandom(length)
            datagrams.send(payload)
            assert datagrams.recv(65536) == payload, length


def talk_icmp(address: tuple, family: int) -> None:
    protocol = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
    kind = 8 if family == socket.AF_INET else 128
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as echo:
        echo.sendto(struct.pack("!BBHHH", kind, 0, 0, 0, 1) + b"hello", address)
        assert select.select([echo], [], [], 20)[0], "no echo"
        assert echo.recv(2000)[8:] == b"hello"


def talk(name: str, families: list[str]) -> None:
    for text, family in (("4", socket.AF_INET), ("6", socket.AF_INET6)):
        if text not in families:
            continue
        address = socket.getaddrinfo(name, PORT, family)[0][4]
        for exchange in (talk_icmp, talk_udp, talk_tcp):
            exchange(address, family)
        print(f"talked by IPv{text} to {address[0]}")


if sys.argv[1] == "serve":
    serve()
else:
    talk(sys.argv[2], sys.argv[3:] or ["4", "6"])
