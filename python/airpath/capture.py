# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Packet captures of a run: pcapng with packet ids and comments.

A reader of our own, because the ones at hand do not hand out the options of a packet block, and
those carry what joins a capture with the events: the PDU's id (epb_packetid) and the cause of a
drop (opt_comment).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airpath.files import read_bytes
from airpath.headers import parse_headers

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Offsets = NDArray[np.int64]

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
ENHANCED_PACKET = 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D

OPTION_END = 0
OPTION_COMMENT = 1
OPTION_INTERFACE_NAME = 2
OPTION_PACKET_FLAGS = 2
OPTION_PACKET_ID = 5
OPTION_TIME_RESOLUTION = 9

RAW_LINK_TYPES = frozenset({101, 228, 229})
"""Packets that begin with their IP header: raw IP, IPv4, IPv6."""

ETHERNET_LINK_TYPE = 1
"""Packets that begin with their Ethernet header, as behind a gateway."""

VLAN_TAGS = (0x8100, 0x88A8)
INTERNET_TYPES = (0x0800, 0x86DD)
"""EtherTypes of tags (IEEE 802.1Q, 802.1ad), and of IPv4 and IPv6."""

LINK = "link"
"""The interface of a capture whose packets tell by their direction where they were seen; earlier
captures have one interface for each such point."""

POINTS = ("drop", "rx", "tx")
"""Place at which a packet of no direction (0), an inbound (1) and an outbound (2) one was seen."""

NANOSECONDS_PER_SECOND = 1_000_000_000

MOST_TICKS_PER_SECOND = 1 << 63
MOST_SECTIONS = 100
"""The engine writes one; the time to read sections grows with their number."""
MOST_OPTIONS = 1000
"""Of a packet; the engine writes three at most."""

OWN: dict[str, pl.DataType] = {
    "time_ns": pl.Int64(),
    "interface": pl.Categorical(),
    "pdu": pl.UInt64(),
    "length": pl.Int64(),
    "comment": pl.String(),
}
"""Columns that the capture itself has, in addition to those of ``headers.PARSED_COLUMNS``."""


class CaptureError(Exception):
    """A file is no pcapng capture, or one that this reader cannot read."""


@dataclass(frozen=True)
class Capture:
    """The packets of one capture file."""

    packets: pl.DataFrame
    """One row a packet, in the file's order: time_ns (since the Unix epoch), interface ("rx" from
    the endpoint into the link, "tx" from the link to the endpoint; "drop", only in a run that did
    not end well, for the place in time where the link dropped one), pdu (0 for a packet that never
    entered the link), length (bytes without a link header), comment, and the columns of
    ``headers.PARSED_COLUMNS``."""

    torn_bytes: int
    """Length of the incomplete block at the end that was left out; 0 normally."""


@dataclass
class _Interface:
    name: str
    ticks_per_second: int
    has_link_headers: bool


@dataclass
class _Section:
    """The blocks of one section; numbers of a section have one order of bytes."""

    order: str
    interfaces: list[_Interface] = field(default_factory=list)
    declared_at: list[int] = field(default_factory=list)
    """Offsets of the interfaces' blocks."""

    packets: list[int] = field(default_factory=list)
    """Offsets of the packets' blocks."""


def read_capture(path: Path) -> Capture:
    """Read a capture of IP packets, or of Ethernet frames.

    Raises:
        CaptureError: not pcapng, or of another link type.
        OSError: the file cannot be read.

    """
    content = read_bytes(path)
    sections, end = _walk(content, path)
    parts = [_packets_of(section, content, path) for section in sections if section.packets]
    packets = pl.concat(parts or [_table(content, {})])
    return Capture(packets, torn_bytes=len(content) - end)


