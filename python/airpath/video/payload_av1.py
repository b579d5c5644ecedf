# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""RTP payloads of AV1: temporal units packetised, and put together again.

Source: RTP Payload Format For AV1, version 1.0.0 (Alliance for Open Media), section 4. Before
version 8.0 ffmpeg has no packetiser for AV1.
"""

from __future__ import annotations

from typing import NamedTuple

from airpath.video.errors import FileError

_SEQUENCE_HEADER = 1
_TEMPORAL_DELIMITER = 2
_HAS_EXTENSION = 0x04
_HAS_SIZE = 0x02
_CONTINUES = 0x80
"""Flag Z of the aggregation header: the first element continues an OBU."""
_IS_CONTINUED = 0x40
"""Flag Y: the last element is continued in the next packet."""
_NEW_SEQUENCE = 0x08
"""Flag N: the packet begins a coded video sequence."""
DELIMITER = bytes([_TEMPORAL_DELIMITER << 3 | _HAS_SIZE, 0])
"""A temporal delimiter, which begins a temporal unit and is not sent."""


class Obu(NamedTuple):
    """An open bitstream unit without its size field."""

    header: bytes
    payload: bytes

    @property
    def kind(self) -> int:
        """The obu_type."""
        return self.header[0] >> 3 & 0xF


def leb128(value: int) -> bytes:
    """Return a whole number in the shortest LEB128 form (AV1, section 4.10.5).

    Raises:
        ValueError: it is negative.

    """
    if value < 0:
        message = f"{value} is negative"
        raise ValueError(message)
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def read_leb128(data: bytes, begin: int) -> tuple[int, int] | None:
    """Return a number in LEB128 form and the place behind it, or None where it does not end."""
    value = 0
    for place in range(8):
        if begin + place >= len(data):
            return None
        byte = data[begin + place]
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return value, begin + place + 1
    return None


def obus(bitstream: bytes) -> list[Obu]:
    """Return the OBUs of a low-overhead bitstream (AV1, section 5).

    Raises:
        VideoError: it is none.

    """
    found, at = [], 0
    while at < len(bitstream):
        first = bitstream[at]
        header_bytes = 2 if first & _HAS_EXTENSION else 1
        size = read_leb128(bitstream, at + header_bytes) if first & _HAS_SIZE else None
        if first & 0x80 or size is None or size[1] + size[0] > len(bitstream):
            message = f"the AV1 bitstream is damaged at byte {at}"
            raise FileError(message)
        header = bytes([first & ~_HAS_SIZE]) + bitstream[at + 1 : at + header_bytes]
        at = size[1] + size[0]
        found.append(Obu(header, bitstream[size[1] : at]))
    return found


def temporal_units(bitstream: bytes) -> list[list[Obu]]:
    """Return the temporal units of a bitstream without their delimiters.

    Raises:
        VideoError: it is no AV1 bitstream.

    """
    units: list[list[Obu]] = []
    for obu in obus(bitstream):
        if obu.kind == _TEMPORAL_DELIMITER:
            units.append([])
        elif not units:
            message = "the AV1 bitstream does not begin with a temporal delimiter"
            raise FileError(message)
        else:
            units[-1].append(obu)
    return units


def packetise(unit: list[Obu], most_bytes: int) -> list[bytes]:
    """Return the RTP payloads of a temporal unit.

    Every element stands behind its length (the field W of the aggregation header is 0).

    Args:
        unit: its OBUs.
        most_bytes: length of the longest payload.

    """
    payloads: list[bytes] = []
    new = _NEW_SEQUENCE if any(obu.kind == _SEQUENCE_HEADER for obu in unit) else 0
    flags, elements = new, b""
    for obu in unit:
        rest, begun = obu.header + obu.payload, False
        while rest:
            room = most_bytes - 1 - len(elements)
            taken = min(len(rest), room - len(leb128(max(room, 0))))
            if taken < 1:
                payloads.append(bytes([flags]) + elements)
                flags, elements = (_CONTINUES if begun else 0), b""
                continue
            elements += leb128(taken) + rest[:taken]
            rest, begun = rest[taken:], True
            if rest:
                payloads.append(bytes([flags | _IS_CONTINUED]) + elements)
                flags, elements = _CONTINUES, b""
    if elements:
        payloads.append(bytes([flags]) + elements)
    return payloads


class Depacketiser:
    """A decoder's input from payloads in order; OBUs of which a part was lost are left out."""

    def __init__(self) -> None:
        self._part: bytes | None = None
        """Beginning of an OBU that the next packet continues."""

    def begin_frame(self) -> bytes:
        """Return the bytes in front of a frame: the temporal delimiter, which is not sent."""
        self._part = None
        return DELIMITER

    def push(self, payload: bytes, *, after_loss: bool) -> bytes:
        """Return what a payload adds to the bitstream.

        Args:
            payload: behind the RTP header.
            after_loss: whether packets in front of it are missing.

        """
        if not payload:
            return b""
        flags = payload[0]
        if after_loss or not flags & _CONTINUES:
            self._part = None
        elements = _elements(payload)
        done = []
        for number, element in enumerate(elements):
            whole: bytes | None = element
            if number == 0 and flags & _CONTINUES:
                whole = None if self._part is None else self._part + element
                self._part = None
            if number == len(elements) - 1 and flags & _IS_CONTINUED:
                self._part = whole
            elif whole:
                done.append(_with_size(whole))
        return b"".join(done)


def _elements(payload: bytes) -> list[bytes]:
    """Return the elements of a payload; a damaged length ends with the payload."""
    count = payload[0] >> 4 & 3
    found: list[bytes] = []
    at = 1
    while at < len(payload):
        if count and len(found) == count - 1:
            length = len(payload) - at
        else:
            size = read_leb128(payload, at)
            if size is None:
                break
            length, at = size
        found.append(payload[at : at + length])
        at += length
    return found


def _with_size(obu: bytes) -> bytes:
    """Return an OBU with its size field; nothing of one that is shorter than its header."""
    header_bytes = 2 if obu[0] & _HAS_EXTENSION else 1
    if len(obu) < header_bytes:
        return b""
    header = bytes([obu[0] | _HAS_SIZE]) + obu[1:header_bytes]
    return header + leb128(len(obu) - header_bytes) + obu[header_bytes:]
