# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results of a store for commands that read: fetched into the mirror, which they read."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.store.errors import StoreError
from airpath.store.mirror import Mirror
from airpath.store.url import Url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOLD_AFTER_S = 2.0
BETWEEN_TOLD_S = 0.2
BETWEEN_LINES_S = 10.0
"""Pause where standard error is no terminal."""


def fetched(places: Sequence[Path | Url], command: str) -> list[Path]:
    """Return the folders that places name; those of stores are fetched first.

    Args:
        places: folders, and URLs of stores.
        command: the command, for its messages.

    Raises:
        MissingExtraError: no package for such URLs is installed.
        OSError: a store cannot be read, or holds nothing there.

    """
    return [_fetch(one, command) if isinstance(one, Url) else one for one in places]


def _fetch(url: Url, command: str) -> Path:
    mirror = Mirror(url)
    with taken(mirror) as mine:
        if not mine:
            print(
                f"airpath {command}: airpath run writes to {url} at this moment; shown is what it "
                f"has so far",
                file=sys.stderr,
            )
            return mirror.folder
        progress = Progress(f"airpath {command}: fetching {url}")
        there = mirror.pull(progress.tell)
        progress.end()
    if not there:
        mirror.clear()
        raise StoreError(errno.ENOENT, "there is nothing; mend the bucket or the prefix", str(url))
    return mirror.folder


@contextmanager
def taken(mirror: Mirror) -> Iterator[bool]:
    """Hold the lock of a mirror in the block; yield whether it could be had."""
    path = mirror.folder / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


class Progress:
    """Says on stderr how many files have been fetched, once that has taken two seconds."""

    def __init__(self, what: str) -> None:
        """Begin."""
        self.what = what
        self.began = self.told = time.monotonic()
        self.is_terminal = sys.stderr.isatty()
        self.shown = False

    def tell(self, done: int, total: int) -> None:
        """Say so."""
        now = time.monotonic()
        pause = BETWEEN_TOLD_S if self.is_terminal else BETWEEN_LINES_S
        if now - self.began < TOLD_AFTER_S or (self.shown and now - self.told < pause):
            return
        self.told, self.shown = now, True
        line = f"{self.what}: {done:,} of {total:,} files"
        if self.is_terminal:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave nothing on the terminal."""
        if self.shown and self.is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