def _walk(content: bytes, path: Path) -> tuple[list[_Section], int]:
    """Find the blocks; return the sections, and the offset behind the last complete block.

    The one loop over blocks in Python: each block's place depends on the length of the one before.
    """
    sections: list[_Section] = []
    if not content:
        return sections, 0
    if content[:4] != struct.pack("<I", SECTION_HEADER)[: len(content)]:
        message = f"{path}: not a pcapng capture"
        raise CaptureError(message)
    position, size = 0, len(content)
    section = _Section("<")
    head, word = struct.Struct("<II").unpack_from, struct.Struct("<I").unpack_from
    add = section.packets.append
    while position + 12 <= size:
        kind, length = head(content, position)
        if kind == SECTION_HEADER:  # the same in either order of bytes
            section = _Section(_order(content, position, path))
            if len(sections) == MOST_SECTIONS:
                message = f"{path}: more than {MOST_SECTIONS} sections at byte {position}"
                raise CaptureError(message)
            sections.append(section)
            head = struct.Struct(section.order + "II").unpack_from
            word = struct.Struct(section.order + "I").unpack_from
            add = section.packets.append
            _, length = head(content, position)
        behind = position + length
        if length < 12 or length % 4 or behind > size:
            break
        # A block ends with its length once more: where the two differ, it is damaged.
        if word(content, behind - 4)[0] != length:
            break
        if kind == ENHANCED_PACKET:
            add(position)
        elif kind == INTERFACE_DESCRIPTION:
            section.declared_at.append(position)
            section.interfaces.append(_interface(section, content, position + 8, behind - 4, path))
        position = behind
    return sections, position


def _order(content: bytes, position: int, path: Path) -> str:
    for order in "<>":
        if struct.unpack_from(order + "I", content, position + 8)[0] == BYTE_ORDER_MAGIC:
            return order
    message = f"{path}: damaged pcapng section header at byte {position}"
    raise CaptureError(message)


def _interface(section: _Section, content: bytes, start: int, end: int, path: Path) -> _Interface:
    if end - start < 8:
        message = f"{path}: an interface at byte {start} is too short; the file is damaged"
        raise CaptureError(message)
    (link_type,) = struct.unpack_from(section.order + "H", content, start)
    has_link_headers = link_type == ETHERNET_LINK_TYPE
    if not has_link_headers and link_type not in RAW_LINK_TYPES:
        message = (
            f"{path}: link type {link_type}; only captures of raw IP (101) and Ethernet (1) are "
            f"understood"
        )
        raise CaptureError(message)
    interface = _Interface(
        name=f"if{len(section.interfaces)}",
        ticks_per_second=1_000_000,
        has_link_headers=has_link_headers,
    )
    position = start + 8
    while position + 4 <= end:
        code, length = struct.unpack_from(section.order + "HH", content, position)
        if code == OPTION_END:
            break
        value = content[position + 4 : position + 4 + length]
        if code == OPTION_INTERFACE_NAME:
            interface.name = value.decode(errors="replace")
        elif code == OPTION_TIME_RESOLUTION and value:
            base, exponent = 2 if value[0] & 0x80 else 10, value[0] & 0x7F
            interface.ticks_per_second = base**exponent
            if interface.ticks_per_second > MOST_TICKS_PER_SECOND:
                message = (
                    f"{path}: an interface at byte {start} counts {base}^{exponent} ticks a "
                    f"second, which cannot be; the file is damaged"
                )
                raise CaptureError(message)
        position += 4 + (length + 3) // 4 * 4
    return interface


@dataclass(frozen=True)
class _Places:
    """Places of the IP packets of a section in the file, and their options."""

    words: NDArray[np.uint32]
    blocks: Offsets
    data: Offsets
    """Offsets of the packets' first bytes, behind link headers."""
    captured: Offsets
    """Numbers of their captured bytes, behind link headers."""
    of_ip: NDArray[np.bool_]
    """False for those that their link header says are of another protocol."""
    link: Offsets
    """Lengths of their link headers."""
    interfaces: Offsets
    options: _Options


