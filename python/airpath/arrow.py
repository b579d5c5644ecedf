# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Arrow logs of a run, whole or torn.

While a run is active its logs are Arrow *streams*; a clean end makes them Arrow *files*.
After a crash the stream stays, and its last message may be cut off anywhere: that tail is dropped,
and the reader is told how much it was. So is that of a file which lost its end, since a file is a
stream between two marks.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from airpath.files import open_plain
from airpath.flatbuffer import DamagedError, body_length, check_file, check_message

if TYPE_CHECKING:
    from pathlib import Path

FILE_MAGIC = b"ARROW1"
MOST_PADDING = 64
"""A file's mark is padded by zeros to 8 bytes, or to what else its writer aligns things to."""
CONTINUATION = b"\xff\xff\xff\xff"
END_OF_STREAM = CONTINUATION + b"\x00\x00\x00\x00"


class ArrowLogError(Exception):
    """A log is not Arrow at all, or damaged elsewhere than at its end."""


@dataclass(frozen=True)
class ArrowLog:
    """The rows of one log."""

    frame: pl.DataFrame
    """All rows of all complete record batches."""

    torn_bytes: int
    """Length of the incomplete tail that was left out; 0 for a log that was ended properly."""

    clean_end: bool
    """True if the log's writer ended it: false while a run is active, and after a crash."""

    torn_file: bool = False
    """True for an Arrow file without its end: the writer had ended it, and it was cut since."""


def read_arrow_log(path: Path) -> ArrowLog:
    """Read a log in the Arrow file or stream format.

    Raises:
        ArrowLogError: the content is not Arrow, or claims what is not in it.
        OSError: the file cannot be read.

    """
    with os.fdopen(open_plain(path), "rb") as file:
        size = file.seek(0, io.SEEK_END)
        try:
            log = _read_of(file, size, path)
        except ArrowLogError:
            if file.seek(0, io.SEEK_END) == size:
                raise
        else:
            if not log.torn_file or file.seek(0, io.SEEK_END) == size:
                return log
        # Its writer has turned it from a stream into a file meanwhile.
        return _read_of(file, file.seek(0, io.SEEK_END), path)


def _read_of(file: io.BufferedReader, size: int, path: Path) -> ArrowLog:
    """Read the first bytes of an open log."""
    if size == 0:
        return ArrowLog(pl.DataFrame(), torn_bytes=0, clean_end=False)
    with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
        try:
            if content[: len(FILE_MAGIC)] != FILE_MAGIC:
                return _read_stream(content, path)
            if content[-len(FILE_MAGIC) :] == FILE_MAGIC:
                check_file(content)
                frame = pl.read_ipc(path)
                return ArrowLog(frame, torn_bytes=0, clean_end=True)
            return _read_stream(content, path, torn_file=True)
        except DamagedError as error:
            message = f"{path}: damaged: it has {error}"
            raise ArrowLogError(message) from error
        # The reader panics over some kinds of damage.
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            said = next(iter(str(error).splitlines()), type(error).__name__)
            message = f"{path}: not a readable Arrow log: {said:.200}"
            raise ArrowLogError(message) from error


def _begin_of_file(content: mmap.mmap) -> int:
    """Return where the stream in an Arrow file begins, behind the padded mark."""
    padded = content[len(FILE_MAGIC) : MOST_PADDING]
    return len(FILE_MAGIC) + len(padded) - len(padded.lstrip(b"\0"))


def _read_stream(content: mmap.mmap, path: Path, *, torn_file: bool = False) -> ArrowLog:
    begin = _begin_of_file(content) if torn_file else 0
    start = content[begin : begin + len(CONTINUATION)]
    if start != CONTINUATION[: len(start)]:
        message = f"{path}: neither an Arrow file nor an Arrow stream"
        raise ArrowLogError(message)
    extent = _measure_stream(content, begin)
    if not extent.messages:  # not even the schema
        return ArrowLog(pl.DataFrame(), len(content), clean_end=False, torn_file=torn_file)
    whole = io.BytesIO()
    whole.write(memoryview(content)[begin : extent.end])
    whole.write(END_OF_STREAM)
    whole.seek(0)
    frame = pl.read_ipc_stream(whole, use_pyarrow=False)
    ended = extent.ended and not torn_file
    torn_bytes = 0 if ended else len(content) - extent.end
    return ArrowLog(frame, torn_bytes, clean_end=ended, torn_file=torn_file)


@dataclass(frozen=True)
class _StreamExtent:
    end: int
    """Offset of the first byte that belongs to no complete message."""
    messages: int
    ended: bool
    """True if the end-of-stream mark was found."""


def _measure_stream(content: mmap.mmap, begin: int) -> _StreamExtent:
    """Walk over the messages of a stream from its beginning, as far as they are complete.

    Raises:
        DamagedError: a complete message claims what is not in it.

    """
    size = len(content)
    position = begin
    messages = 0
    while position + 8 <= size:
        if content[position : position + 4] != CONTINUATION:
            break
        (metadata_length,) = struct.unpack_from("<i", content, position + 4)
        if metadata_length == 0:
            return _StreamExtent(position, messages, ended=True)
        metadata_start = position + 8
        body_start = metadata_start + metadata_length
        if metadata_length < 0 or body_start > size:
            break
        try:
            length = body_length(content[metadata_start:body_start])
        except DamagedError:
            break
        if not 0 <= length <= size - body_start:
            break
        try:
            check_message(content[metadata_start:body_start], content, body_start, length)
        except DamagedError as error:
            message = f"at byte {position} {error}"
            raise DamagedError(message) from None
        messages += 1
        position = body_start + length
    return _StreamExtent(position, messages, ended=False)
