"""Packet captures of a run: pcapng with packet ids and comments.

A reader of our own, because the ones at hand do not hand out the options of a packet block, and
those carry what joins a capture with the events: the PDU's id (epb_packetid) and the cause of a
drop (opt_comment).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.headers import PARSED_COLUMNS, parse_headers

if TYPE_CHECKING:
    from pathlib import Path

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

LINK = "link"
"""The interface of a capture whose packets tell by their direction where they were seen; earlier
captures have one interface for each such point."""

POINTS = ("drop", "rx", "tx")
"""Where a packet of no direction (0), an inbound (1) and an outbound (2) one was seen."""

NANOSECONDS_PER_SECOND = 1_000_000_000


class CaptureError(Exception):
    """A file is no pcapng capture, or one that this reader cannot read."""


@dataclass(frozen=True)
class Capture:
    """The packets of one capture file."""

    packets: pl.DataFrame
    """One row a packet, in the file's order: time_ns (since the Unix epoch), interface ("rx" from
    the endpoint into the link, "tx" from the link to the endpoint; "drop", only in a run that did
    not end well, for the place in time where the link dropped one), pdu (0 for a packet that never
    entered the link), length (bytes of the IP packet), comment, and the columns of
    ``headers.PARSED_COLUMNS``."""

    torn_bytes: int
    """Length of the incomplete block at the end that was left out; 0 normally."""


@dataclass
class _Interface:
    name: str
    ticks_per_second: int


def read_capture(path: Path) -> Capture:
    """Read a capture of raw IP packets.

    Raises:
        CaptureError: not pcapng, or of another link type.
        OSError: the file cannot be read.

    """
    content = path.read_bytes()
    scan = _Scan(content, path)
    end = scan.run()
    starts = np.asarray(scan.starts, dtype=np.int64)
    captured = np.asarray(scan.captured, dtype=np.int64)
    columns = {
        "time_ns": np.asarray(scan.times_ns, dtype=np.int64),
        "interface": pl.Series(scan.interfaces, dtype=pl.Categorical),
        "pdu": np.asarray(scan.ids, dtype=np.uint64),
        "length": np.asarray(scan.lengths, dtype=np.int64),
        "comment": pl.Series(scan.comments, dtype=pl.String),
        **parse_headers(content, starts, captured),
    }
    packets = pl.DataFrame(columns, schema_overrides=PARSED_COLUMNS)
    return Capture(packets, torn_bytes=len(content) - end)


class _Scan:
    """One walk over the blocks of a file, collecting what packets need, column by column."""

    def __init__(self, content: bytes, path: Path) -> None:
        self.content = content
        self.path = path
        self.order = "<"
        self.section: list[_Interface] = []
        self.starts: list[int] = []
        self.captured: list[int] = []
        self.times_ns: list[int] = []
        self.interfaces: list[str] = []
        self.ids: list[int] = []
        self.lengths: list[int] = []
        self.comments: list[str] = []

    def run(self) -> int:
        """Walk; return the offset behind the last complete block."""
        content = self.content
        position = 0
        if not content:
            return 0
        if content[:4] != struct.pack("<I", SECTION_HEADER)[: len(content)]:
            message = f"{self.path}: not a pcapng capture"
            raise CaptureError(message)
        while position + 12 <= len(content):
            (kind,) = struct.unpack_from(self.order + "I", content, position)
            if kind == SECTION_HEADER:
                self._begin_section(position)
            (length,) = struct.unpack_from(self.order + "I", content, position + 4)
            if length < 12 or length % 4 or position + length > len(content):
                break
            end_of_block = position + length
            # A block ends with its length once more: where the two differ, it is damaged.
            if content[position + 4 : position + 8] != content[end_of_block - 4 : end_of_block]:
                break
            if kind == ENHANCED_PACKET:
                self._packet(position + 8, position + length - 4)
            elif kind == INTERFACE_DESCRIPTION:
                self._interface(position + 8, position + length - 4)
            position += length
        return position

    def _begin_section(self, position: int) -> None:
        for order in "<>":
            if struct.unpack_from(order + "I", self.content, position + 8)[0] == BYTE_ORDER_MAGIC:
                self.order = order
                self.section = []
                return
        message = f"{self.path}: damaged pcapng section header at byte {position}"
        raise CaptureError(message)

    def _interface(self, start: int, end: int) -> None:
        if end - start < 8:
            message = f"{self.path}: an interface at byte {start} is too short; the file is damaged"
            raise CaptureError(message)
        (link_type,) = struct.unpack_from(self.order + "H", self.content, start)
        if link_type not in RAW_LINK_TYPES:
            message = (
                f"{self.path}: link type {link_type}; only raw IP captures "
                f"(link type 101) are understood"
            )
            raise CaptureError(message)
        interface = _Interface(name=f"if{len(self.section)}", ticks_per_second=1_000_000)
        for code, value in self._options(start + 8, end):
            if code == OPTION_INTERFACE_NAME:
                interface.name = value.decode(errors="replace")
            elif code == OPTION_TIME_RESOLUTION and value:
                exponent = value[0] & 0x7F
                interface.ticks_per_second = (2 if value[0] & 0x80 else 10) ** exponent
        self.section.append(interface)

    def _packet(self, start: int, end: int) -> None:
        if end - start < 20:
            message = f"{self.path}: a packet at byte {start} is too short; the file is damaged"
            raise CaptureError(message)
        index, high, low, captured, length = struct.unpack_from(
            self.order + "5I", self.content, start
        )
        if index >= len(self.section):
            message = f"{self.path}: a packet at byte {start} names an undeclared interface"
            raise CaptureError(message)
        interface = self.section[index]
        data = start + 20
        if captured > end - data:
            message = f"{self.path}: a packet at byte {start} contradicts itself; it is damaged"
            raise CaptureError(message)
        identity = 0
        comment = ""
        flags = 0
        for code, value in self._options(data + (captured + 3) // 4 * 4, end):
            if code == OPTION_PACKET_ID and len(value) == 8:
                (identity,) = struct.unpack(self.order + "Q", value)
            elif code == OPTION_COMMENT:
                comment = value.decode(errors="replace")
            elif code == OPTION_PACKET_FLAGS and len(value) == 4:
                (flags,) = struct.unpack(self.order + "I", value)
        point = interface.name
        if point == LINK:
            if flags & 3 >= len(POINTS):
                message = f"{self.path}: a packet at byte {start} has no valid direction"
                raise CaptureError(message)
            point = POINTS[flags & 3]
        ticks = (high << 32) | low
        if interface.ticks_per_second != NANOSECONDS_PER_SECOND:
            ticks = ticks * NANOSECONDS_PER_SECOND // interface.ticks_per_second
        self.starts.append(data)
        self.captured.append(captured)
        self.times_ns.append(ticks)
        self.interfaces.append(point)
        self.ids.append(identity)
        self.lengths.append(length)
        self.comments.append(comment)

    def _options(self, position: int, end: int) -> list[tuple[int, bytes]]:
        options = []
        while position + 4 <= end:
            code, length = struct.unpack_from(self.order + "HH", self.content, position)
            if code == OPTION_END:
                break
            position += 4
            options.append((code, self.content[position : position + length]))
            position += (length + 3) // 4 * 4
        return options
