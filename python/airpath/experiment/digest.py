# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Judged runs as a short page in Markdown, such as GitHub shows beside a workflow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airpath.experiment.case import BAD
from airpath.experiment.metrics import choices
from airpath.experiment.quantities import counted
from airpath.experiment.rows import USUAL_METRICS, cell_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from airpath.experiment.case import Case

MOST_SHOWN = 20
"""Number of runs whose message the page has."""

_MARKS = re.compile(r"([\\`*_{}\[\]<>|#])")


def markdown(name: str, cases: Sequence[Case], stopped: str) -> str:
    """Return the page: how many passed, a row for each cell, what is wrong with which run."""
    passed = sum(case.outcome == "passed" for case in cases)
    lines = [f"### {_plain(name)}: {passed} of {counted(len(cases), 'run')} passed", ""]
    if stopped:
        lines += [f"**Not everything was done:** {_plain(stopped)}", ""]
    if cases:
        rows = [case.row for case in cases]
        metrics = [one for one in USUAL_METRICS if _has_one_value(cases, one)]
        head, *cells = cell_table(rows, metrics)
        head.insert(2, "passed")
        for line in cells:
            of_cell = [case for case in cases if case.cell == line[0]]
            line.insert(2, str(sum(case.outcome == "passed" for case in of_cell)))
            # An unmet expectation is a failure, too.
            line[3] = str(sum(case.outcome in BAD for case in of_cell))
        # The rule below the head is no text.
        rule = f"| --- |{' --: |' * (len(head) - 1)}"
        lines += [_row(head), rule, *map(_row, cells), ""]
    wrong = [case for case in cases if case.outcome != "passed"]
    for case in wrong[:MOST_SHOWN]:
        what = f"{case.cell}, {case.name}: {case.outcome}"
        lines.append(f"- {_plain(what)}: {_plain(case.message)}")
    if len(wrong) > MOST_SHOWN:
        lines.append(f"- … and {len(wrong) - MOST_SHOWN} more")
    return "\n".join(lines).rstrip() + "\n\n"


def _has_one_value(cases: Sequence[Case], metric: str) -> bool:
    """Say whether a metric has at most one value in each run, and one in some; keep it by name."""
    found = [choices(case.row["metrics"], metric) for case in cases]
    if any(len(keys) > 1 for keys in found) or not any(found):
        return False
    for case, keys in zip(cases, found, strict=True):
        if keys:
            case.row["metrics"][metric] = case.row["metrics"][keys[0]]
    return True


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Return a text in which nothing is a mark of Markdown."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def append(file: Path, text: str) -> None:
    """Write a text behind what is in a file; several programs may write to one page.

    Raises:
        OSError: it cannot be written.

    """
    with file.open("a", encoding="utf-8") as handle:
        handle.write(text)
