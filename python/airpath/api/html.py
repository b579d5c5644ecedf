"""Display of runs and results in a notebook: small tables."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from airpath.run import load_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airpath.api.collection import Runs
    from airpath.api.experiments import Results
    from airpath.run import Run

MOST_ROWS = 40
"""Sets or cells that a table shows."""


def of_run(run: Run) -> str:
    """Return what a run is: where, how, how long, how exact."""
    rows = [
        ("folder", str(run.directory)),
        ("clock", run.clock),
        ("seed", str(run.manifest.get("seed", "unknown"))),
        ("duration", f"{run.results.get('duration_ns', 0) / 1e9:.4g} s"),
        ("verdict", "; ".join([run.verdict, *run.verdict_reasons])),
    ]
    if not run.results:
        rows[3] = ("duration", "unknown: the run is active, or was killed")
    return table(run.name, [], rows)


def of_runs(runs: Runs) -> str:
    """Return the sets, with how many runs of which verdict each has."""
    verdicts: dict[str, Counter[str]] = {}
    for one in runs:
        verdicts.setdefault(one.set_name, Counter())[load_run(one.directory).verdict] += 1
    rows = [
        (name, str(found.total()), ", ".join(f"{n} {verdict}" for verdict, n in found.items()))
        for name, found in verdicts.items()
    ]
    return table(f"{len(runs)} runs", ["set", "runs", "verdicts"], rows)


def of_results(results: Results) -> str:
    """Return the cells, with how many runs each has and its usual metrics."""
    heads, *rows = results.cells()
    return table(f"Results in {results.folder}", heads, rows)


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a caption; everything is escaped."""
    shown = list(rows)
    left_out = len(shown) - MOST_ROWS
    lines = [_row("th", heads)] if heads else []
    lines += [_row("td", row) for row in shown[:MOST_ROWS]]
    if left_out > 0:
        lines.append(_row("td", [f"… and {left_out} more"]))
    caption = f'<caption style="text-align: left">{escape(title)}</caption>'
    return f"<table>{caption}{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f'<{tag} style="text-align: left">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"
