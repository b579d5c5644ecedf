# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results of experiments: a line for each cell, and comparisons, as in `airpath results`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from airpath.experiment.rows import cell_table, difference_table
from airpath.ui.errors import UiError, not_found
from airpath.ui.itself import COMMAND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.ui.workspace import Workspace

PATIENCE_S = 600.0
USUAL = ("elapsed", "goodput")
"""Metrics that are shown first, where runs have them."""


def folders(workspace: Workspace) -> list[str]:
    """Return the folders of results, the latest first."""
    found = [path.parent for path in workspace.folder.glob("results/*/plan.json")]
    return [workspace.name_of(path) for path in sorted(found, key=_changed, reverse=True)]


def _changed(path: Any) -> float:
    try:
        return float(path.stat().st_mtime)
    except OSError:
        return 0.0


def table(workspace: Workspace, name: str, metrics: Sequence[str]) -> dict[str, Any]:
    """Return a line for each cell: number of runs, failures, verdicts, means with intervals.

    Args:
        workspace: the workspace.
        name: the folder of results.
        metrics: names of metrics to show; none for the usual ones.

    Raises:
        UiError: the folder has no results, or no run has a metric.

    """
    rows = [json.loads(line) for line in _ask(workspace, name, _named(metrics)).splitlines()]
    if not rows:
        raise not_found(f"{name} has no results yet")
    known = sorted({key for row in rows for key in row["metrics"]})
    shown = list(metrics) or [one for one in USUAL if one in known] or known[:2]
    head, *lines = cell_table(rows, shown)
    return {
        "head": head,
        "lines": lines,
        "metrics": known,
        "runs": [
            {key: row[key] for key in ("set", "cell", "path", "status", "verdict", "clock")}
            for row in rows
        ],
    }


def compared(
    workspace: Workspace, name: str, first: str, second: str, metrics: Sequence[str]
) -> dict[str, Any]:
    """Return the differences of two cells, replication by replication.

    Beside what the command prints as JSON, ``table`` has its table: a head, and a line of text for
    each metric.

    Raises:
        UiError: there is no such cell, or nothing to compare.

    """
    words = ["--compare", first, second, *_named(metrics)]
    found: dict[str, Any] = json.loads(_ask(workspace, name, words).splitlines()[0])
    return {**found, "table": difference_table(found)}


def _named(metrics: Sequence[str]) -> list[str]:
    return [word for metric in metrics for word in ("--metric", metric)]


def _ask(workspace: Workspace, name: str, words: Sequence[str]) -> str:
    path = workspace.inside(name)
    if not (path / "plan.json").is_file():
        raise not_found(f"{name} is no folder of results")
    done = subprocess.run(
        [*COMMAND, "results", str(path), *words, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode != 0 or not done.stdout.strip():
        raise UiError(done.stderr.strip() or f"{name} has no results yet", 422)
    return done.stdout
