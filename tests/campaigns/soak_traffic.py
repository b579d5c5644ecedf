# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Traffic of the two ends of a soak: many flows, and packets that no honest host sends.

Usage: soak_traffic.py client|server SECONDS SEED FLOWS REPORT. Run in the namespace of one end;
hostile packets need CAP_NET_RAW there. The report has what was sent, and the drops of the
interface.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path

UDP_PORT = 7100
TCP_PORT = 7200
PACKET_VNET_HDR = 15
SOL_PACKET = 263


def interface() -> str:
    """Return the interface to the link."""
    return next(path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo")


def ipv4(generator: random.Random, payload: bytes, protocol: int) -> bytes:
    """Return an IPv4 packet, right but for its checksum."""
    length = 20 + len(payload)
    fragment = generator.choice((0, 0, 0, 0x2000, 0x4000, 0x00B9, 0x3FFF, 0x1FFF))
    ends = (
        bytes((10, 77, 0, generator.choice((1, 2, 3)))),
        bytes((10, 77, 0, generator.choice((1, 2)))),
    )
    return struct.pack(
        "!BBHHHBBH4s4s", 0x45, generator.randrange(256), length, generator.randrange(65536),
        fragment, generator.choice((0, 1, 64)), protocol, 0, *ends,
    ) + payload  # fmt: skip


def ipv6(generator: random.Random, payload: bytes, header: int) -> bytes:
    """Return an IPv6 packet."""
    prefix = bytes.fromhex("fd616972700000000000000000000000")
    ends = [prefix[:-1] + bytes((generator.choice((1, 2)),)) for _ in range(2)]
    first = 0x60000000 | generator.randrange(1 << 28)
    return struct.pack("!IHBB", first, len(payload), header, 64) + ends[0] + ends[1] + payload


def hostile(generator: random.Random, mtu: int) -> bytes:
    """Return a packet that is wrong in some way."""
    size = generator.choice((0, 1, 7, 8, 19, 20, 40, 576, 1400, mtu - 20, mtu - 40))
    payload = generator.randbytes(max(0, size))
    protocol = generator.choice((0, 1, 2, 6, 17, 43, 44, 50, 58, 60, 136, 253, 255))
    make = ipv6 if generator.random() < 0.4 else ipv4
    packet = bytearray(make(generator, payload, protocol))
    for _ in range(generator.choice((0, 0, 1, 2, 8))):
        packet[generator.randrange(min(len(packet), 60))] = generator.randrange(256)
    if generator.random() < 0.1:
        del packet[generator.randrange(1, len(packet)) :]
    return bytes(packet[:mtu])


def send_hostile(seed: int, end: float, pause_s: float, sent: dict[str, int]) -> None:
    """Send hostile packets until `end`, some as frames with a garbage header for the device."""
    generator = random.Random(seed)
    name = interface()
    statistics = Path(f"/sys/class/net/{name}")
    mtu = int((statistics / "mtu").read_text())
    ethernet = (statistics / "type").read_text().strip() == "1"
    plain = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    with contextlib.suppress(OSError):
        raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    while time.monotonic() < end:
        packet = hostile(generator, mtu)
        kind = generator.choice((0x0800, 0x0800, 0x86DD, 0x86DD, 0x0806, 0x8100, 0x88CC))
        if kind in (0x0800, 0x86DD) and generator.random() < 0.8 and packet:
            kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
        try:
            if generator.random() < 0.25:
                flags, gso = generator.choice((0, 1)), generator.choice((0, 0, 1, 4, 5, 3, 0x81))
                head = struct.pack(
                    "=BBHHHH", flags, gso, generator.choice((0, 40, 54, 74, 65535)),
                    generator.choice((0, 1, 8, 100, 1400, 65535)),
                    generator.choice((0, 14, 34, 54, 65535)), generator.choice((0, 6, 16, 65535)),
                )  # fmt: skip
                frame = b"\xff" * 6 + b"\2\0\0\0\0\1" + struct.pack("!H", kind) if ethernet else b""
                raw.sendto(head + frame + packet, (name, kind))
            else:
                # Without an address of hardware the frame would go to nobody.
                plain.sendto(packet, (name, kind, 0, 0, b"\xff" * 6))
            sent["hostile"] += 1
        except OSError:
            sent["refused"] += 1
        time.sleep(pause_s)


def send_datagrams(flows: int, seed: int, end: float, sent: dict[str, int]) -> None:
    """Send datagrams of many flows, one thread for all."""
    generator = random.Random(seed)
    boxes = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(flows)]
    while time.monotonic() < end:
        for number, box in enumerate(boxes):
            with contextlib.suppress(OSError):
                size = generator.choice((40, 200, 400, 1000))
                box.sendto(bytes(size), ("server", UDP_PORT + number % 4))
                sent["datagrams"] += 1
        time.sleep(0.1)


def upload(end: float, sent: dict[str, int]) -> None:
    """Open one connection after the other, each for some seconds."""
    while time.monotonic() < end:
        try:
            with socket.create_connection(("server", TCP_PORT), 5) as connection:
                connection.settimeout(5)
                last = min(end, time.monotonic() + 3)
                while time.monotonic() < last:
                    connection.sendall(bytes(4096))
                    sent["tcp_bytes"] += 4096
                sent["connections"] += 1
        except OSError:
            time.sleep(0.1)


def receive(end: float) -> None:
    """Take what comes, on every port."""

    def datagrams(port: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as box:
            box.bind(("", port))
            box.settimeout(0.5)
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    box.recv(2048)

    def connection(one: socket.socket) -> None:
        with one, contextlib.suppress(OSError):
            one.settimeout(5)
            while one.recv(65536) and time.monotonic() < end:
                pass

    for number in range(4):
        threading.Thread(target=datagrams, args=(UDP_PORT + number,), daemon=True).start()
    with socket.create_server(("", TCP_PORT), backlog=64) as listener:
        listener.settimeout(0.5)
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                one, _ = listener.accept()
                threading.Thread(target=connection, args=(one,), daemon=True).start()


def main() -> None:
    """Send, or receive, and report."""
    role, seconds, seed, flows, report = sys.argv[1:6]
    end = time.monotonic() + float(seconds)
    sent = {"hostile": 0, "refused": 0, "datagrams": 0, "tcp_bytes": 0, "connections": 0}
    threads = [threading.Thread(target=send_hostile, args=(int(seed), end, 0.01, sent))]
    if role == "client":
        half = max(1, int(flows) // 5)
        threads += [threading.Thread(target=upload, args=(end, sent)) for _ in range(half)]
        arguments = (int(flows) - half, int(seed), end, sent)
        threads.append(threading.Thread(target=send_datagrams, args=arguments))
    else:
        threads.append(threading.Thread(target=receive, args=(end,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # What is under way arrives.
    time.sleep(1)
    folder = Path(f"/sys/class/net/{interface()}/statistics")
    drops = {name: int((folder / name).read_text()) for name in ("tx_dropped", "tx_packets")}
    Path(report).write_text(json.dumps(sent | drops))


if __name__ == "__main__":
    main()
