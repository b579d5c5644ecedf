# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Output and actions of ``airpath results``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath.analysis.intervals import mean_with_half_width
from airpath.experiment.catalogue import Catalogue, Filter, FilterError, open_catalogue
from airpath.experiment.catalogue import rebuild as build_anew
from airpath.experiment.folder import FolderError, Results, open_results
from airpath.experiment.judgement import Judging, judge, metrics_of, tell
from airpath.experiment.metrics import choices, pick
from airpath.experiment.quantities import alike, show_bytes
from airpath.experiment.replicate import remove as remove_folder
from airpath.experiment.rows import (
    USUAL_METRICS,
    by_cell,
    cell_table,
    difference_table,
    number,
    spread,
)
from airpath.nearest import nearest
from airpath.status import DONE, UNDONE

if TYPE_CHECKING:
    from pathlib import Path

MOST_COLUMNS = 4
"""Of a usual metric that has several values, such as one for each flow."""


@dataclass(frozen=True)
class Request:
    """Request of the user."""

    which: Filter = field(default_factory=Filter)
    metrics: list[str] = field(default_factory=list)
    runs: bool = False
    compare: tuple[str, str] | None = None
    add_tags: list[str] = field(default_factory=list)
    remove_tags: list[str] = field(default_factory=list)
    remove: bool = False
    yes: bool = False
    rebuild: bool = False
    as_json: bool = False
    judging: Judging = field(default_factory=Judging)

    @property
    def changes(self) -> bool:
        """True if something in the folder shall change."""
        return bool(self.remove or self.add_tags or self.remove_tags or self.rebuild)


def list_folders(base: Path, as_json: bool) -> int:
    """List the folders of results beneath a folder."""
    found = sorted(path.parent for path in base.glob("*/plan.json"))
    if not found and not as_json:
        print(f"airpath results: no results beneath {base}/; name a folder", file=sys.stderr)
        return UNDONE
    for root in found:
        try:
            entries = open_results(root).done.values()
        except FolderError as error:
            print(f"airpath results: {error}", file=sys.stderr)
            continue
        good = sum(entry["status"] == "succeeded" for entry in entries)
        size = sum(entry["size_bytes"] for entry in entries)
        if as_json:
            print(json.dumps({"folder": str(root), "runs": len(entries), "succeeded": good}))
        else:
            print(f"{root}  {len(entries)} runs, {good} succeeded, {show_bytes(size)}")
    return DONE


def carry_out(results: Results, request: Request) -> int:
    """Do what was asked for; return the exit status.

    Raises:
        FilterError: a condition cannot be understood.
        FolderError: the folder is in use, or the catalogue is damaged.

    """
    changes = request.changes
    if changes:
        results.lock()
    try:
        if request.rebuild:
            problems = results.mend()
            count = build_anew(results.root, problems)
            for problem in problems:
                _note(problem)
            print(f"{count} runs in the catalogue of {results.root}", file=sys.stderr)
            if count < len(results.done):
                print(
                    f"airpath results: {len(results.done) - count} runs of the journal have no "
                    f"replication.json that can be read; airpath run --resume runs them again",
                    file=sys.stderr,
                )
        with open_catalogue(results, _note) as catalogue:
            if changes:
                catalogue.follow(results)
            _check_names(catalogue, request.which)
            expected = metrics_of(catalogue, request.judging)
            wanted = [*request.metrics, *expected, *catalogue.metrics_of(request.which)]
            progress = _Progress()
            for note in catalogue.measure(request.which, wanted, progress.tell):
                _note(note)
            progress.end()
            rows = catalogue.select(request.which)
            cases = judge(catalogue, rows, request.which, request.judging)
            if request.add_tags or request.remove_tags:
                for row in rows:
                    catalogue.tag(row["path"], request.add_tags, request.remove_tags)
                print(f"tags of {len(rows)} runs changed", file=sys.stderr)
                rows = catalogue.select(request.which)
            if request.remove:
                return _remove(results, catalogue, rows, request)
    finally:
        results.close()
    status = DONE
    if request.judging and not tell(
        results.root.resolve().name, cases, request.judging, _note, stopped=""
    ):
        status = UNDONE
    metrics = _chosen(rows, request.metrics)
    if request.compare:
        return _compare(rows, request, metrics) or status
    if request.runs or request.as_json:
        _print_runs(rows, metrics, request.as_json)
    else:
        _print_table(cell_table(rows, metrics))
        for key, of_cell in by_cell(rows).items():
            # In real time no two are the same.
            told = [r["metrics"] for r in of_cell if r["clock"] != "live"]
            if said := alike(told):
                _note(f"{key}: {said}")
        for note in _none_trusted(rows):
            _note(note)
    return status


def _note(line: str) -> None:
    print(f"airpath results: {line}", file=sys.stderr)


def _none_trusted(rows: list[dict[str, Any]]) -> list[str]:
    """Name the cells without any trusted run, and who says why."""
    return [
        f"{cell}: none of the {len(of_cell)} runs is trusted; `airpath analyse` of the folder says "
        f"why, and what to do"
        for cell, of_cell in by_cell(rows).items()
        if all(row["verdict"] != "trusted" for row in of_cell)
    ]


