# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Claims of Arrow files' messages, compared with the bytes that are there.

An Arrow reader believes these numbers, and makes room for what they promise. Only as much of the
format of flatbuffers is read here as is needed to find them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap

    Bytes = bytes | mmap.mmap

DICTIONARY_BATCH, RECORD_BATCH = 2, 3
MOST_ROWS_PER_BYTE = 8
"""A column of bits."""
MOST_EXPANSION = 1000
"""Maximum ratio of decompression; text of a log becomes 20 times as long."""
SMALL = 1 << 16
"""A buffer of so many bytes may be of a single repeated value, which compresses better."""


class DamagedError(Exception):
    """A message claims what cannot be; the message says what."""


class Table:
    """A table of a flatbuffer: fields by number.

    It begins with the distance back to its vtable, which lists the place of each field.
    """

    def __init__(self, content: Bytes, at: int) -> None:
        """Look at the table that begins at a byte."""
        self.content = content
        self.at = at
        self.vtable = at - _read("<i", content, at)
        self.size = _read("<H", content, self.vtable)

    @classmethod
    def root(cls, content: Bytes) -> Table:
        """Return the outermost table of a buffer."""
        return cls(content, _read("<I", content, 0))

    def place(self, number: int) -> int:
        """Return where a field stands; 0 for one that was left out."""
        slot = 4 + 2 * number
        if slot + 2 > self.size:
            return 0
        distance = _read("<H", self.content, self.vtable + slot)
        return self.at + distance if distance else 0

    def number(self, number: int, kind: str) -> int:
        """Return a field that is a number of a type of ``struct``."""
        at = self.place(number)
        return _read(kind, self.content, at) if at else 0

    def table(self, number: int) -> Table | None:
        """Return a field that is a table."""
        at = self.place(number)
        return Table(self.content, at + _read("<I", self.content, at)) if at else None

    def vector(self, number: int, layout: str) -> list[tuple[int, ...]]:
        """Return a field that is a list of structures."""
        at = self.place(number)
        if not at:
            return []
        at += _read("<I", self.content, at)
        count = _read("<I", self.content, at)
        size = struct.calcsize(layout)
        if at + 4 + count * size > len(self.content):
            message = f"a list of {count} entries is longer than what holds it"
            raise DamagedError(message)
        entries = self.content[at + 4 : at + 4 + count * size]
        return list(struct.iter_unpack(layout, entries))


def _read(kind: str, content: Bytes, at: int) -> int:
    if at < 0:
        message = "a place before its beginning"
        raise DamagedError(message)
    try:
        return int(struct.unpack_from(kind, content, at)[0])
    except struct.error:
        message = "a place beyond its end"
        raise DamagedError(message) from None


def body_length(metadata: bytes) -> int:
    """Return the length of what follows a message's metadata.

    Raises:
        DamagedError: the metadata cannot be read.

    """
    return Table.root(metadata).number(3, "<q")


def check_message(metadata: bytes, content: Bytes, body: int, length: int) -> None:
    """Compare a message with its body.

    Args:
        metadata: the message's own.
        content: what holds the body.
        body: where that begins.
        length: its length.

    Raises:
        DamagedError: the message claims more than there is.

    """
    message = Table.root(metadata)
    kind, header = message.number(1, "<B"), message.table(2)
    if header is not None and kind == DICTIONARY_BATCH:
        header = header.table(1)
    elif kind != RECORD_BATCH:
        return
    if header is None:
        text = "a batch without content"
        raise DamagedError(text)
    most = MOST_ROWS_PER_BYTE * length
    compressed = header.table(3) is not None
    if compressed:
        most *= MOST_EXPANSION
    rows = header.number(0, "<q")
    if not 0 <= rows <= most:
        text = f"a batch of {rows} rows in {length} bytes"
        raise DamagedError(text)
    for count, nulls in header.vector(1, "<qq"):
        if not 0 <= nulls <= count <= most:
            text = f"a column of {count} values, {nulls} of them missing, in {length} bytes"
            raise DamagedError(text)
    for offset, size in header.vector(2, "<qq"):
        if offset < 0 or size < 0 or offset + size > length:
            text = f"{size} bytes from byte {offset} on of {length} bytes"
            raise DamagedError(text)
        if compressed and size >= 8:
            whole = _read("<q", content, body + offset)
            if whole > max(SMALL, MOST_EXPANSION * size):
                text = f"{size} compressed bytes that shall become {whole}"
                raise DamagedError(text)


def check_file(content: Bytes) -> None:
    """Check the messages that the footer of an Arrow file lists.

    Args:
        content: the file, which ends with the mark of such files.

    Raises:
        DamagedError: it lists what is no message, or one that claims more than there is.

    """
    end = len(content) - 10
    length = _read("<i", content, end)
    if not 0 < length <= end:
        text = f"a footer of {length} bytes"
        raise DamagedError(text)
    footer = Table.root(content[end - length : end])
    for number in (2, 3):
        for offset, before, _, body in footer.vector(number, "<qiiq"):
            begin = offset + before
            if offset < 0 or before < 8 or body < 0 or begin + body > end:
                text = f"a batch from byte {offset} on in its list of contents, which cannot be"
                raise DamagedError(text)
            metadata = content[offset + 8 : begin]
            try:
                check_message(metadata, content, begin, min(body, body_length(metadata)))
            except DamagedError as error:
                text = f"at byte {offset} {error}"
                raise DamagedError(text) from None
