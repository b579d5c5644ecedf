"""Arrow logs of a run, whole or torn.

While a run goes on its logs are Arrow *streams*; a clean end rewrites them as Arrow *files*. After
a crash the stream stays, and its last message may be cut off anywhere: that tail is dropped, and
the reader is told how much it was. So is that of a file which lost its end, since a file is a
stream between two marks.
"""

from __future__ import annotations

import io
import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

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
    """Whether the log's writer ended it: false while a run goes on, and after a crash."""

    torn_file: bool = False
    """Whether it is an Arrow file without its end: the writer had ended it, and cut since."""


def read_arrow_log(path: Path) -> ArrowLog:
    """Read a log in the Arrow file or stream format.

    Raises:
        ArrowLogError: the content is not Arrow.
        OSError: the file cannot be read.

    """
    with path.open("rb") as file:
        if file.seek(0, io.SEEK_END) == 0:
            return ArrowLog(pl.DataFrame(), torn_bytes=0, clean_end=False)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                if content[: len(FILE_MAGIC)] != FILE_MAGIC:
                    return _read_stream(content, path)
                if content[-len(FILE_MAGIC) :] == FILE_MAGIC:
                    frame = pl.read_ipc(path)
                    return ArrowLog(frame, torn_bytes=0, clean_end=True)
                return _read_stream(content, path, torn_file=True)
            # The reader panics over some kinds of damage.
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                message = f"{path}: not a readable Arrow log: {error}"
                raise ArrowLogError(message) from error


def _read_stream(content: mmap.mmap, path: Path, *, torn_file: bool = False) -> ArrowLog:
    begin = 0
    if torn_file:
        padded = content[len(FILE_MAGIC) : MOST_PADDING]
        begin = len(FILE_MAGIC) + len(padded) - len(padded.lstrip(b"\0"))
    start = content[begin : begin + len(CONTINUATION)]
    if start != CONTINUATION[: len(start)]:
        message = f"{path}: neither an Arrow file nor an Arrow stream"
        raise ArrowLogError(message)
    extent = _measure_stream(content, begin)
    if extent.messages == 0:  # not even the schema
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
    """Whether the end-of-stream mark was found."""


def _measure_stream(content: mmap.mmap, begin: int) -> _StreamExtent:
    """Walk over the messages of a stream from its beginning, as far as they are complete."""
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
            end = body_start + _body_length(content[metadata_start:body_start])
        except struct.error:  # damaged
            break
        if not body_start <= end <= size:
            break
        position = end
        messages += 1
    return _StreamExtent(position, messages, ended=False)


def _body_length(metadata: bytes) -> int:
    """Return the field bodyLength of a Message flatbuffer, in bytes.

    A flatbuffer's table begins with the distance back to its vtable, which lists the place of
    each field by its number: here 0 version, 1 and 2 the header's type and value, 3 bodyLength.
    """
    (table,) = struct.unpack_from("<I", metadata, 0)
    (distance,) = struct.unpack_from("<i", metadata, table)
    vtable = table - distance
    (vtable_size,) = struct.unpack_from("<H", metadata, vtable)
    slot = 4 + 2 * 3
    if slot + 2 > vtable_size:
        return 0
    (field,) = struct.unpack_from("<H", metadata, vtable + slot)
    if field == 0:  # a field left at its default
        return 0
    (length,) = struct.unpack_from("<q", metadata, table + field)
    return int(length)
