# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Small programs that the tests run at both ends of a link.

They use the standard library only, for they run under any Python that every user may start.
Usage: programs.py PROGRAM ARGUMENT…
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

IPPROTO_UDPLITE = 136
UDPLITE_SEND_CSCOV = 10
UDPLITE_RECV_CSCOV = 11
ETH_P_ALL = 3
TCP_CONGESTION = 13
UDP_SEGMENT = 103
FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}
ANY = {"4": "0.0.0.0", "6": "::"}


def content(seed: int, length: int) -> bytes:
    """Return bytes that both ends know."""
    return random.Random(seed).randbytes(length)


def address(name: str, port: int, family: str) -> tuple[Any, ...]:
    """Return the address of a name in one family."""
    return socket.getaddrinfo(name, port, FAMILIES[family], socket.SOCK_DGRAM)[0][4]


def counters() -> dict[str, int]:
    """Return the counters of this network namespace, named as in Table.Field."""
    found = {}
    for name in ("snmp", "netstat"):
        lines = Path(f"/proc/net/{name}").read_text().splitlines()
        for head, row in zip(lines[::2], lines[1::2], strict=True):
            table, names = head.split(":")
            values = row.split(":")[1].split()
            found.update(
                {
                    f"{table}.{key}": int(value)
                    for key, value in zip(names.split(), values, strict=True)
                }
            )
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/snmp6").read_text().splitlines():
            key, value = line.split()
            found[key] = int(value)
    return found


def write_counters(path: str, **more: str) -> None:
    """Write the counters to a file."""
    new = Path(f"{path}.new")
    new.write_text(json.dumps({**counters(), **more}))
    new.rename(path)


def end_on_sigterm() -> None:
    """Turn SIGTERM into an exit that runs what is to be run at the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def receive_exactly(connection: socket.socket, length: int) -> bytes:
    """Receive so many bytes."""
    parts = []
    while length:
        part = connection.recv(min(length, 1 << 16))
        if not part:
            sys.exit(f"the connection ended {length} bytes early")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def tcp_server(family: str, port: str, report: str) -> None:
    """Serve one connection: take what comes, answer with its hash and with as much again."""
    end_on_sigterm()
    with socket.socket(FAMILIES[family], socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ANY[family], int(port)))
        listener.listen()
        connection, _ = listener.accept()
    used = congestion_control(connection)
    try:
        with connection:
            length, back = struct.unpack("!QQ", receive_exactly(connection, 16))
            data = receive_exactly(connection, length)
            connection.sendall(hashlib.sha256(data).digest())
            connection.sendall(content(2, back))
            connection.recv(1)
    finally:
        write_counters(report, congestion=used)


def congestion_control(connection: socket.socket) -> str:
    """Return the name of the congestion control in force."""
    return connection.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()


def longest_sent(stop: threading.Event, found: list[int]) -> None:
    """Note the longest packet that this end hands to its interface."""
    with (
        contextlib.suppress(PermissionError),
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as raw,
    ):
        raw.settimeout(0.1)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                found.append(raw.recv_into(bytearray(1 << 17)))


def tcp_client(family: str, port: str, up: str, down: str) -> None:
    """Send `up` bytes and receive `down` bytes; check both; tell what the kernel counted."""
    stop, lengths = threading.Event(), [0]
    watcher = threading.Thread(target=longest_sent, args=(stop, lengths))
    watcher.start()
    try:
        with socket.create_connection(address("server", int(port), family)[:2], 30) as connection:
            connection.settimeout(60)
            data = content(1, int(up))
            connection.sendall(struct.pack("!QQ", int(up), int(down)) + data)
            if receive_exactly(connection, 32) != hashlib.sha256(data).digest():
                sys.exit("the server received something else than was sent")
            if receive_exactly(connection, int(down)) != content(2, int(down)):
                sys.exit("the client received something else than was sent")
            used = congestion_control(connection)
    finally:
        stop.set()
        watcher.join()
    print(json.dumps({**counters(), "longest": max(lengths), "congestion": used}))


TCP_INFO_FIELDS = {
    "rto_us": ("I", 8),
    "mss": ("I", 16),
    "srtt_us": ("I", 68),
    "cwnd": ("I", 80),
    "total_retrans": ("I", 100),
    "bytes_acked": ("Q", 120),
    "bytes_received": ("Q", 128),
    "delivered": ("I", 192),
    "snd_wnd": ("I", 228),
}
"""Formats and offsets of some fields of the kernel's struct tcp_info."""


def tcp_info_client(family: str, port: str, up: str, down: str) -> None:
    """Do as `tcp_client`, then keep still for a while and tell what the kernel says."""
    with socket.create_connection(address("server", int(port), family)[:2], 30) as connection:
        connection.settimeout(60)
        data = content(1, int(up))
        connection.sendall(struct.pack("!QQ", int(up), int(down)) + data)
        receive_exactly(connection, 32)
        receive_exactly(connection, int(down))
        time.sleep(1)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    told = {
        name: struct.unpack_from(kind, info, at)[0] for name, (kind, at) in TCP_INFO_FIELDS.items()
    }
    print(json.dumps(told))


