# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Processes that go on when the page's server dies: own session, no input, output in a file."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONSOLE = "-console.txt"
"""End of the name of the file with what the programs of a run or an experiment print."""


def start(
    words: Sequence[str], console: Path, folder: Path, *, again: bool
) -> subprocess.Popen[bytes]:
    """Start a program.

    Args:
        words: its command.
        console: the file for its output.
        folder: its working directory.
        again: True if the file may exist, and is written anew then.

    Raises:
        OSError: the file cannot be written, or the program not started.

    """
    existing = os.O_TRUNC if again else os.O_EXCL
    flags = os.O_WRONLY | os.O_CREAT | existing | os.O_NOFOLLOW | os.O_CLOEXEC
    output = os.open(console, flags, 0o644)
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    finally:
        os.close(output)
