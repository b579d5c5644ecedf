# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Exit statuses of Python's commands: the engine declares them, and each failure has one.

An exception of Airpath with an exit status of its own has an attribute ``status``.
"""

from __future__ import annotations

import errno
import sys

from airpath.engine import EngineError
from airpath.extras import MissingExtraError
from airpath.facts import EXIT_STATUSES
from airpath.files import UnwritableError, told

DONE = EXIT_STATUSES["done"]
UNDONE = EXIT_STATUSES["undone"]
USAGE = EXIT_STATUSES["usage"]
NOT_TRUSTED = EXIT_STATUSES["not_trusted"]
DAMAGED = EXIT_STATUSES["damaged"]
UNWRITABLE = EXIT_STATUSES["unwritable"]
LACKING = EXIT_STATUSES["lacking"]
FAILED = EXIT_STATUSES["failed"]
INTERRUPTED = EXIT_STATUSES["interrupted"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors of writing alone."""

_OF_THE_NAME = frozenset(
    {
        errno.EACCES,
        errno.EFBIG,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENODEV,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EPERM,
    }
)
"""Errors of a file that is not what it was taken for, or is not this user's to read."""

_OF_THE_NETWORK = frozenset(
    {
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ETIMEDOUT,
    }
)
"""Errors of traffic that did not get through."""


def status_of(error: Exception) -> int:
    """Return the exit status of a command that an error ends."""
    own = getattr(error, "status", None)
    if isinstance(own, int):
        return own
    if isinstance(error, UnwritableError):
        return UNWRITABLE
    if isinstance(error, EngineError | MissingExtraError):
        return LACKING
    if isinstance(error, OSError):
        if error.errno in _FULL:
            return UNWRITABLE
        if error.errno in _OF_THE_NETWORK:
            return UNDONE
        return USAGE if error.errno in _OF_THE_NAME else FAILED
    return USAGE


def fail(command: str, error: Exception | str, status: int | None = None) -> int:
    """Tell an error of a command on stderr; return its exit status.

    Args:
        command: what follows ``airpath`` on the command line.
        error: the error, or a sentence about a mistake in what was typed.
        status: the exit status, if it is not that of the error.

    """
    text = told(error) if isinstance(error, OSError) else str(error)
    print(text if text.startswith("airpath") else f"airpath {command}: {text}", file=sys.stderr)
    if status is not None:
        return status
    return USAGE if isinstance(error, str) else status_of(error)