def datagram_socket(family: str, protocol: str, coverage: int) -> socket.socket:
    """Open a UDP or UDP-Lite socket; coverage 0 means the whole datagram."""
    if protocol == "udp":
        return socket.socket(FAMILIES[family], socket.SOCK_DGRAM)
    plain = socket.socket(FAMILIES[family], socket.SOCK_DGRAM, IPPROTO_UDPLITE)
    plain.setsockopt(IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV, coverage)
    plain.setsockopt(IPPROTO_UDPLITE, UDPLITE_RECV_CSCOV, coverage)
    return plain


def datagram_server(
    family: str, protocol: str, coverage: str, port: str, path: str, report: str
) -> None:
    """Write every datagram that arrives to a file in hexadecimal, and answer it with its number."""
    end_on_sigterm()
    plain = datagram_socket(family, protocol, int(coverage))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    plain.bind((ANY[family], int(port)))
    try:
        with Path(path).open("w") as file:
            while True:
                data, sender = plain.recvfrom(1 << 16)
                file.write(f"{time.monotonic_ns()} {data.hex()}\n")
                file.flush()
                with contextlib.suppress(OSError):
                    plain.sendto(data[:4], sender)
    finally:
        write_counters(report)


def datagram_client(
    family: str,
    protocol: str,
    coverage: str,
    port: str,
    count: str,
    length: str,
    gap: str,
    linger: str,
) -> None:
    """Send numbered datagrams `gap` seconds apart, then wait; print the numbers answered."""
    plain = datagram_socket(family, protocol, int(coverage))
    plain.connect(address("server", int(port), family))
    plain.setblocking(False)
    answered = []

    def collect() -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while True:
                answered.append(int.from_bytes(plain.recv(64), "big"))

    for number in range(int(count)):
        with contextlib.suppress(ConnectionError):
            plain.send(datagram(number, int(length)))
        time.sleep(float(gap))
        collect()
    end = time.monotonic() + float(linger)
    while time.monotonic() < end and len(answered) < int(count):
        time.sleep(0.01)
        collect()
    print(json.dumps(answered))


def burst_client(family: str, port: str, count: str, length: str) -> None:
    """Send numbered datagrams ten to a system call, which the kernel is to cut up (UDP_SEGMENT)."""
    size = int(length)
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as plain:
        plain.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        plain.connect(address("server", int(port), family))
        for first in range(0, int(count), 10):
            plain.send(b"".join(datagram(number, size) for number in range(first, first + 10)))
            time.sleep(0.01)
        time.sleep(0.5)


def tilde_client(family: str, port: str, count: str, length: str) -> None:
    """Send datagrams of `~`, the flag of PPP, one and ten to a system call (UDP_SEGMENT)."""
    size = int(length)
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as plain:
        plain.connect(address("server", int(port), family))
        for datagrams in (1, 10):
            plain.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
            for _ in range(0, int(count), datagrams):
                with contextlib.suppress(ConnectionError):
                    plain.send(b"~" * size * datagrams)
                time.sleep(0.01 * datagrams)
        time.sleep(0.5)


def datagram(number: int, length: int) -> bytes:
    """Return datagram `number`: its number, then bytes that both ends know."""
    return number.to_bytes(4, "big") + content(number, length - 4)


def resolve() -> None:
    """Print the addresses of both names in both families."""
    found = {}
    for name in sys.argv[2:]:
        for family in FAMILIES:
            try:
                found[name + family] = address(name, 1, family)[0]
            except socket.gaierror as error:
                found[name + family] = str(error)
    print(json.dumps(found))


def http_server(family: str, port: str, folder: str) -> None:
    """Serve the files of a folder."""
    import functools
    import http.server

    end_on_sigterm()

    class Server(http.server.ThreadingHTTPServer):
        address_family = FAMILIES[family]

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    Server((ANY[family], int(port)), handler).serve_forever()


def late_server(seconds: str, kind: str, port: str, ready: str) -> None:
    """Wait, note that it is ready, then listen."""
    time.sleep(float(seconds))
    Path(ready).write_text("ready")
    types = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
    plain = socket.socket(socket.AF_INET, types[kind])
    plain.bind(("0.0.0.0", int(port)))
    if kind == "tcp":
        plain.listen()
    time.sleep(60)


def stubborn(path: str) -> None:
    """Ignore SIGTERM, SIGINT and SIGHUP; say so in a file; leave a child in another session."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        time.sleep(300)
    Path(path).write_text("up")
    time.sleep(300)


def noted_signal(path: str) -> None:
    """Wait for SIGINT, SIGTERM, SIGHUP, SIGUSR1; write its name to a file and exit with 40 + N."""
    caught = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, _: caught.append(number))
    Path(path).write_text("up")
    while not caught:
        time.sleep(0.02)
    time.sleep(0.2)  # A second delivery of the same signal would be noted too.
    Path(path).write_text(",".join(signal.Signals(number).name for number in caught))
    sys.exit(40 + caught[0])


PROGRAMS: dict[str, Callable[..., None]] = {
    "tcp-server": tcp_server,
    "tcp-client": tcp_client,
    "tcp-info-client": tcp_info_client,
    "datagram-server": datagram_server,
    "datagram-client": datagram_client,
    "burst-client": burst_client,
    "tilde-client": tilde_client,
    "resolve": lambda *_: resolve(),
    "http-server": http_server,
    "late-server": late_server,
    "stubborn": stubborn,
    "noted-signal": noted_signal,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
