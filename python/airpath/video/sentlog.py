# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The log of what a sender sent: one line of CSV a packet."""

from __future__ import annotations

import csv
import io
import zlib
from typing import TYPE_CHECKING, NamedTuple

from airpath.files import read_text, write_whole
from airpath.video.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Sent(NamedTuple):
    """A packet that was sent; the columns of the log."""

    sequence: int
    """Counted on beyond 16 bits."""
    rtp_time: int
    frame: int
    marker: int
    bytes: int
    """Of the RTP packet with its header."""
    sent_ns: int
    """Since 1970."""
    crc32: int
    """Of the RTP packet: a receiver finds damage by it that no checksum covers."""


def crc32(data: bytes) -> int:
    """Return the CRC of a packet, as the log has it."""
    return zlib.crc32(data)


def write(path: Path, packets: Iterable[Sent]) -> None:
    """Write a log.

    Raises:
        OSError: it cannot be written.

    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(Sent._fields)
    rows.writerows(packets)
    write_whole(path, text.getvalue())


def read(path: Path) -> dict[int, Sent]:
    """Return the packets of a log by their sequence numbers.

    Raises:
        VideoError: it is no such log.
        OSError: it cannot be read.

    """
    try:
        rows = csv.reader(io.StringIO(read_text(path)))
        if next(rows, None) != list(Sent._fields):
            message = f"{path} is no log of airpath video send: its first line names other columns"
            raise FileError(message)
        packets = [Sent(*(int(cell) for cell in row)) for row in rows]
    except (ValueError, TypeError, csv.Error) as error:
        message = f"{path} is damaged: {error}"
        raise FileError(message) from error
    return {packet.sequence: packet for packet in packets}