def _places_of(section: _Section, content: bytes, path: Path) -> _Places:
    """Find the packets of a section, all together, a field at a time.

    Raises:
        CaptureError: one of them contradicts itself.

    """
    # Blocks and all that is read of them begin at multiples of four bytes.
    words = np.frombuffer(content, dtype=f"{section.order}u4", count=len(content) // 4)
    blocks = np.asarray(section.packets, dtype=np.int64)
    ends = blocks + _word(words, blocks + 4) - 4
    data = blocks + 28
    _refuse(data > ends, blocks, path, "is too short; the file is damaged")
    index, captured = _word(words, blocks + 8), _word(words, blocks + 20)
    declared = np.searchsorted(np.asarray(section.declared_at, dtype=np.int64), blocks)
    _refuse(index >= declared, blocks, path, "names an undeclared interface")
    _refuse(captured > ends - data, blocks, path, "contradicts itself; it is damaged")
    options = _options_of(words, section.order, content, data + (captured + 3) // 4 * 4, ends)
    endless = f"has more than {MOST_OPTIONS} options; it is damaged"
    _refuse(options.endless, blocks, path, endless)
    with_headers = [interface.has_link_headers for interface in section.interfaces]
    rows = np.flatnonzero(np.array(with_headers, dtype=np.bool_)[index])
    link = np.zeros(len(blocks), dtype=np.int64)
    of_ip = np.ones(len(blocks), dtype=np.bool_)
    if len(rows):
        link[rows], of_ip[rows] = _link_headers(content, data[rows], captured[rows])
    return _Places(words, blocks, data + link, captured - link, of_ip, link, index, options)


def _word(words: NDArray[np.uint32], at: Offsets) -> Offsets:
    values: Offsets = words[at // 4].astype(np.int64)
    return values


def _refuse(wrong: NDArray[np.bool_], blocks: Offsets, path: Path, what: str) -> None:
    if wrong.any():
        message = f"{path}: a packet at byte {blocks[wrong.argmax()] + 8} {what}"
        raise CaptureError(message)


def _packets_of(section: _Section, content: bytes, path: Path) -> pl.DataFrame:
    """Read the packets of a section."""
    places = _places_of(section, content, path)
    words, blocks, found, index = places.words, places.blocks, places.options, places.interfaces
    high = _word(words, blocks + 12)
    impossible = "has a time that cannot be; it is damaged"
    _refuse(high >= 1 << 31, blocks, path, impossible)
    times, beyond = _times_ns(section, index, high << 32 | _word(words, blocks + 16))
    _refuse(beyond, blocks, path, impossible)

    # An interface's own name, or its points for a link.
    names = [interface.name for interface in section.interfaces] + list(POINTS)
    of_link = np.array([interface.name == LINK for interface in section.interfaces])[index]
    undirected = of_link & (found.directions >= len(POINTS))
    _refuse(undirected, blocks, path, "has no valid direction")
    point = np.where(of_link, len(section.interfaces) + found.directions, index)
    columns = {
        "time_ns": times,
        "interface": pl.Series(names, dtype=pl.String).gather(point),
        "pdu": found.ids,
        "length": _word(words, blocks + 24) - places.link,
        "comment": found.comments,
    }
    # The bytes of other protocols are no headers of IP.
    parsed = np.where(places.of_ip, places.captured, 0)
    return _table(content, columns, places.data, parsed)


def _link_headers(
    content: bytes, starts: Offsets, captured: Offsets
) -> tuple[Offsets, NDArray[np.bool_]]:
    """Return the lengths of Ethernet headers with their tags, and which have IP behind them.

    Of a frame that was cut within its header, all is header.
    """
    bytes_of = np.frombuffer(content, dtype=np.uint8)
    at = np.full(len(starts), 12, dtype=np.int64)
    kinds = np.zeros(len(starts), dtype=np.int64)
    rows = np.arange(len(starts))
    while len(rows):
        rows = rows[at[rows] + 2 <= captured[rows]]
        place = starts[rows] + at[rows]
        kinds[rows] = bytes_of[place].astype(np.int64) << 8 | bytes_of[place + 1]
        rows = rows[np.isin(kinds[rows], VLAN_TAGS)]
        at[rows] += 4
        kinds[rows] = 0
    return np.minimum(at + 2, captured), np.isin(kinds, INTERNET_TYPES)


def _times_ns(
    section: _Section, index: Offsets, ticks: Offsets
) -> tuple[Offsets, NDArray[np.bool_]]:
    """Return stamps in nanoseconds, whatever the unit of their interfaces.

    With them goes which of them are too great for that.
    """
    times = ticks.copy()
    beyond = np.zeros(len(ticks), dtype=np.bool_)
    units = np.array([one.ticks_per_second for one in section.interfaces], dtype=np.uint64)[index]
    for unit in map(int, np.unique(units)):
        if unit == NANOSECONDS_PER_SECOND:
            continue
        of_it = np.flatnonzero(units == unit)
        # As Python's integers: the product needs more than 64 bits.
        exact = [t * NANOSECONDS_PER_SECOND // unit for t in ticks[of_it].tolist()]
        beyond[of_it] = [time >= 1 << 63 for time in exact]
        times[of_it] = [min(time, (1 << 63) - 1) for time in exact]
    return times, beyond


@dataclass(frozen=True)
class _Options:
    ids: NDArray[np.uint64]
    directions: Offsets
    comments: pl.Series
    endless: NDArray[np.bool_]
    """True for each packet whose options did not end."""


def _options_of(
    words: NDArray[np.uint32], order: str, content: bytes, starts: Offsets, ends: Offsets
) -> _Options:
    """Read the options of packets: the first one of all of them, then the second one, and so on."""
    ids = np.zeros(len(starts), dtype=np.uint64)
    flags = np.zeros(len(starts), dtype=np.int64)
    comments: dict[int, str] = {}
    rows = np.arange(len(starts))
    position = starts
    for _ in range(MOST_OPTIONS):
        inside = position + 4 <= ends[rows]
        rows, position = rows[inside], position[inside]
        head = words[position // 4].astype(np.int64)
        code, length = head & 0xFFFF, head >> 16
        if order == ">":
            code, length = length, code
        value = position + 4
        # What reaches beyond its block is none, as is what follows an end.
        going = (code != OPTION_END) & (value + length <= ends[rows])
        rows, value, code, length = rows[going], value[going], code[going], length[going]
        if not len(rows):
            break
        chosen = (code == OPTION_PACKET_ID) & (length == 8)
        low, high = (words[value[chosen] // 4 + half].astype(np.uint64) for half in (0, 1))
        if order == ">":
            low, high = high, low
        ids[rows[chosen]] = high << np.uint64(32) | low
        chosen = (code == OPTION_PACKET_FLAGS) & (length == 4)
        flags[rows[chosen]] = words[value[chosen] // 4]
        chosen = code == OPTION_COMMENT
        for row, begin, count in zip(
            rows[chosen].tolist(), value[chosen].tolist(), length[chosen].tolist(), strict=True
        ):
            comments[row] = content[begin : begin + count].decode(errors="replace")
        position = value + (length + 3) // 4 * 4
    endless = np.zeros(len(starts), dtype=np.bool_)
    endless[rows] = True
    places = np.fromiter(comments, dtype=np.int64, count=len(comments))
    texts = pl.repeat("", len(starts), eager=True)
    if comments:
        texts = texts.scatter(places, list(comments.values()))
    return _Options(ids, flags & 3, texts, endless)


def _table(
    content: bytes,
    columns: dict[str, Any],
    starts: Offsets | None = None,
    captured: Offsets | None = None,
) -> pl.DataFrame:
    """Return the table of packets; without columns an empty one."""
    none = np.zeros(0, dtype=np.int64)
    parsed = parse_headers(
        content, none if starts is None else starts, none if captured is None else captured
    )
    own = [pl.Series(name, columns.get(name, []), dtype=dtype) for name, dtype in OWN.items()]
    return pl.DataFrame([*own, *(column.alias(name) for name, column in parsed.items())])
