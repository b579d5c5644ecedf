# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath analyse``: metrics of runs, figures of sets, comparisons."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from airpath.analysis import text
from airpath.analysis.folders import find
from airpath.analysis.metric import UnknownMetricError
from airpath.analysis.statistics import CompareError, compare, select_trusted, summarise
from airpath.analysis.table import frame
from airpath.analysis.why import of_sets
from airpath.experiment.about import parameters_of_sets
from airpath.files import make_folder
from airpath.plots.kinds import SETS, SWEEP
from airpath.run import RunError
from airpath.status import DAMAGED, DONE, UNDONE, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from airpath.analysis.folders import Replication

PROGRESS_AFTER_S = 2.0

MOST_SETS = 16
"""Sets of an experiment that are drawn side by side unless that is asked for."""


def analyse(
    directories: list[Path],
    *,
    metrics: list[str] | None,
    as_json: bool,
    as_csv: bool,
    sets: tuple[str, str] | None,
    include_untrusted: bool,
    jobs: int | None = None,
    user: str | None = None,
) -> int:
    """Carry the command out, for all users or one; return its exit status."""
    if as_json and as_csv:
        return fail("analyse", "--json and --csv exclude one another")
    names = [name for word in metrics or [] for name in word.split(",") if name]
    notes: list[str] = []
    damage: list[str] = []
    try:
        found = find(directories)
        values = frame(
            found,
            names,
            user=user,
            jobs=jobs,
            progress=_progress(len(found), "analyse"),
            notes=notes,
            problems=damage,
        )
    except (UnknownMetricError, RunError, OSError) as error:
        return fail("analyse", error)
    selection = select_trusted(values, include_untrusted=include_untrusted, why=of_sets(found))
    notes += selection.notes
    values = selection.table
    status = DAMAGED if damage else DONE
    comparison = None
    if sets:
        try:
            compared = compare(values, *sets)
        except CompareError as error:
            return fail("analyse", error)
        notes += compared.notes
        comparison = compared.table
    if values.is_empty():
        notes.append(
            "nothing to show: all runs were left out"
            if selection.all_left_out
            else "nothing to show: no run has what these metrics are measured from (captures, by "
            "--log packets; for quic_* qlog files in the run's folder)"
        )
        status = UNDONE
    if as_csv:
        print((values if comparison is None else comparison).write_csv(), end="")
    elif as_json:
        more = {} if comparison is None else {"comparison": comparison.to_dicts()}
        print(text.as_json(values, summarise(values), notes=notes, damage=damage, **more))
    elif comparison is not None and sets:
        print(text.comparison_text(comparison, *sets))
    elif not values.is_empty():
        print(text.summary_text(summarise(values)))
    if not as_json:
        for note in damage + notes:
            print(f"airpath analyse: {note}", file=sys.stderr)
    return status


def plot_sets(
    directory: Path,
    *,
    out: Path | None,
    file_format: str,
    only: Sequence[str] | None,
    metrics: list[str] | None,
    include_untrusted: bool,
    jobs: int | None = None,
) -> int:
    """Carry ``airpath plot`` of a folder of runs out; return its exit status."""
    from airpath.plots import sets, sweeps

    known = [*SETS, SWEEP]
    wrong = [kind for kind in only or [] if kind not in known]
    if wrong:
        return fail(
            "plot",
            f"--only {wrong[0]} is for one run, and {directory} holds several; name one of them",
        )
    names = [name for word in metrics or [] for name in word.split(",") if name]
    notes: list[str] = []
    damage: list[str] = []
    try:
        found = find([directory])
        trusted, selection = sets.measured(
            found,
            names,
            include_untrusted=include_untrusted,
            jobs=jobs,
            progress=_progress(len(found), "plot"),
            notes=notes,
            problems=damage,
        )
        parameters = parameters_of_sets((one.set_name, one.directory) for one in trusted)
        swept = sweeps.swept(parameters)
        kinds = only or _kinds(known, len(parameters), swept=bool(swept), notes=notes)
        pictures = sets.draw(trusted, selection.table, kinds) if trusted else []
        if swept and SWEEP in kinds:
            for picture, note in sweeps.draw_all(summarise(selection.table), parameters):
                pictures.append(picture)
                notes += [note] if note else []
        for note in damage + notes + selection.notes:
            print(f"airpath plot: {note}", file=sys.stderr)
        if not pictures:
            return fail(
                "plot",
                f"nothing to draw in {directory}: no values of these metrics, or all runs were "
                f"left out (--include-untrusted keeps them)",
                UNDONE,
            )
        target = make_folder(out or directory / "plots")
        for picture in pictures:
            print(picture.save(target, file_format))
    except (UnknownMetricError, RunError, OSError) as error:
        return fail("plot", error)
    return DAMAGED if damage else DONE


def _kinds(known: list[str], sets: int, *, swept: bool, notes: list[str]) -> list[str]:
    """Return which pictures to draw where nobody said."""
    if not swept:
        return [kind for kind in known if kind != SWEEP]
    if sets > MOST_SETS:
        notes.append(
            f"{sets} sets side by side cannot be told apart: their sweep is drawn alone; "
            f"--only distribution draws them anyway"
        )
        return [SWEEP]
    return known


def _progress(total: int, command: str) -> Callable[[int, Replication], None]:
    """Return what tells on a terminal how far it is, once it takes longer than two seconds."""
    begun = time.monotonic()

    def tell(number: int, place: Replication) -> None:
        if sys.stderr.isatty() and time.monotonic() - begun > PROGRESS_AFTER_S:
            end = "\n" if number + 1 == total else ""
            line = f"airpath {command}: {number + 1} of {total}: {place.set_name}/{place.name}"
            print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)

    return tell
