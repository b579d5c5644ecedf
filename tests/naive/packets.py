# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Events and TCP packets of a run, read from its files."""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pcapng import packets as read_packets

if TYPE_CHECKING:
    from pathlib import Path

SLACK = 100_000
FIN, SYN, RST, ACK = 1, 2, 4, 16
INFINITE = 1 << 62


@dataclass
class Seen:
    """A TCP packet at one point."""

    time: int
    end: str
    sent: bool
    direction: str
    pdu: int
    key: tuple[Any, ...]
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload: int
    echo: int | None
    stamp: int | None
    blocks: list[tuple[int, int]]
    isn: int = -1

    @property
    def order(self) -> tuple[int, bool]:
        """Order in which packets count: by time, arrivals first."""
        return (self.time if self.sent else self.time - SLACK, self.sent)


def parse(content: bytes) -> dict[str, Any] | None:
    """Return the fields of a TCP packet, or nothing."""
    if content[0] >> 4 == 4:
        header = (content[0] & 15) * 4
        total = struct.unpack_from(">H", content, 2)[0]
        protocol = content[9]
        ends = content[12:16], content[16:20]
    else:
        header, protocol = 40, content[6]
        total = 40 + struct.unpack_from(">H", content, 4)[0]
        ends = content[8:24], content[24:40]
    if protocol != 6:
        return None
    ports = struct.unpack_from(">HH", content, header)
    sequence, acknowledgement, offset, flags, window = struct.unpack_from(
        ">IIBBH", content, header + 4
    )
    size = (offset >> 4) * 4
    options = content[header + 20 : header + size]
    stamp = echo = None
    blocks: list[tuple[int, int]] = []
    place = 0
    while place < len(options):
        kind = options[place]
        if kind == 0:
            break
        if kind == 1:
            place += 1
            continue
        length = options[place + 1]
        body = options[place + 2 : place + length]
        if kind == 8 and place == 2:
            stamp, echo = struct.unpack(">II", body)
        if kind == 5:
            edges = struct.unpack(f">{len(body) // 4}I", body)
            blocks = list(zip(edges[::2], edges[1::2], strict=True))
        place += length
    return {
        "ends": tuple(str(ip_address(end)) for end in ends),
        "ports": ports,
        "sequence": sequence,
        "acknowledgement": acknowledgement,
        "flags": flags,
        "window": window,
        "payload": total - header - size,
        "stamp": stamp,
        "echo": echo,
        "blocks": blocks,
    }


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of events.arrow."""
    with pa.OSFile(str(folder / "events.arrow")) as file:
        rows = pa.ipc.open_file(file).read_all().to_pylist()
    return sorted(rows, key=lambda row: row["time_ns"])


def seen(folder: Path, start: int, damaged: set[int]) -> list[Seen]:
    """Return every TCP packet of both captures, damaged arrivals left out."""
    found = []
    for end in ("client", "server"):
        here: list[Seen] = []
        for raw in read_packets((folder / f"{end}.pcapng").read_bytes()):
            fields = parse(raw.content)
            if fields is None or raw.interface < 0:
                continue
            sent = raw.interface == 0
            direction = "uplink" if (end == "client") == sent else "downlink"
            client = 0 if direction == "uplink" else 1
            key = (
                fields["ends"][client],
                fields["ports"][client],
                fields["ends"][1 - client],
                fields["ports"][1 - client],
            )
            here.append(
                Seen(
                    raw.unix_ns - start,
                    end,
                    sent,
                    direction,
                    raw.pdu,
                    key,
                    fields["sequence"],
                    fields["acknowledgement"],
                    fields["flags"],
                    fields["window"],
                    fields["payload"],
                    fields["echo"],
                    fields["stamp"],
                    fields["blocks"],
                )
            )
        here.sort(key=lambda packet: packet.order)
        now: dict[tuple[Any, ...], int] = {}
        for packet in here:
            if packet.flags & (SYN | ACK) == SYN:
                now[packet.key] = packet.sequence
            packet.isn = now.get(packet.key, -1)
        later: dict[tuple[Any, ...], int] = {}
        for packet in reversed(here):
            if packet.isn < 0:
                packet.isn = later.get(packet.key, -1)
            later[packet.key] = packet.isn
        found += [one for one in here if one.sent or one.pdu not in damaged]
    return found


def near(value: int, anchor: int) -> int:
    """Return value - anchor as the shorter way round."""
    return (value - anchor + (1 << 31)) % (1 << 32) - (1 << 31)


def pdus_of_users(folder: Path) -> dict[str, set[int]]:
    """Return the ids of the packets of each user of a cell."""
    ids: dict[str, set[int]] = defaultdict(set)
    for row in events(folder):
        if row["kind"] == "offered" and row["user"]:
            ids[row["user"]].add(row["pdu"])
    return ids


def pdus_of_connections(folder: Path, start: int) -> dict[tuple[Any, ...], set[int]]:
    """Return the ids of the packets of each TCP connection."""
    ids: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for packet in seen(folder, start, set()):
        ids[(*packet.key, packet.isn)].add(packet.pdu)
    return ids
