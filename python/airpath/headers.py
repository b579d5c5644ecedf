# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""IP, TCP and UDP headers of many packets at once.

Fixed fields are taken by numpy from all packets together; only SACK blocks, which few packets
have, are read one packet at a time.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROTOCOL_TCP = 6
PROTOCOL_UDP = 17
PROTOCOL_UDP_LITE = 136

FLAG_FIN = 0x01
FLAG_SYN = 0x02
FLAG_RST = 0x04
FLAG_ACK = 0x10

OPTION_SACK = 5
TIME_STAMP_LAYOUT = 0x0101080A
"""Two paddings, and the kind and length of the time stamp option."""
IPV6_EXTENSIONS = frozenset({0, 43, 60})
"""Hop-by-hop, routing and destination options: headers that stand before the transport's."""

PARSED_COLUMNS: dict[str, pl.DataType] = {
    "protocol": pl.UInt8(),
    "source": pl.Categorical(),
    "destination": pl.Categorical(),
    "source_port": pl.UInt16(),
    "destination_port": pl.UInt16(),
    "payload": pl.Int64(),
    "sequence": pl.UInt32(),
    "acknowledgement": pl.UInt32(),
    "flags": pl.UInt8(),
    "window": pl.UInt16(),
    "timestamp": pl.UInt32(),
    "timestamp_echo": pl.UInt32(),
    "sack": pl.List(pl.UInt32()),
}
"""Columns that ``parse_headers`` yields. ``protocol`` is 0 where no IP header could be read;
``payload`` counts the transport's payload in bytes, by the length in the IP header; ``sack`` lists
the edges of SACK blocks, left and right in turn, or is null; ``timestamp`` and ``timestamp_echo``
are TSval and TSecr where the options begin with them as RFC 7323 (appendix A) recommends and
established connections do, null elsewhere. Other fields that a packet lacks are
0."""

_HEAD = 128
"""Bytes looked at in each packet: IPv6 and TCP headers with all options end before."""

_CHUNK = 1 << 17
"""Packets treated together, to bound memory."""


def parse_headers(
    content: bytes, starts: NDArray[np.int64], captured: NDArray[np.int64]
) -> dict[str, pl.Series]:
    """Parse packets that lie in ``content``.

    Args:
        content: a buffer that holds all packets.
        starts: offset of each packet's IP header.
        captured: length of each packet in the buffer, in bytes.

    Returns:
        One column for each entry of ``PARSED_COLUMNS``.

    """
    # Room behind the last packet, so that as much can be looked at in it as in every other one.
    buffer = np.frombuffer(content + bytes(_HEAD), dtype=np.uint8)
    parts = [
        _parse_chunk(buffer, starts[first : first + _CHUNK], captured[first : first + _CHUNK])
        for first in range(0, len(starts), _CHUNK)
    ]
    columns: dict[str, pl.Series] = {}
    for name, dtype in PARSED_COLUMNS.items():
        pieces = [pl.Series(name, part[name], dtype=dtype) for part in parts]
        columns[name] = pl.concat(pieces) if pieces else pl.Series(name, dtype=dtype)
    return columns


