# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Output of commands: control characters of names and messages are shown as text.

Names and messages come from other hosts and from files, too. They must neither move the cursor nor
give the terminal commands.
"""

from __future__ import annotations

import io
import re
import sys

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than ends of lines and tabs."""

_OF_PROGRESS = re.compile(r"\r(\x1b\[2?K)?")
"""Beginning of a line of progress, which is written over the one before."""


def visible(text: str) -> str:
    r"""Return text with its control characters as ``\u001b``, as JSON and TOML write them."""
    return _HIDDEN.sub(lambda hidden: f"\\u{ord(hidden[0]):04x}", text)


class Visible(io.TextIOWrapper):
    """A stream of text that shows control characters as text."""

    def write(self, text: str) -> int:
        """Write text; return its length."""
        progress = _OF_PROGRESS.match(text)
        start = progress.end() if progress else 0
        super().write(text[:start] + visible(text[start:]))
        return len(text)


def show_control_characters() -> None:
    """Have standard output and error show control characters as text from here on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # Whoever has put something else there, such as a test, reads it.
        if type(stream) is not io.TextIOWrapper:
            continue
        encoding, errors = stream.encoding, stream.errors
        by_line, at_once = stream.line_buffering, stream.write_through
        shown = Visible(
            *(stream.detach(), encoding, errors), line_buffering=by_line, write_through=at_once
        )
        setattr(sys, name, shown)
        setattr(sys, f"__{name}__", shown)
