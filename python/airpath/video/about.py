# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Notes beside a bitstream (``FILE.json``), which a bare bitstream has no room for.

``airpath video make`` notes codec, size and frame rate. ``airpath video receive`` also notes the
frames: RTP time, place in the file, packets, arrival.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from airpath.files import read_bytes, write_whole
from airpath.jsontext import parse_json
from airpath.video.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX = ".json"
RTP_HERTZ = 90_000
"""Clock of RTP times of video (RFC 3551, section 5)."""
_MOST_BYTES = 200_000_000


class Frame(NamedTuple):
    """A frame in a received bitstream."""

    rtp_time: int
    """In units of 1/90000 s since the first frame that was sent."""
    offset_bytes: int
    length_bytes: int
    packets: int
    """Number of its packets that were used."""
    arrived_ns: int
    """Arrival of its last packet, since the first packet of the stream."""


def beside(file: Path) -> Path:
    """Return the path of the notes about a bitstream."""
    return Path(f"{file}{SUFFIX}")


def write(file: Path, notes: Mapping[str, Any]) -> None:
    """Write the notes about a bitstream.

    Raises:
        OSError: they cannot be written.

    """
    write_whole(beside(file), json.dumps(notes, indent=1) + "\n")


def read(file: Path) -> dict[str, Any] | None:
    """Return the notes about a bitstream, or None if there are none.

    Raises:
        VideoError: they are damaged.
        OSError: they cannot be read.

    """
    path = beside(file)
    try:
        notes = parse_json(read_bytes(path, _MOST_BYTES))
    except FileNotFoundError:
        return None
    except ValueError as error:
        message = f"{path} is damaged: {error}; remove it, or receive the video again"
        raise FileError(message) from error
    if not isinstance(notes, dict):
        message = f"{path} is damaged: it is no JSON object; remove it, or receive the video again"
        raise FileError(message)
    return notes


def frames_per_second(notes: Mapping[str, Any] | None, file: Path) -> float | None:
    """Return the frame rate in the notes, or None if there is none.

    Raises:
        VideoError: it is no frame rate.

    """
    value = (notes or {}).get("frames_per_second")
    if value is None:
        return None
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 < value <= 1000:
        message = f"{beside(file)} is damaged: frames_per_second is {value!r}"
        raise FileError(message)
    return float(value)


def frames(notes: Mapping[str, Any] | None, file: Path, length_bytes: int) -> list[Frame] | None:
    """Return the frames in the notes, or None if they have none.

    Args:
        notes: as read.
        file: the bitstream.
        length_bytes: its length, within which all frames lie.

    Raises:
        VideoError: they are damaged, or belong to another file.

    """
    rows = (notes or {}).get("frames")
    if not isinstance(rows, list):
        return None
    found = []
    for number, row in enumerate(rows):
        whole = isinstance(row, dict) and all(
            isinstance(row.get(name), int) and row[name] >= 0 for name in Frame._fields
        )
        if not whole or row["offset_bytes"] + row["length_bytes"] > length_bytes:
            message = f"{beside(file)} does not fit {file}: frame {number}"
            raise FileError(message)
        found.append(Frame(*(row[name] for name in Frame._fields)))
    return found
