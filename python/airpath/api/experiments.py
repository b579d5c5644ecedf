# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments from Python: run them, and look at what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import polars as pl

from airpath import html
from airpath.api.collection import Runs, of_experiment, warn
from airpath.api.tables import frame as measured
from airpath.api.tables import to_pandas
from airpath.experiment.about import name_of_set, parameters_of, read_about
from airpath.experiment.catalogue import Filter, FilterError, open_catalogue
from airpath.experiment.executors import LOCAL
from airpath.experiment.folder import FolderError, open_results
from airpath.experiment.jobs import Jobs
from airpath.experiment.links import inline_toml
from airpath.experiment.load import load, parse
from airpath.experiment.loaded import ExperimentError, Loaded
from airpath.experiment.problem import Problem
from airpath.experiment.rows import USUAL_METRICS, cell_table
from airpath.experiment.runner import Progress, Report, Runner
from airpath.store.fetch import fetched
from airpath.store.mirror import folder_of
from airpath.store.url import Url, place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

AS_MAPPING = "experiment.toml (from a mapping)"
"""Name in messages of an experiment that was given as a mapping; lines are its keys'."""


class Results:
    """A results folder of ``airpath run``; ``airpath.results(path)`` opens one."""

    def __init__(self, folder: Path, report: Report | None = None) -> None:
        """Open a folder.

        Args:
            folder: as given to ``--out`` of ``airpath run``.
            report: what running it came to, if it was run just now.

        Raises:
            FolderError: it is none, or of another format.

        """
        open_results(folder)
        self.folder = folder
        self.report = report

    def __repr__(self) -> str:
        """Return where the results are."""
        return f"<Results in {self.folder}>"

    def _repr_html_(self) -> str:
        heads, *rows = self.cells()
        return html.table(f"Results in {self.folder}", heads, rows)

    @cached_property
    def runs(self) -> Runs:
        """All replications that left a run, also failed ones; their sets are SET/CELL.

        Raises:
            RunError: none did.

        """
        return of_experiment(self.folder)

    @overload
    def frame(
        self, metrics: str | Sequence[str] | None = None, *, as_pandas: Literal[False] = False
    ) -> pl.DataFrame: ...

    @overload
    def frame(
        self, metrics: str | Sequence[str] | None = None, *, as_pandas: Literal[True]
    ) -> pd.DataFrame: ...

    def frame(
        self, metrics: str | Sequence[str] | None = None, *, as_pandas: bool = False
    ) -> pl.DataFrame | pd.DataFrame:
        """Measure all runs, as ``airpath.frame`` does."""
        table = measured(self.runs, metrics)
        return to_pandas(table) if as_pandas else table

    def parameters(self) -> pl.DataFrame:
        """Return a row for each set: set, network, workload and what was swept.

        ``table.join(results.parameters(), on="set")`` adds them to a table.
        """
        rows: dict[str, dict[str, Any]] = {}
        for one in self.runs:
            about = read_about(one.directory) if one.set_name not in rows else {}
            if about:
                rows[one.set_name] = parameters_of(about) | {"set": name_of_set(about)}
        return pl.DataFrame(list(rows.values()), infer_schema_length=None, strict=False)

    @overload
    def catalogue(
        self,
        *,
        where: str | Sequence[str] = (),
        status: str | Sequence[str] = (),
        as_pandas: Literal[False] = False,
    ) -> pl.DataFrame: ...

    @overload
    def catalogue(
        self,
        *,
        where: str | Sequence[str] = (),
        status: str | Sequence[str] = (),
        as_pandas: Literal[True],
    ) -> pd.DataFrame: ...

    def catalogue(
        self,
        *,
        where: str | Sequence[str] = (),
        status: str | Sequence[str] = (),
        as_pandas: bool = False,
    ) -> pl.DataFrame | pd.DataFrame:
        """Return a row for each replication, also broken ones.

        set, cell, replication, network, workload, clock, what was swept, seed, attempt, status,
        verdict, message, wall_s, size_bytes, tags, the metrics that programs and link gave (in
        seconds, bit/s and bytes: docs/experiments.md), and path within the folder.

        Args:
            where: comparisons of a column, metric or swept parameter with a value, all of which
                hold, such as ``"elapsed < 20"``.
            status: succeeded, failed or broken.
            as_pandas: return a pandas frame (needs ``airpath[pandas]``).

        Raises:
            FilterError: a condition cannot be understood.
            FolderError: the catalogue is damaged.

        """
        which = Filter(where=_words(where), statuses=_words(status))
        table = _catalogue_frame(self._select(which))
        return to_pandas(table) if as_pandas else table

    def cells(self) -> list[list[str]]:
        """Return a head and a line of text for each cell, as ``airpath results`` prints them."""
        rows = self._select(Filter())
        known = {name for row in rows for name in row["metrics"]}
        return cell_table(rows, [name for name in USUAL_METRICS if name in known])

    def _select(self, which: Filter) -> list[dict[str, Any]]:
        with open_catalogue(open_results(self.folder), lambda line: warn([line])) as catalogue:
            try:
                return catalogue.select(which)
            except FilterError as error:
                raise FilterError(str(error).removeprefix("--")) from error


