# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios in hidden files beside the files that they name, for as long as the engine reads them.

The server locks such a file while it stands. A server that was killed leaves the file without a
lock: the next one removes it, unless a run still has it on its command line.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX, SUFFIX = ".airpath-ui-", ".toml"
LEAST_AGE_S = 1.0
"""Age from which a file without a lock is left over: a new one is locked soon after it is made."""


@dataclass
class Scratch:
    """A scenario in a hidden file of its folder."""

    path: Path
    _descriptor: int

    @classmethod
    def write(cls, text: str, folder: Path) -> Self:
        """Write a scenario beside the files that it names.

        Raises:
            UiError: it cannot be written.

        """
        place = folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())
        try:
            descriptor, name = tempfile.mkstemp(suffix=SUFFIX, prefix=PREFIX, dir=place)
        except OSError as error:
            raise UiError(f"{place}: {error.strerror or error}", 507) from error
        made = cls(Path(name), descriptor)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            made.remove()
            raise UiError(f"{place}: {error.strerror or error}", 507) from error
        return made

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def remove_leftovers(folders: Iterable[Path]) -> list[Path]:
    """Remove the files in some folders that servers left when they were killed; return them."""
    found = [path for folder in {*folders, Path(tempfile.gettempdir())} for path in _in(folder)]
    if not found:
        return []
    used = _on_command_lines()
    return [path for path in found if os.fsencode(path) not in used and _removed(path)]


def _in(folder: Path) -> list[Path]:
    try:
        return [*folder.glob(f"{PREFIX}*{SUFFIX}")]
    except OSError:
        return []


def _on_command_lines() -> set[bytes]:
    """Return the words of the commands of all processes."""
    words: set[bytes] = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words.update(file.read_bytes().split(b"\0"))
    return words


def _removed(path: Path) -> bool:
    """Remove a file if it is this user's, and nobody holds its lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
        mine = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
        if not mine or time.time() - about.st_mtime < LEAST_AGE_S:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
