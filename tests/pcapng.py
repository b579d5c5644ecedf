# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A pcapng writer and reader for tests: raw IP, nanosecond stamps, directions, ids, comments."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SNAPLEN = 128


@dataclass(frozen=True)
class Packet:
    """One captured packet."""

    unix_ns: int
    interface: int
    """0 for "rx" (inbound), 1 for "tx" (outbound), -1 for "drop" (of no direction)."""
    content: bytes
    pdu: int = 0
    comment: str = ""


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def capture(
    packets: list[Packet], snaplen: int = SNAPLEN, *, earlier: bool = False, link_type: int = 101
) -> bytes:
    """Return the bytes of a capture file, or of an earlier one with an interface for each point."""
    blocks = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in (b"rx", b"tx") if earlier else (b"link",):
        options = _option(2, name) + _option(9, b"\x09") + _option(0, b"")
        blocks.append(_block(1, struct.pack("<HHI", link_type, 0, snaplen) + options))
    for packet in packets:
        kept = packet.content[:snaplen]
        head = struct.pack(
            "<5I",
            packet.interface if earlier else 0,
            packet.unix_ns >> 32,
            packet.unix_ns & 0xFFFFFFFF,
            len(kept),
            len(packet.content),
        )
        options = b"" if earlier else _option(2, struct.pack("<I", packet.interface + 1))
        options += _option(5, struct.pack("<Q", packet.pdu))
        if packet.comment:
            options += _option(1, packet.comment.encode())
        blocks.append(_block(6, head + _padded(kept) + options + _option(0, b"")))
    return b"".join(blocks)


def tcp(
    source: tuple[str, int],
    destination: tuple[str, int],
    *,
    sequence: int,
    acknowledgement: int = 0,
    flags: int = 0x10,
    payload: int = 0,
    options: bytes = b"",
) -> bytes:
    """Return an IP packet with a TCP segment; the payload is zeros, checksums are left out."""
    options += b"\x01" * (-len(options) % 4)
    segment = struct.pack(
        ">HHIIBBHHH",
        source[1],
        destination[1],
        sequence % (1 << 32),
        acknowledgement % (1 << 32),
        (20 + len(options)) // 4 << 4,
        flags,
        65535,
        0,
        0,
    )
    return ip(source[0], destination[0], 6, segment + options + bytes(payload))


def udp(source: tuple[str, int], destination: tuple[str, int], payload: int) -> bytes:
    """Return an IP packet with a UDP datagram of zeros."""
    head = struct.pack(">HHHH", source[1], destination[1], 8 + payload, 0)
    return ip(source[0], destination[0], 17, head + bytes(payload))


def ip(source: str, destination: str, protocol: int, body: bytes) -> bytes:
    """Return an IPv4 or IPv6 packet, as the addresses are."""
    ends = ip_address(source).packed + ip_address(destination).packed
    if len(ends) == 8:
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0)
    else:
        head = struct.pack(">IHBB", 6 << 28, len(body), protocol, 64)
    return head + ends + body


def sack(blocks: list[tuple[int, int]]) -> bytes:
    """Return the TCP option that reports blocks of sequence numbers."""
    edges = b"".join(struct.pack(">II", a % (1 << 32), b % (1 << 32)) for a, b in blocks)
    return b"\x01\x01" + bytes([5, 2 + len(edges)]) + edges


def stamps(value: int, echo: int) -> bytes:
    """Return the TCP option with time stamps, where Linux puts it: first."""
    return struct.pack(">BBBBII", 1, 1, 8, 10, value % (1 << 32), echo % (1 << 32))


def packets(content: bytes) -> list[Packet]:
    """Return the packets of a capture file, as far as it keeps their bytes."""
    found = []
    position = 0
    while position < len(content):
        kind, length = struct.unpack_from("<II", content, position)
        if kind == 6:
            head = struct.unpack_from("<5I", content, position + 8)
            _, high, low, kept, _ = head
            start = position + 28
            rest = content[start + kept + -kept % 4 : position + length - 4]
            options = dict(_options(rest))
            pdu = struct.unpack("<Q", options[5])[0] if 5 in options else 0
            interface = struct.unpack("<I", options[2])[0] - 1 if 2 in options else -1
            kept_bytes = content[start : start + kept]
            found.append(Packet(high << 32 | low, interface, kept_bytes, pdu))
        position += length
    return found


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        code, length = struct.unpack_from("<HH", data)
        if code == 0:
            return
        yield code, data[4 : 4 + length]
        data = data[4 + length + -length % 4 :]
