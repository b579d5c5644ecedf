# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""RTP and RTCP packets (RFC 3550), as bytes."""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER_BYTES = 12
VERSION = 2
SSRC = 0x61697270
"""Of every stream here: a fixed one, so that the same file gives the same packets."""

_SENDER_REPORT = 200
_BYE = 203
_RTCP_TYPES = range(200, 205)
_NTP_EPOCH_SECONDS = 2_208_988_800
"""1970 since 1900."""


class Packet(NamedTuple):
    """An RTP packet."""

    payload_type: int
    marker: bool
    sequence: int
    time: int
    """In units of 1/90000 s."""
    ssrc: int
    payload: bytes


class Goodbye(NamedTuple):
    """A sender report and a BYE: the end of a stream, and the number of its packets."""

    ssrc: int
    packets: int
    bytes: int
    """Of payloads."""


def build(packet: Packet) -> bytes:
    """Return the bytes of an RTP packet without CSRCs and extension (RFC 3550, section 5.1)."""
    first = VERSION << 6
    second = packet.marker << 7 | packet.payload_type
    header = struct.pack(
        "!BBHII",
        first,
        second,
        packet.sequence & 0xFFFF,
        packet.time & 0xFFFFFFFF,
        packet.ssrc,
    )
    return header + packet.payload


def parse(data: bytes) -> Packet | None:
    """Return the RTP packet in a datagram, or None if there is none."""
    if len(data) < HEADER_BYTES or data[0] >> 6 != VERSION or is_rtcp(data):
        return None
    first, second, sequence, time, ssrc = struct.unpack_from("!BBHII", data)
    begin = HEADER_BYTES + 4 * (first & 0xF)
    if first & 0x10:
        if len(data) < begin + 4:
            return None
        begin += 4 + 4 * int.from_bytes(data[begin + 2 : begin + 4], "big")
    end = len(data) - (data[-1] if first & 0x20 else 0)
    if begin > end:
        return None
    return Packet(second & 0x7F, bool(second >> 7), sequence, time, ssrc, data[begin:end])


def is_rtcp(data: bytes) -> bool:
    """Say whether a datagram is RTCP rather than RTP (RFC 5761, section 4)."""
    return len(data) >= 8 and data[0] >> 6 == VERSION and data[1] in _RTCP_TYPES


def build_goodbye(goodbye: Goodbye, now_ns: int, rtp_time: int) -> bytes:
    """Return a sender report and a BYE (RFC 3550, sections 6.4.1 and 6.6).

    Args:
        goodbye: the stream's source and counters.
        now_ns: the time since 1970.
        rtp_time: the RTP time of the last frame.

    """
    seconds, rest = divmod(now_ns, 1_000_000_000)
    ntp = (seconds + _NTP_EPOCH_SECONDS) << 32 | (rest << 32) // 1_000_000_000
    report = struct.pack(
        "!BBHIQIII",
        VERSION << 6,
        _SENDER_REPORT,
        6,
        goodbye.ssrc,
        ntp & 0xFFFFFFFFFFFFFFFF,
        rtp_time & 0xFFFFFFFF,
        goodbye.packets & 0xFFFFFFFF,
        goodbye.bytes & 0xFFFFFFFF,
    )
    return report + struct.pack("!BBHI", VERSION << 6 | 1, _BYE, 1, goodbye.ssrc)


def parse_goodbye(data: bytes) -> Goodbye | None:
    """Return what a compound RTCP packet with a sender report and a BYE says, or None."""
    report: Goodbye | None = None
    left = False
    while len(data) >= 8 and is_rtcp(data):
        kind, words = data[1], int.from_bytes(data[2:4], "big")
        length = 4 * (words + 1)
        if length > len(data):
            return None
        if kind == _SENDER_REPORT and length >= 28:
            ssrc, packets, octets = struct.unpack_from("!I12xII", data, 4)
            report = Goodbye(ssrc, packets, octets)
        left = left or kind == _BYE
        data = data[length:]
    return report if left else None
