# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Content of the numbered packets, by which they are found in damaged frames.

The payload is chunks of 32 bytes: the packet's number in four, then 28 pseudo-random bytes that
follow from number and chunk. One chunk that is nearly right is enough to find packet and place.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

CHUNK_BYTES = 32
HEADER_BYTES = 28
"""IPv4 and UDP headers."""
LEAST_BYTES = HEADER_BYTES + CHUNK_BYTES
MOST_PACKETS = 10_000_000
_MOST_WRONG_BITS = 64
"""Of the 256 of a chunk; two chunks that have nothing to do with each other differ in half."""
_HEADERS_BYTES = 160
"""The payload begins within so many bytes of a frame: headers of any link."""


class Found(NamedTuple):
    """A numbered packet in a frame."""

    number: int
    offset: int
    """Of its payload in the frame, in bytes."""


def chunk(number: int, index: int) -> bytes:
    """Return chunk ``index`` of a packet's payload."""
    key = struct.pack("!II", number, index)
    return key[:4] + hashlib.shake_128(b"airpath probe" + key).digest(CHUNK_BYTES - 4)


def payload(number: int, length_bytes: int) -> bytes:
    """Return the payload of a packet whose IPv4 packet has ``length_bytes``."""
    size = length_bytes - HEADER_BYTES
    chunks = (chunk(number, index) for index in range(-(-size // CHUNK_BYTES)))
    return b"".join(chunks)[:size]


def differing_bits(one: bytes, other: bytes) -> list[int]:
    """Return the positions of differing bits, the highest of the first byte being 0."""
    length = min(len(one), len(other))
    both = int.from_bytes(one[:length], "big") ^ int.from_bytes(other[:length], "big")
    found = []
    while both:
        highest = both.bit_length() - 1
        found.append(length * 8 - 1 - highest)
        both ^= 1 << highest
    return found


def find(frame: bytes, packets: int, length_bytes: int) -> Found | None:
    """Return which of the first ``packets`` packets a frame carries, if any, and where."""
    chunks = (length_bytes - HEADER_BYTES) // CHUNK_BYTES
    for offset in range(min(_HEADERS_BYTES, max(0, len(frame) - CHUNK_BYTES + 1))):
        for index in range(chunks):
            at = offset + index * CHUNK_BYTES
            piece = frame[at : at + CHUNK_BYTES]
            if len(piece) < CHUNK_BYTES:
                break
            number = int.from_bytes(piece[:4], "big")
            if number >= packets:
                continue
            wrong = (
                int.from_bytes(piece, "big") ^ int.from_bytes(chunk(number, index), "big")
            ).bit_count()
            if wrong <= _MOST_WRONG_BITS:
                return Found(number, offset)
    return None
