# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The tidy long table: one row a value of a metric of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis import (
    fairness_metrics,
    flow_metrics,
    hop_times,
    link_metrics,
    program_metrics,
    quic_metrics,
)
from airpath.analysis.folders import Replication
from airpath.analysis.metric import KEYS, Metric, choose
from airpath.analysis.traffic import Traffic
from airpath.files import told
from airpath.run import NoUserError, Run, RunError, contradictions_named, load_run
from airpath.workers import WorkerError, as_done, processes_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

DECLARED_IN = (
    link_metrics,
    hop_times,
    flow_metrics,
    fairness_metrics,
    quic_metrics,
    program_metrics,
)
"""The modules whose import fills the registry."""

COLUMNS: dict[str, pl.DataType] = {
    "set": pl.String(),
    "run": pl.String(),
    "seed": pl.Int64(),
    "verdict": pl.String(),
    "flow": pl.String(),
    "direction": pl.String(),
    "hop": pl.String(),
    "metric": pl.String(),
    "value": pl.Float64(),
    "unit": pl.String(),
}
"""Columns of the table. ``flow``, ``direction`` and ``hop`` are empty where they do not apply;
``seed`` is null for a run that did not note one."""

VALUES = list(COLUMNS)[4:]
"""The columns that one run's values have: what comes before tells of the run."""


LEAST_RUNS = 40
"""With fewer runs than this for each process, starting another takes longer than it saves."""


@dataclass(frozen=True)
class Measurement:
    """Measured values of a run, or the reason for which there are none."""

    values: pl.DataFrame
    """As ``measure`` returns them; without rows if the run could not be read."""
    seed: int | None
    verdict: str
    """The run's, or "damaged" (see ``Run.damage``)."""
    notes: list[str]
    damage: list[str]
    failure: str
    """Reason for which the run could not be read; else empty."""


def measure(run: Run, metrics: Iterable[Metric] | None = None) -> pl.DataFrame:
    """Return flow, direction, hop, metric, value, unit of one run.

    What was not measured (no capture, no such packets) has no row.
    """
    traffic = Traffic(run)
    # A metric has a handful of values: as lists they cost less than as tables.
    rows: list[tuple[object, ...]] = []
    for metric in choose(None) if metrics is None else metrics:
        values = metric.compute(traffic)
        if values.is_empty():
            continue
        keys = [
            values[key].to_list() if key in values.columns else [""] * values.height for key in KEYS
        ]
        found = sorted(zip(*keys, values["value"].to_list(), strict=True), key=lambda row: row[:-1])
        rows += [
            (*row[:-1], metric.name, row[-1], metric.unit)
            for row in found
            if row[-1] is not None and math.isfinite(row[-1])
        ]
    return pl.DataFrame(rows, schema={name: COLUMNS[name] for name in VALUES}, orient="row")


def measure_folder(folder: Path, metrics: Sequence[Metric], user: str | None = None) -> Measurement:
    """Open a run and measure it, or one user of it.

    What keeps it from being read is told in ``failure``.

    Raises:
        NoUserError: the run has no such user.

    """
    try:
        run = load_run(folder)
        return _measured(run if user is None else run.of_user(user), metrics)
    except NoUserError:
        raise
    except (RunError, OSError) as error:
        # The run goes with what it has read: only its numbers are kept.
        nothing = pl.DataFrame(schema={name: COLUMNS[name] for name in VALUES})
        what = told(error) if isinstance(error, OSError) else str(error)
        return Measurement(nothing, None, "unknown", [], [], what)


def _measure_named(names: Sequence[str], user: str | None, folder: Path) -> Measurement:
    """Do as ``measure_folder`` in a worker, to which metrics go by name."""
    return measure_folder(folder, choose(names), user)


def _measure_apart(
    folders: Sequence[Path], metrics: Sequence[Metric], processes: int, user: str | None
) -> Iterator[tuple[int, Measurement]]:
    names = [one.name for one in metrics]
    try:
        yield from as_done(partial(_measure_named, names, user), folders, processes)
    except WorkerError as error:
        message = f"{folders[error.place]}: {error}; --jobs 1 measures without processes"
        raise RunError(message) from error


def _measured(run: Run, metrics: Sequence[Metric]) -> Measurement:
    with contradictions_named(run.directory):
        values = measure(run, metrics)
    seed = run.manifest.get("seed")
    # Seeds beyond what a column holds pair with nothing.
    seed = seed if isinstance(seed, int) and -(2**63) <= seed < 2**63 else None
    verdict = "damaged" if run.damage else run.verdict
    return Measurement(values, seed, verdict, list(run.notes), list(run.damage), "")


def frame(
    runs: Iterable[Replication | Run],
    metrics: Sequence[str] | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int, Replication], None] | None = None,
    notes: list[str] | None = None,
    problems: list[str] | None = None,
    user: str | None = None,
) -> pl.DataFrame:
    """Return the tidy long table of many runs, with the columns of ``COLUMNS``.

    The packets of one run at a time are in memory, in each process. The verdict of a run is
    "damaged" if files of it are not as they were written; it was measured as far as they go.

    Args:
        runs: what ``airpath.runs`` returns, or open runs, which are measured in this process.
        metrics: names, as ``choose`` takes them.
        jobs: processes that measure; by default as many as there are processors, where there are
            runs enough for them, and else none beside this one.
        progress: called for each run before it is measured, or with several processes once it has
            been, with the number of runs before it.
        notes: what readers must know of the runs' files is added here.
        problems: what is wrong with files of runs is added here, and a run that cannot be read is
            left out; without it such a run is an error.
        user: name of the only user to measure, of runs with several; by default all together.

    Raises:
        RunError: a run could not be read.
        NoUserError: a run has no such user.
        UnknownMetricError: a name is no metric's.

    """
    chosen = choose(metrics)
    places: list[Replication] = []
    found: dict[int, Measurement] = {}
    closed: list[int] = []
    told = 0

    def tell(place: Replication) -> None:
        nonlocal told
        if progress is not None:
            progress(told, place)
        told += 1

    for number, one in enumerate(runs):
        place = one if isinstance(one, Replication) else _alone(one)
        places.append(place)
        if isinstance(one, Replication):
            closed.append(number)
        else:
            tell(place)
            found[number] = _measured(one if user is None else one.of_user(user), chosen)
    processes = processes_for(len(closed), LEAST_RUNS, jobs)
    if processes > 1:
        folders = [places[number].directory for number in closed]
        for index, result in _measure_apart(folders, chosen, processes, user):
            tell(places[closed[index]])
            found[closed[index]] = result
    else:
        for number in closed:
            tell(places[number])
            found[number] = measure_folder(places[number].directory, chosen, user)
    parts = [pl.DataFrame(schema=COLUMNS)]
    for number, place in enumerate(places):
        result = found[number]
        if result.failure and problems is None:
            raise RunError(result.failure)
        if problems is not None:
            problems += [f"{place.directory}: {what}" for what in result.damage]
            problems += [f"{result.failure}; the run was left out"] if result.failure else []
        if notes is not None:
            told_of = [] if problems is None else result.damage
            notes += [f"{place.directory}: {note}" for note in result.notes if note not in told_of]
        parts.append(
            result.values.select(
                set=pl.lit(place.set_name),
                run=pl.lit(place.name),
                seed=pl.lit(result.seed, dtype=pl.Int64),
                verdict=pl.lit(result.verdict),
                **{name: pl.col(name) for name in VALUES},
            )
        )
    return pl.concat(parts)


def _alone(run: Run) -> Replication:
    folder = run.directory.resolve()
    return Replication(folder.parent.name, folder.name, run.directory)
