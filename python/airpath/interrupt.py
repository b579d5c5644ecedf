# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Ctrl-C in commands: silent, at any instant, with nothing left behind.

An exception that may come between any two steps finds its way into imports, callbacks and
destructors, which print it. So a command does not let the signal become one: the signal's handler
takes away what would stay behind, and has the process end by the same signal.

A program that imports this package gets ``KeyboardInterrupt`` as everywhere in Python: what is
noted here is also cleaned up where blocks end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_ends: dict[object, Callable[[], None]] = {}
"""Actions before the process ends, by whom they were noted."""

asked = threading.Event()
"""Set by a signal while ``noted`` has the command look for it."""


def arm() -> None:
    """Have signals end this process silently; for commands only."""
    for number in NUMBERS:
        # Ignored ones stay ignored, as in a script's background.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    for one in NUMBERS:
        signal.signal(one, signal.SIG_IGN)
    for clean in list(_ends.values()):
        with contextlib.suppress(Exception):
            clean()
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(2, b"\r\x1b[K")  # of a line that tells how far it was
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


@contextlib.contextmanager
def at_end(clean: Callable[[], None]) -> Iterator[None]:
    """Call something when a signal ends the process within the block; it must wait for nothing."""
    key = object()
    _ends[key] = clean
    try:
        yield
    finally:
        del _ends[key]


@contextlib.contextmanager
def cleaned(clean: Callable[[], None]) -> Iterator[None]:
    """Call something when the block ends, or when a signal ends the process within it."""
    with at_end(clean):
        try:
            yield
        finally:
            clean()


@contextlib.contextmanager
def unlinked(path: Path) -> Iterator[None]:
    """Delete a temporary file, if it is there, when the block ends or the process does."""

    def clean() -> None:
        with contextlib.suppress(OSError):
            path.unlink()

    with cleaned(clean):
        yield


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a temporary folder, which goes when the block ends or the process does."""
    holder = tempfile.TemporaryDirectory(prefix=prefix)
    with cleaned(holder.cleanup):
        yield Path(holder.name)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Keep Ctrl-C back in the block; processes started in it never hear of it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def noted(again: Callable[[], None]) -> Iterator[None]:
    """Have signals only set ``asked`` in the block, for one that looks for it.

    Args:
        again: called for each further signal.

    """

    def note(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            again()
        asked.set()

    with _handlers(note):
        asked.clear()
        yield


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Have signals raise ``KeyboardInterrupt`` in the block, for one that catches it."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handlers(interrupt):
        yield


@contextlib.contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number, was in before.items():
        if was is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)
