# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""UDP-Lite (RFC 3828) as bytes: header, coverage, checksum.

The kernel's UDP-Lite does the same; this is for kernels that have none (``transport.py``).
"""

from __future__ import annotations

import ipaddress
import struct
from typing import NamedTuple

PROTOCOL = 136
HEADER_BYTES = 8
LEAST_COVERAGE_BYTES = 8
"""Of a coverage that is not the whole packet: the header is always covered."""


class Datagram(NamedTuple):
    """A UDP-Lite packet that passed its checksum."""

    source_port: int
    destination_port: int
    coverage_bytes: int
    """From the beginning of the header on."""
    payload: bytes


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071): complement of the sum of 16-bit words."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(source: str, destination: str, length_bytes: int) -> bytes:
    """Return the pseudo header (RFC 3828, section 3.1).

    Args:
        source: IPv4 or IPv6 address.
        destination: one of the same family.
        length_bytes: of the UDP-Lite packet: that of IP's payload, whatever the coverage is.

    """
    addresses = [
        ipaddress.ip_address(address.partition("%")[0]) for address in (source, destination)
    ]
    packed = b"".join(address.packed for address in addresses)
    if addresses[0].version == 4:
        return packed + struct.pack("!BBH", 0, PROTOCOL, length_bytes)
    return packed + struct.pack("!IHBB", length_bytes, 0, 0, PROTOCOL)


def build(
    source: str,
    destination: str,
    source_port: int,
    destination_port: int,
    payload: bytes,
    coverage_bytes: int,
) -> bytes:
    """Return a UDP-Lite packet.

    Args:
        source: address of the sender.
        destination: address of the receiver.
        source_port: port of the sender.
        destination_port: port of the receiver.
        payload: what it carries.
        coverage_bytes: number of bytes under the checksum, from the header on; 0 for all of them. A
            coverage of the whole length or more is written as the length, as Linux does.

    Raises:
        ValueError: the coverage ends within the header.

    """
    if coverage_bytes and coverage_bytes < LEAST_COVERAGE_BYTES:
        message = f"a coverage of {coverage_bytes} bytes ends within the header of UDP-Lite"
        raise ValueError(message)
    length = HEADER_BYTES + len(payload)
    field = min(coverage_bytes, length)
    covered = field or length
    header = struct.pack("!HHHH", source_port, destination_port, field, 0)
    pseudo = pseudo_header(source, destination, length)
    # Zero would say that there is none, which UDP-Lite forbids; all ones is the same number.
    value = checksum(pseudo + (header + payload)[:covered]) or 0xFFFF
    return header[:6] + struct.pack("!H", value) + payload


def parse(source: str, destination: str, data: bytes) -> Datagram | None:
    """Return the datagram in a UDP-Lite packet, or None if its checksum refuses it.

    Refused are packets whose coverage is shorter than the header or longer than the packet, that
    have no checksum, or in which a covered byte is damaged (RFC 3828, section 3.1).
    """
    if len(data) < HEADER_BYTES:
        return None
    source_port, destination_port, field, value = struct.unpack_from("!HHHH", data)
    if value == 0 or field > len(data) or 0 < field < LEAST_COVERAGE_BYTES:
        return None
    covered = field or len(data)
    if checksum(pseudo_header(source, destination, len(data)) + data[:covered]) != 0:
        return None
    return Datagram(source_port, destination_port, covered, data[HEADER_BYTES:])
