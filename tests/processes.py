# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Processes that tests look at: their children, and the end of those that somebody else started."""

from __future__ import annotations

import psutil


def children(pid: int) -> list[int]:
    """Return the children of a process, the oldest first; none if the process has ended."""
    try:
        found = psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []
    return [child.pid for child in sorted(found, key=lambda one: (one.create_time(), one.pid))]


def has_ended(pid: int) -> bool:
    """Say whether a process has ended, be it that nobody has waited for it."""
    try:
        return psutil.Process(pid).status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return True
