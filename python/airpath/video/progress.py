# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A line on the terminal that says how far a command is."""

from __future__ import annotations

import sys
import time

_BEGIN_SECONDS = 2.0
_EVERY_SECONDS = 0.5


class Progress:
    """A line on standard error, where that is a terminal, from two seconds on."""

    def __init__(self) -> None:
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + _BEGIN_SECONDS
        self._shown = False

    def tell(self, text: str) -> None:
        """Show a text in place of the last one, if some time has passed since."""
        now = time.monotonic()
        if self._shows and now >= self._next:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._next, self._shown = now + _EVERY_SECONDS, True

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
