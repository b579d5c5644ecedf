# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Many runs measured together where they are alike: a query costs more than a small table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airpath.analysis.traffic import UnlikeError
from airpath.facts import CAPTURES, FILES
from airpath.run import CONTRADICTIONS, RunError, contradictions_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import polars as pl

    from airpath.run import Run

    Measure = Callable[[Sequence[Run]], list[pl.DataFrame]]

MOST_RUNS = 30
"""Runs of a batch: with more, a run costs no less."""

MOST_BYTES = 12_000_000
"""Size of the files of a batch's runs, which are in memory together; a larger run is by itself."""


def batches(folders: Sequence[Path]) -> list[list[int]]:
    """Return the places of folders in the sequence, parted into batches in their order."""
    found: list[list[int]] = []
    room = 0
    for place, folder in enumerate(folders):
        size = size_bytes(folder)
        if not found or size > room or len(found[-1]) == MOST_RUNS:
            found.append([])
            room = MOST_BYTES
        found[-1].append(place)
        room -= size
    return found


def size_bytes(folder: Path) -> int:
    """Return the size of all files of a run."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_size for entry in entries if entry.is_file())
    except OSError:  # told when the folder is read
        return 0


def measure_each(runs: Sequence[Run], together: Measure) -> list[pl.DataFrame | Exception]:
    """Return what was measured of each run, or the error that kept it from being measured.

    Args:
        runs: a batch.
        together: measures runs that are alike, and raises ``UnlikeError`` where they are not.

    """
    found: dict[int, pl.DataFrame | Exception] = {}
    for places in _alike(runs):
        try:
            tables = together([runs[place] for place in places]) if len(places) > 1 else []
        except (UnlikeError, RunError, OSError, *CONTRADICTIONS):
            # Whatever is wrong with one of them is told by that one alone.
            tables = []
        found |= zip(places, tables, strict=False)
        for place in places:
            if place not in found:
                found[place] = _measure_alone(runs[place], together)
    return [found[place] for place in range(len(runs))]


def _measure_alone(run: Run, together: Measure) -> pl.DataFrame | Exception:
    try:
        with contradictions_named(run.directory):
            return together([run])[0]
    except (RunError, OSError) as error:
        return error


def _alike(runs: Sequence[Run]) -> Iterable[list[int]]:
    """Return the places of runs that have the same logs, and are all of one user or of several."""
    groups: dict[tuple[bool, ...], list[int]] = {}
    for place, run in enumerate(runs):
        user = run.user or next(iter(run.users), "")
        names = [f"{user}-{name}" if user else name for name in CAPTURES]
        logs = [_has(run.directory / name) for name in (FILES["events"], *names)]
        groups.setdefault((run.tells_users, *logs), []).append(place)
    return groups.values()


def _has(log: Path) -> bool:
    try:
        return log.exists()
    except OSError:  # told when the log is read
        return False
