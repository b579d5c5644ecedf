# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs of an experiment as test cases: each passed, failed, broke, or is not to be trusted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airpath.experiment.case import BAD, Case
from airpath.experiment.catalogue import (
    COLUMNS,
    Filter,
    FilterError,
    open_catalogue,
    read_condition,
)
from airpath.experiment.digest import MOST_SHOWN, append, markdown
from airpath.experiment.junit import document
from airpath.experiment.metrics import MetricError, check_places, metric_of, pick
from airpath.facts import TRUSTED
from airpath.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from airpath.experiment.catalogue import Catalogue
    from airpath.experiment.folder import Results

MOST_NAMES = 6
"""Names of values that a run has instead of one that is expected."""


@dataclass(frozen=True)
class Judging:
    """Demands on runs, and where the judgement is written."""

    expect: Sequence[str] = ()
    """Comparisons that hold for every run."""
    strict: bool = False
    """True if a run whose verdict is not trusted has failed."""
    junit: Path | None = None
    summary: Path | None = None

    def __bool__(self) -> bool:
        """Return true if runs are to be judged at all."""
        return bool(self.expect or self.strict or self.junit or self.summary)

    def check(self, parameters: Collection[str], words: Collection[str]) -> None:
        """Make sure that every comparison can be understood, before there is any run.

        Args:
            parameters: names of what is swept.
            words: words of the plan, among which are the names of hops, users and programs.

        Raises:
            FilterError: one cannot, or a file of the judgement could not be written.

        """
        for option, file in (("--junit", self.junit), ("--summary", self.summary)):
            if file is not None and not file.absolute().parent.is_dir():
                raise FilterError(f"{option} {file}: there is no folder {file.absolute().parent}")
        for text in self.expect:
            try:
                condition = read_condition(text)
                if condition.name not in COLUMNS and condition.name not in parameters:
                    metric_of(condition.name)
                    check_places(condition.name, words)
                    condition.number()
            except (FilterError, MetricError) as error:
                raise _of_expect(error, text) from None


def judge(
    catalogue: Catalogue, rows: Sequence[dict[str, Any]], which: Filter, judging: Judging
) -> list[Case]:
    """Judge runs.

    Args:
        catalogue: has every metric of the expectations by now.
        rows: the runs.
        which: the filter that left them.
        judging: what is expected.

    Raises:
        FilterError: an expectation cannot be understood, or means several values of a run.

    """
    missed: dict[str, list[str]] = {}
    for text in judging.expect:
        try:
            where = (*which.where, text)
            holds = {row["path"] for row in catalogue.select(replace(which, where=where))}
        except FilterError as error:
            raise _of_expect(error, text) from None
        for row in rows:
            if row["path"] not in holds:
                missed.setdefault(row["path"], []).append(_told(text, row))
    return [_case(catalogue, row, missed.get(row["path"], []), judging) for row in rows]


def _case(catalogue: Catalogue, row: dict[str, Any], missed: list[str], judging: Judging) -> Case:
    if row["status"] in BAD:
        return Case(row, row["status"], row["message"] or f"the run is {row['status']}")
    why = ""
    if row["verdict"] != TRUSTED:
        why = f"the verdict is {row['verdict']}{_reasons(catalogue.root / row['path'])}"
    if why and not judging.strict:
        return Case(row, "untrusted", "; ".join([why, *missed]))
    missed = [*missed, why] if why else missed
    return Case(row, "failed", "; ".join(missed)) if missed else Case(row, "passed")


def _told(text: str, row: dict[str, Any]) -> str:
    """Say what a run has instead of what is expected."""
    name = read_condition(text).name
    found = row.get(name, row["parameters"].get(name)) if name in COLUMNS else None
    if found is None:
        with suppress(MetricError):
            found = pick(row["metrics"], name)
    if found is None:
        base = name.partition("/")[0]
        there = [key for key in row["metrics"] if key.partition("/")[0] == base]
        shown = ", ".join(there[:MOST_NAMES]) + ", …" * (len(there) > MOST_NAMES)
        return f"expected {text}, but it has no {name}{f' (it has {shown})' if there else ''}"
    shown = f"{found:.6g}" if isinstance(found, int | float) else str(found)
    return f"expected {text}, but {name} is {shown}"


def _reasons(folder: Path) -> str:
    from airpath.run import RunError, load_run

    with suppress(RunError, OSError):
        reasons = load_run(folder).verdict_reasons
        return f": {'; '.join(reasons)}" if reasons else ""
    return ""


def _of_expect(error: Exception, text: str) -> FilterError:
    """Return an error as one of --expect."""
    said = str(error).removeprefix(f"--where {text!r}: ")
    return FilterError(f"--expect {text!r}: {said}")


def metrics_of(catalogue: Catalogue, judging: Judging) -> list[str]:
    """Return the metrics that the expectations are over.

    Raises:
        FilterError: an expectation cannot be understood.

    """
    found = []
    for text in judging.expect:
        try:
            found += catalogue.metrics_of(Filter(where=(text,)))
        except FilterError as error:
            raise _of_expect(error, text) from None
    return found


def judge_results(
    results: Results, which: Filter, judging: Judging, say: Callable[[str], None], stopped: str
) -> bool:
    """Measure and judge runs of a results folder, and write what was asked for.

    Args:
        results: the folder.
        which: the runs.
        judging: what is expected, and where it is written.
        say: takes lines for the user.
        stopped: why the experiment ended before everything was done, if so.

    Returns:
        True if all is well.

    Raises:
        FilterError: an expectation cannot be understood.
        FolderError: the catalogue is damaged.
        OSError: a file cannot be written.

    """
    with open_catalogue(results, say) as catalogue:
        wanted = [*metrics_of(catalogue, judging), *catalogue.metrics_of(which)]
        for note in catalogue.measure(which, wanted, lambda _done, _of: None):
            say(note)
        cases = judge(catalogue, catalogue.select(which), which, judging)
    return tell(results.root.resolve().name, cases, judging, say, stopped)


def tell(
    name: str, cases: Sequence[Case], judging: Judging, say: Callable[[str], None], stopped: str
) -> bool:
    """Write what was asked for; say whether all is well.

    Args:
        name: of the experiment.
        cases: the runs.
        judging: where it is written.
        say: takes lines for the user.
        stopped: why the experiment ended before everything was done, if so.

    Raises:
        OSError: a file cannot be written.

    """
    bad = [case for case in cases if case.outcome in BAD]
    for case in bad[:MOST_SHOWN]:
        say(f"{case.cell}, {case.name}: {case.outcome}: {case.message}")
    if len(bad) > MOST_SHOWN:
        say(f"… and {len(bad) - MOST_SHOWN} more")
    if not cases:
        say("no run to judge")
    if judging.junit is not None:
        write_whole(judging.junit, document(name, cases, stopped))
    if judging.summary is not None:
        append(judging.summary, markdown(name, cases, stopped))
    return bool(cases) and not bad and not stopped
