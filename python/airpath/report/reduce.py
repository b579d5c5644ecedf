# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Parts of each run that a page keeps; its packets and events are let go.

A results folder may hold more than fits into memory.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.plots import courses
from airpath.plots.delay import one_way_delays
from airpath.plots.kinds import COURSES
from airpath.report.facts import Facts, facts_of
from airpath.report.opener import Opener
from airpath.report.values import values_of_runs
from airpath.run import DIRECTIONS, RunError, contradictions_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from airpath.plots.courses import Courses
    from airpath.run import Run

DELAY_POINTS = 300
"""Points of the distribution of a run's delays."""


@dataclass(frozen=True)
class Task:
    """Request for parts of one run."""

    directory: Path
    set_name: str
    delays: bool = False
    """True for the distribution of its delays."""
    course_ns: int = 0
    """Duration of its series; 0 for none."""
    also_measured: tuple[str, ...] = ()
    """Metrics beyond those that every page has."""
    opener: Opener = field(default_factory=Opener)


@dataclass
class Reduced:
    """Kept parts of one run."""

    facts: Facts
    values: pl.DataFrame
    """Metrics of it."""
    delays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """By direction, delays in ns at equal steps of their distribution function."""
    courses: Courses | None = None
    notes: list[str] = field(default_factory=list)
    """Notes on its files."""
    damage: list[str] = field(default_factory=list)
    """Those of the notes that tell of damage."""


def reduce_runs(tasks: Sequence[Task]) -> list[Reduced]:
    """Read the runs of a batch, which have the same metrics."""
    runs = [task.opener.open(task.directory) for task in tasks]
    values = values_of_runs(runs, tasks[0].also_measured)
    return [_reduced(*each) for each in zip(tasks, runs, values, strict=True)]


def _reduced(task: Task, run: Run, values: pl.DataFrame) -> Reduced:
    reduced = Reduced(facts_of(run, values), values)
    with _noted(run):
        if task.delays:
            reduced.delays = delays_of(run)
    with _noted(run):
        if task.course_ns:
            reduced.courses = courses.courses_of(run, task.set_name, task.course_ns, list(COURSES))
    reduced.notes, reduced.damage = (list(dict.fromkeys(told)) for told in (run.notes, run.damage))
    return reduced


@contextlib.contextmanager
def _noted(run: Run) -> Iterator[None]:
    try:
        with contradictions_named(run.directory):
            yield
    except RunError as error:
        run.notes.append(str(error))


def delays_of(run: Run) -> dict[str, NDArray[np.float64]]:
    """Return by direction the one-way delays in ns at equal steps of their distribution."""
    table = one_way_delays(run).drop_nulls("delay_ns")
    shares = np.linspace(0, 1, DELAY_POINTS, dtype=np.float64)
    found = {}
    for direction in DIRECTIONS:
        delays = table.filter(pl.col("direction") == direction)["delay_ns"].to_numpy()
        if len(delays):
            found[direction] = np.quantile(delays, shares, method="inverted_cdf").astype(np.float64)
    return found