def _parse_chunk(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    captured: NDArray[np.int64],
) -> dict[str, Any]:
    count = len(starts)
    head = np.lib.stride_tricks.sliding_window_view(buffer, _HEAD)[starts]
    flat, rows = head.reshape(-1), np.arange(count) * _HEAD

    def byte(offset: NDArray[np.int64]) -> NDArray[np.int64]:
        return flat.take(rows + np.minimum(offset, _HEAD - 1)).astype(np.int64)

    def number(offset: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        value = np.zeros(count, dtype=np.int64)
        for index in range(width):
            value = (value << 8) | byte(offset + index)
        return value

    zero = np.zeros(count, dtype=np.int64)
    version = np.where(captured > 0, byte(zero) >> 4, 0)
    is_4 = (version == 4) & (captured >= 20)
    is_6 = (version == 6) & (captured >= 40)

    internet_header = np.where(is_4, (byte(zero) & 0x0F) * 4, 40)
    protocol = np.where(is_4, byte(zero + 9), np.where(is_6, byte(zero + 6), 0))
    total = np.where(is_4, number(zero + 2, 2), np.where(is_6, number(zero + 4, 2) + 40, 0))
    for row in np.flatnonzero(is_6 & np.isin(protocol, list(IPV6_EXTENSIONS))):
        protocol[row], internet_header[row] = _skip_extensions(head[row], int(captured[row]))
    # Only the first fragment of a fragmented packet has the transport's header.
    whole = ~is_4 | ((number(zero + 6, 2) & 0x1FFF) == 0)

    is_tcp = (protocol == PROTOCOL_TCP) & whole & (captured >= internet_header + 20)
    is_udp = (
        np.isin(protocol, [PROTOCOL_UDP, PROTOCOL_UDP_LITE])
        & whole
        & (captured >= internet_header + 8)
    )
    has_ports = is_tcp | is_udp
    at = internet_header
    transport_header = np.where(is_tcp, (byte(at + 12) >> 4) * 4, np.where(is_udp, 8, 0))
    payload = np.where(has_ports, np.maximum(total - internet_header - transport_header, 0), 0)

    def when(mask: NDArray[np.bool_], value: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(mask, value, 0)

    # By far the most common options are two paddings and a time stamp: nothing to look for.
    time_stamp_first = is_tcp & (transport_header >= 32) & (captured >= at + 32)
    time_stamp_first &= (number(at + 20, 4)) == TIME_STAMP_LAYOUT
    only_time_stamp = time_stamp_first & (transport_header == 32)
    with_options = is_tcp & (transport_header > 20) & ~only_time_stamp
    options, end = at + 20, at + transport_header
    return {
        "protocol": protocol.astype(np.uint8),
        "source": _addresses(head, is_4, is_6, 0),
        "destination": _addresses(head, is_4, is_6, 1),
        "source_port": when(has_ports, number(at, 2)).astype(np.uint16),
        "destination_port": when(has_ports, number(at + 2, 2)).astype(np.uint16),
        "payload": payload,
        "sequence": when(is_tcp, number(at + 4, 4)).astype(np.uint32),
        "acknowledgement": when(is_tcp, number(at + 8, 4)).astype(np.uint32),
        "flags": when(is_tcp, byte(at + 13)).astype(np.uint8),
        "window": when(is_tcp, number(at + 14, 2)).astype(np.uint16),
        "timestamp": _optional(number(at + 24, 4), time_stamp_first),
        "timestamp_echo": _optional(number(at + 28, 4), time_stamp_first),
        "sack": _sack_blocks(head, captured, with_options, options, end),
    }


def _optional(values: NDArray[np.int64], present: NDArray[np.bool_]) -> pl.Series:
    """Return values with nulls where there are none."""
    series = pl.Series(values.astype(np.uint32))
    absent = np.flatnonzero(~present)
    return series.scatter(absent, None) if len(absent) else series


def _skip_extensions(head: NDArray[np.uint8], captured: int) -> tuple[int, int]:
    """Return protocol and header length of an IPv6 packet with extension headers."""
    protocol = int(head[6])
    position = 40
    limit = min(captured, _HEAD)
    while protocol in IPV6_EXTENSIONS and position + 2 <= limit:
        protocol = int(head[position])
        position += (int(head[position + 1]) + 1) * 8
    return protocol, position


def _addresses(
    head: NDArray[np.uint8],
    is_4: NDArray[np.bool_],
    is_6: NDArray[np.bool_],
    offset: int,
) -> pl.Series:
    """Return the source (offset 0) or destination (offset 1) of each packet as text."""
    places = np.zeros(len(head), dtype=np.int64)
    names = [""]
    for version, first, width in ((is_4, 12, 4), (is_6, 8, 16)):
        rows = np.flatnonzero(version)
        if not len(rows):
            continue
        begin = first + offset * width
        raw = np.ascontiguousarray(head[rows, begin : begin + width]).view(f"S{width}")[:, 0]
        _, examples, which = np.unique(raw, return_index=True, return_inverse=True)
        places[rows] = len(names) + which
        names += [
            str(ipaddress.ip_address(head[row, begin : begin + width].tobytes()))
            for row in rows[examples]
        ]
    return pl.Series(names, dtype=pl.String).gather(places).cast(pl.Categorical)


def _sack_blocks(
    head: NDArray[np.uint8],
    captured: NDArray[np.int64],
    candidates: NDArray[np.bool_],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> pl.Series:
    """Return the edges of SACK blocks in the options between ``begins`` and ``ends``."""
    found: list[list[int] | None] = [None] * len(head)
    for row in np.flatnonzero(candidates).tolist():
        end = min(int(ends[row]), int(captured[row]), _HEAD)
        found[row] = _sack_of_options(head[row, begins[row] : end].tobytes()) or None
    return pl.Series(found, dtype=PARSED_COLUMNS["sack"])


def _sack_of_options(options: bytes) -> list[int]:
    position = 0
    while position + 1 < len(options):
        kind = options[position]
        if kind == 0:
            break
        if kind == 1:
            position += 1
            continue
        length = options[position + 1]
        if length < 2:
            break
        if kind == OPTION_SACK:
            body = options[position + 2 : position + length]
            return list(struct.unpack(f">{len(body) // 8 * 2}I", body[: len(body) // 8 * 8]))
        position += length
    return []
