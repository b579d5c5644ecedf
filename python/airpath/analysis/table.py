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
from airpath.analysis.together import batches, measure_each
from airpath.analysis.traffic import RUN, Traffic
from airpath.files import told
from airpath.run import Run, RunError, contradictions_named, load_run
from airpath.workers import WorkerError, as_done, least_runs, processes_for

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
    (values,) = measure_together([run], choose(None) if metrics is None else metrics)
    return values


def measure_together(runs: Sequence[Run], metrics: Iterable[Metric]) -> list[pl.DataFrame]:
    """Return of each of some runs that are alike what ``measure`` returns of it.

    Raises:
        UnlikeError: they have to be measured each by itself.

    """
    traffic = Traffic(*runs)
    # A metric has a handful of values: as lists they cost less than as tables.
    rows: list[list[tuple[object, ...]]] = [[] for _ in runs]
    for metric in metrics:
        values = metric.compute(traffic)
        if values.is_empty():
            continue
        keys = [
            values[key].to_list() if key in values.columns else [""] * values.height for key in KEYS
        ]
        places = values[RUN].to_list() if traffic.by else [0] * values.height
        columns = zip(places, *keys, values["value"].to_list(), strict=True)
        for place, *key, value in sorted(columns, key=lambda row: row[:-1]):
            if value is not None and math.isfinite(value):
                rows[place].append((*key, metric.name, value, metric.unit))
    schema = {name: COLUMNS[name] for name in VALUES}
    return [pl.DataFrame(of_run, schema=schema, orient="row") for of_run in rows]


def measure_folders(
    folders: Sequence[Path], metrics: Sequence[Metric], user: str | None = None
) -> list[Measurement]:
    """Open the runs of a batch and measure each, or one user of it.

    What keeps one from being read is told in its ``failure``.

    Raises:
        NoUserError: a run has no such user.

    """
    found: list[Measurement | Run] = []
    for folder in folders:
        try:
            run = load_run(folder)
        except (RunError, OSError) as error:
            found.append(_failed(error))
        else:
            found.append(run if user is None else run.of_user(user))
    runs = [one for one in found if isinstance(one, Run)]
    # The runs go with what they have read: only their numbers are kept.
    values = iter(measure_each(runs, partial(measure_together, metrics=metrics)))
    return [_told(one, next(values)) if isinstance(one, Run) else one for one in found]


def _failed(error: Exception) -> Measurement:
    nothing = pl.DataFrame(schema={name: COLUMNS[name] for name in VALUES})
    what = told(error) if isinstance(error, OSError) else str(error)
    return Measurement(nothing, None, "unknown", [], [], what)


def _measure_named(
    names: Sequence[str], user: str | None, folders: Sequence[Path]
) -> list[Measurement]:
    """Do as ``measure_folders`` in a worker, to which metrics go by name."""
    return measure_folders(folders, choose(names), user)


def _measure_apart(
    folders: Sequence[Sequence[Path]],
    metrics: Sequence[Metric],
    processes: int,
    user: str | None,
) -> Iterator[tuple[int, list[Measurement]]]:
    names = [one.name for one in metrics]
    try:
        yield from as_done(partial(_measure_named, names, user), folders, processes)
    except WorkerError as error:
        batch = folders[error.place]
        which = f"{batch[0]} to {batch[-1]}" if len(batch) > 1 else str(batch[0])
        message = f"{which}: {error}; --jobs 1 measures without processes"
        raise RunError(message) from error


def _measured(run: Run, metrics: Sequence[Metric]) -> Measurement:
    with contradictions_named(run.directory):
        return _told(run, measure(run, metrics))


def _told(run: Run, values: pl.DataFrame | Exception) -> Measurement:
    if isinstance(values, Exception):
        return _failed(values)
    seed = run.manifest.get("seed")
    # Seeds beyond what a column holds pair with nothing.
    seed = seed if isinstance(seed, int) and -(2**63) <= seed < 2**63 else None
    verdict = "damaged" if run.damage else run.verdict
    notes, damage = (list(dict.fromkeys(told)) for told in (run.notes, run.damage))
    return Measurement(values, seed, verdict, notes, damage, "")


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

    The packets of one run at a time are in memory, in each process, or of some that are small
    (``together.batches``). The verdict of a run is
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
    folders = [places[number].directory for number in closed]
    parted = batches(folders)
    processes = min(processes_for(len(closed), least_runs(folders), jobs), len(parted))
    if processes > 1:
        tasks = [[folders[index] for index in batch] for batch in parted]
        for task, results in _measure_apart(tasks, chosen, processes, user):
            for index, result in zip(parted[task], results, strict=True):
                tell(places[closed[index]])
                found[closed[index]] = result
    else:
        for batch in parted:
            for index in batch:
                tell(places[closed[index]])
            results = measure_folders([folders[index] for index in batch], chosen, user)
            found |= zip((closed[index] for index in batch), results, strict=True)
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
