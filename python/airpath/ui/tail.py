# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The rows that an active run adds to a log, as they come.

A log of an active run is an Arrow stream, to which whole messages are added. What has been read is
not read again: each look reads the new messages only. When the run ends, the engine puts an Arrow
file in the place of the stream, or makes a file of the stream by another beginning; the messages
stay where they are in what is open here, until the end mark.
"""

from __future__ import annotations

import io
import os
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import polars as pl

from airpath.arrow import CONTINUATION, END_OF_STREAM, FILE_MAGIC
from airpath.files import open_plain
from airpath.flatbuffer import (
    DICTIONARY_BATCH,
    RECORD_BATCH,
    DamagedError,
    Table,
    body_length,
    check_message,
)

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES_AT_ONCE = 1_000_000
"""Size of what one look reads at most; the rest comes with the next. The memory that a follower
takes grows with it: 60 MB for a look at 8 MB."""
MOST_MESSAGE_BYTES = 8_000_000
"""Maximum size of one message, which is read as a whole."""


class NoTailError(Exception):
    """A log is no Arrow stream, or is damaged."""


@dataclass
class Tail:
    """An open log, and the place up to which it was read."""

    path: Path
    _descriptor: int
    position: int = 0
    """Place in the log up to which it was read."""
    _schema: bytes = b""
    _dictionaries: list[bytes] = field(default_factory=list)
    _complete: pl.DataFrame | None = None
    ended: bool = False
    """True once all rows were read and no more can come."""
    behind: bool = False
    """True if more was there at the last look than it read."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a log.

        Raises:
            OSError: it is not there, or cannot be read.
            NoTailError: it is no Arrow log.

        """
        descriptor = open_plain(path)
        tail = cls(path, descriptor)
        try:
            tail._look_for_file()
        except NoTailError:
            tail.close()
            raise
        return tail

    def _look_for_file(self) -> None:
        """Read the log as a whole if its run has ended, and there is a file."""
        if os.pread(self._descriptor, len(FILE_MAGIC), 0) != FILE_MAGIC:
            return
        try:
            self._complete = pl.read_ipc(self.path)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise NoTailError(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Close the log."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fork(self) -> Self:
        """Return another reader of the same log, which goes on from here."""
        return replace(
            self, _descriptor=os.dup(self._descriptor), _dictionaries=[*self._dictionaries]
        )

    def new_rows(self, until: int | None = None) -> pl.DataFrame:
        """Return the rows that came since the last look.

        Args:
            until: the place of a message beyond which nothing is read.

        Raises:
            NoTailError: the log is damaged.

        """
        if self.position == 0 and not self.ended:
            self._look_for_file()
        if self._complete is not None:
            frame, self._complete, self.ended = self._complete, None, True
            return frame
        try:
            for size in (MOST_BYTES_AT_ONCE, MOST_MESSAGE_BYTES):
                most = size if until is None else min(size, max(0, until - self.position))
                block = os.pread(self._descriptor, most, self.position)
                self.behind = len(block) == size
                end, batches = self._messages(block)
                if end or not self.behind:
                    break
        except DamagedError as error:
            raise NoTailError(f"{self.path}: at byte {self.position}: {error}") from error
        self.behind &= end > 0
        self.position += end
        if not batches or not self._schema:
            return pl.DataFrame()
        whole = io.BytesIO(b"".join((self._schema, *self._dictionaries, *batches, END_OF_STREAM)))
        try:
            return pl.read_ipc_stream(whole, use_pyarrow=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise NoTailError(f"{self.path}: {error}") from error

    def _messages(self, block: bytes) -> tuple[int, list[bytes]]:
        """Return the end of the last complete message of a block, and its batches of rows."""
        position = 0
        batches: list[bytes] = []
        while position + 8 <= len(block):
            if block[position : position + 4] != CONTINUATION:
                raise DamagedError("no message begins there")
            (metadata_length,) = struct.unpack_from("<i", block, position + 4)
            if metadata_length == 0:
                self.ended = True
                return position + 8, batches
            body = position + 8 + metadata_length
            if metadata_length < 0 or body > len(block):
                break
            metadata = block[position + 8 : body]
            length = body_length(metadata)
            if not 0 <= length <= len(block) - body:
                if position == 0 and len(block) == MOST_MESSAGE_BYTES:
                    raise DamagedError(f"a message is longer than {MOST_MESSAGE_BYTES:,} bytes")
                break
            check_message(metadata, block, body, length)
            message = block[position : body + length]
            kind = Table.root(metadata).number(1, "<B")
            if kind == RECORD_BATCH:
                batches.append(message)
            elif kind == DICTIONARY_BATCH:
                self._dictionaries.append(message)
            else:
                self._schema = message
            position = body + length
        return position, batches
