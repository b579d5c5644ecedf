# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Frames of a radio as a monitor interface tells of them, and captures of such frames."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FCS = b"\xde\xad\xbe\xef"


def radio_frame(payload: bytes, length: int, flags: int = 0x10) -> bytes:
    """Return a frame: radiotap with a time stamp and flags, 802.11, LLC, IPv4, UDP, FCS."""
    radiotap = struct.pack("<BBHIQBx", 0, 0, 18, 0b11, 123456, flags)
    mac = b"\x08\x02" + bytes(22)
    llc = b"\xaa\xaa\x03\x00\x00\x00\x08\x00"
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, length, 7, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
    udp = struct.pack("!HHHH", 40000, 5301, length - 20, 0)
    fcs = FCS if flags & 0x10 else b""
    return radiotap + mac + llc + ip + udp + payload + fcs


def as_pcap(frames: Sequence[bytes], link_type: int = 127, order: str = "<") -> bytes:
    """Return a pcap file."""
    head = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)
    packets = (struct.pack(f"{order}IIII", 1, 2, len(one), len(one)) + one for one in frames)
    return head + b"".join(packets)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def as_pcapng(frames: Sequence[bytes], link_type: int = 127) -> bytes:
    """Return a pcapng file."""
    made = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    made += _block(1, struct.pack("<HHI", link_type, 0, 0))
    for one in frames:
        made += _block(6, struct.pack("<IIIII", 0, 0, 0, len(one), len(one)) + one)
    return made