def results(path: str | Path) -> Results:
    """Open a results folder of ``airpath run``; one of a store, such as s3://…, is fetched.

    Raises:
        FolderError: it is none, or of another format.
        OSError: the store cannot be read.

    """
    (folder,) = fetched([place(str(path))], "results")
    return Results(folder)


def run_experiment(
    experiment: str | Path | Mapping[str, Any],
    *,
    only: str | Sequence[str] = (),
    jobs: int | Literal["auto"] = "auto",
    executor: str = LOCAL,
    out: str | Path | None = None,
    resume: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Run the sets of an experiment, as ``airpath run`` does.

    Run again, it does what is not done yet, and nothing if everything is: a cell of a notebook may
    be executed as often as one likes. An experiment that was changed needs another folder.

    Args:
        experiment: path of the file, or its content as a mapping (docs/experiments.md); files that
            a mapping names are relative to the working directory.
        only: names of sets to run.
        jobs: how many replications at a time, or ``"auto"``.
        executor: what carries them out: ``"local"``, ``"dask"`` or ``"dask://HOST:PORT"``.
        out: the folder of results, or its URL in a store; by default results/NAME.
        resume: go on with what the folder holds; False refuses a folder with results.
        progress: called with how many replications are done, and of how many for now.

    Returns:
        The results. Replications that failed are among them, with a warning for each.

    Raises:
        ExperimentError: something in the experiment is wrong (the message has every problem), or
            a program that it needs is missing.
        FolderError: the folder cannot be used, or running stopped before everything was done.
        EngineError: there is no engine.
        ExecutorError: the executor is not known or cannot be used.
        ValueError: ``jobs`` is no number from 1 to 1024.
        KeyboardInterrupt: it was interrupted; what is complete is kept.

    """
    from airpath.experiment.conduct import runner_in, usual_folder
    from airpath.experiment.plan import make_plan

    how_many = Jobs.of(str(jobs))
    loaded = _mapping(experiment) if isinstance(experiment, Mapping) else load(Path(experiment))
    made = make_plan(loaded, list(_words(only)))
    if made.missing:
        raise ExperimentError([Problem(str(loaded.file), 1, text) for text in made.missing])
    where = place(str(out)) if out is not None else usual_folder(made)
    root = folder_of(where) if isinstance(where, Url) else where
    said: list[str] = []
    with runner_in(where, made, how_many, said.append, resume=resume, executor=executor) as runner:
        runner.progress = _Told(runner, progress)
        report = runner.run()
    warn([*said, *report.notes])
    if report.stopped == "interrupted":
        raise KeyboardInterrupt
    if report.stopped:
        raise FolderError(report.stopped)
    return Results(root, report)


class _Told(Progress):
    """Tells a function how far it is, instead of a terminal."""

    def __init__(self, runner: Runner, tell: Callable[[int, int], None] | None) -> None:
        super().__init__()
        self._runner = runner
        self._tell = tell

    def show(self, tell: Callable[[], str]) -> None:
        del tell
        if self._tell is not None:
            self._tell(*self._runner.counts())


def _mapping(experiment: Mapping[str, Any]) -> Loaded:
    file = Path(AS_MAPPING)  # not there, but of the working directory
    try:
        text = inline_toml(experiment)
    except TypeError as error:
        raise ExperimentError(
            [Problem(AS_MAPPING, 1, f"holds a value that TOML has not: {error}")]
        ) from error
    return parse(text, file)


def _words(words: str | Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _catalogue_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    fixed = ("set", "cell", "replication", "network", "workload", "clock")
    more = ("seed", "attempt", "status", "verdict", "message", "wall_s", "size_bytes", "tags")
    parameters = list(dict.fromkeys(key for row in rows for key in row["parameters"]))
    metrics = list(dict.fromkeys(key for row in rows for key in row["metrics"]))
    table = pl.DataFrame(
        [
            {key: row[key] for key in fixed}
            | {key: row["parameters"].get(key) for key in parameters}
            | {key: row[key] for key in more}
            | {key: row["metrics"].get(key) for key in metrics}
            | {"path": row["path"]}
            for row in rows
        ],
        infer_schema_length=None,
    )
    return table.with_columns(_number_if_all_are(table[key]) for key in parameters)


def _number_if_all_are(column: pl.Series) -> pl.Series:
    """Return numbers where the catalogue, which keeps parameters as text, has nothing else."""
    if column.dtype == pl.String:
        for dtype in (pl.Int64, pl.Float64):
            numbers = column.cast(dtype, strict=False)
            if numbers.null_count() == column.null_count():
                return numbers
    return column
