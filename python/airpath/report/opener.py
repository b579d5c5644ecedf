# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Opening the runs of a page, of which several parts need the same logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.analysis.together import size_bytes
from airpath.run import Run, load_run

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 128_000_000
"""Size of the files of all runs that are kept open; in memory they are about twice as large."""


class Opener:
    """Opens runs, and keeps the first ones open as long as their files are small.

    To another process it goes empty, and keeps nothing there: tasks come to any of them.
    """

    def __init__(self, most_bytes: int = 0) -> None:
        """Take the size of the files of all runs that are kept open; 0 for none."""
        self._room_bytes = most_bytes
        self._kept: dict[Path, Run] = {}

    def open(self, directory: Path) -> Run:
        """Return a run whose logs may have been read before.

        Raises:
            RunError: it cannot be read.

        """
        if directory in self._kept:
            return self._kept[directory]
        run = load_run(directory)
        size = size_bytes(directory)
        if size <= self._room_bytes:
            self._room_bytes -= size
            self._kept[directory] = run
        return run

    def __reduce__(self) -> tuple[type[Opener], tuple[()]]:
        """Pickle as one that keeps nothing."""
        return Opener, ()