def _check_names(catalogue: Catalogue, which: Filter) -> None:
    """Make sure that there are runs of each set and cell that is asked for.

    Raises:
        FilterError: there are none.

    """
    for column, words in (("set", which.sets), ("cell", which.cells)):
        known = catalogue.names(column)
        for word in words:
            if word not in known:
                message = f"there is no run of a {column} `{word}`{nearest(word, known)}"
                raise FilterError(message)


def _chosen(rows: list[dict[str, Any]], asked: list[str]) -> list[str]:
    """Return the metrics to show, and have each run's figures stand under these names.

    Raises:
        MetricError: one that was asked for has several values in a run.
        FolderError: no run has it.

    """
    metrics = asked
    if not asked:
        metrics = []
        for name in USUAL_METRICS:
            found = [choices(row["metrics"], name) for row in rows]
            if any(len(keys) > 1 for keys in found):  # then each of its values is shown
                each = dict.fromkeys(key for keys in found for key in keys)
                if len(each) > MOST_COLUMNS:
                    print(
                        f"airpath results: `{name}` has {len(each)} values, not shown: name one "
                        f"with --metric, such as {next(iter(each))}",
                        file=sys.stderr,
                    )
                    continue
                metrics += each
            elif any(found):
                metrics.append(name)
    for row in rows:
        for name in metrics:
            figure = pick(row["metrics"], name)
            if figure is not None:
                row["metrics"][name] = figure
    for name in asked:
        if rows and not any(name in row["metrics"] for row in rows):
            message = f"no run has a value of `{name}`"
            raise FolderError(message)
    return metrics


class _Progress:
    """Says how far measuring is, on a terminal, once that has taken two seconds."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.shown = False

    def tell(self, done: int, of: int) -> None:
        if sys.stderr.isatty() and time.monotonic() - self.began > 2:
            print(f"\rmeasuring run {done + 1} of {of}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def end(self) -> None:
        if self.shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _print_runs(rows: list[dict[str, Any]], metrics: list[str], as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    table = [["run", "status", "verdict", "seed", *metrics, "tags"]]
    for row in rows:
        figures = [number(row["metrics"].get(name)) for name in metrics]
        where = row["path"].removeprefix("runs/")
        tags = " ".join(row["tags"])
        table.append([where, row["status"], row["verdict"], str(row["seed"]), *figures, tags])
    _print_table(table)
    for row in rows:
        if row["message"]:
            print(f"{row['path'].removeprefix('runs/')}: {row['message']}")


def _compare(rows: list[dict[str, Any]], request: Request, metrics: list[str]) -> int:
    """Compare two cells: paired where replications of one number have the same seed."""
    assert request.compare is not None
    cells = by_cell([row for row in rows if row["status"] == "succeeded"])
    sides = []
    for word in request.compare:
        # A set of one cell is meant by its name alone.
        of_set = [key for key in cells if key.partition("/")[0] == word]
        key = of_set[0] if len(of_set) == 1 else word
        if key not in cells:
            message = f"there is no cell `{word}` with runs that succeeded{nearest(word, cells)}"
            raise FolderError(message)
        sides.append((key, {row["replication"]: row for row in cells[key]}))
    (first_key, first), (second_key, second) = sides
    documents: list[dict[str, Any]] = []
    for name in metrics:
        pairs = [
            (first[n]["metrics"][name], second[n]["metrics"][name])
            for n in sorted(set(first) & set(second))
            if first[n]["seed"] == second[n]["seed"]
            and name in first[n]["metrics"]
            and name in second[n]["metrics"]
        ]
        if not pairs:
            continue
        of_first = mean_with_half_width([one for one, _ in pairs])
        of_second = mean_with_half_width([other for _, other in pairs])
        difference = mean_with_half_width([other - one for one, other in pairs])
        documents.append(
            {
                "metric": name,
                "first": of_first.mean,
                "second": of_second.mean,
                "difference": difference.mean,
                "half_width": spread(difference) if len(pairs) > 1 else None,
                "pairs": len(pairs),
            }
        )
    if not documents:
        message = (
            f"{first_key} and {second_key} have no pair of runs with the same replication, seed "
            f"and metric"
        )
        raise FolderError(message)
    compared = {"first": first_key, "second": second_key, "metrics": documents}
    if request.as_json:
        print(json.dumps(compared))
    else:
        _print_table(difference_table(compared))
    return DONE


def _remove(
    results: Results, catalogue: Catalogue, rows: list[dict[str, Any]], request: Request
) -> int:
    size = sum(row["size_bytes"] for row in rows)
    if not rows:
        print("airpath results: no run to remove", file=sys.stderr)
        return UNDONE
    if not request.yes:
        if not sys.stdin.isatty():
            message = f"{len(rows)} runs would be removed; say so with --yes"
            raise FolderError(message)
        answer = input(f"Remove {len(rows)} runs, {show_bytes(size)}, from {results.root}? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            return UNDONE
    for row in rows:
        folder = (results.root / row["path"]).resolve()
        if not folder.is_relative_to((results.root / "runs").resolve()):
            message = f"{folder} is not within {results.root}; nothing of it is removed"
            raise FolderError(message)
        results.write("removed", set=row["set"], cell=row["cell"], replication=row["replication"])
        catalogue.forget(row["path"])
        remove_folder(folder)
    print(f"{len(rows)} runs removed, {show_bytes(size)}")
    return DONE


def _print_table(table: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        print(
            "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        )
