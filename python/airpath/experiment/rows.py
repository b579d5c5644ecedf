# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs of a catalogue as tables of text: by cell, with means and their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath.analysis.intervals import mean_with_half_width
from airpath.natural import natural_order

if TYPE_CHECKING:
    from airpath.analysis.intervals import Mean

USUAL_METRICS = ("elapsed", "goodput")
"""Metrics that are shown where none is named."""


def cell_table(rows: list[dict[str, Any]], metrics: list[str]) -> list[list[str]]:
    """Return a head and a line of text for each cell: how many runs, means with intervals.

    Args:
        rows: what a catalogue selected.
        metrics: names of metrics.

    """
    units = [_unit(name, rows) for name in metrics]
    heads = [
        f"{name}{f' ({unit})' if unit else ''} ± 95 %"
        for name, (_, unit) in zip(metrics, units, strict=True)
    ]
    table = [["cell", "runs", "failed", "not trusted", *heads]]
    for key, of_cell in by_cell(rows).items():
        good = [row for row in of_cell if row["status"] == "succeeded"]
        line = [
            key,
            str(len(of_cell)),
            str(len(of_cell) - len(good)),
            str(sum(row["verdict"] != "trusted" for row in of_cell)),
        ]
        for name, (divisor, _) in zip(metrics, units, strict=True):
            values = [row["metrics"][name] / divisor for row in good if name in row["metrics"]]
            line.append(interval(mean_with_half_width(values)) if values else "-")
        table.append(line)
    return table


def difference_table(compared: dict[str, Any]) -> list[list[str]]:
    """Return a head and a line of text for each metric: both means, and their difference.

    Args:
        compared: two cells as `airpath results --compare --json` prints them.

    """
    table = [["metric", compared["first"], compared["second"], "difference ± 95 %", "pairs"]]
    for row in compared["metrics"]:
        divisor, unit = _scale(row["metric"], [row["first"], row["second"]])
        half_width = row["half_width"]
        difference = number(row["difference"] / divisor)
        if half_width is not None:
            difference += f" ± {number(half_width / divisor)}"
        table.append(
            [
                f"{row['metric']}{f' ({unit})' if unit else ''}",
                number(row["first"] / divisor),
                number(row["second"] / divisor),
                difference,
                str(row["pairs"]),
            ]
        )
    return table


def _unit(name: str, rows: list[dict[str, Any]]) -> tuple[float, str]:
    """Return the unit in which a metric's values are shown, and how much of its own that is."""
    return _scale(name, [row["metrics"][name] for row in rows if name in row["metrics"]])


def _scale(name: str, values: list[float]) -> tuple[float, str]:
    # Here, as most commands over experiments measure nothing.
    from airpath.analysis import REGISTRY
    from airpath.analysis.text import scale

    metric = REGISTRY.get(name.partition("/")[0])
    unit = metric.unit if metric else "s" if name == "elapsed" else ""
    return scale("" if unit == "1" else unit, values) if values else (1.0, unit)


def by_cell(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the runs of each cell, by SET/CELL: limits of 4 packets before those of 16."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(f"{row['set']}/{row['cell']}", []).append(row)
    return {key: cells[key] for key in natural_order(cells)}


def interval(found: Mean) -> str:
    """Return a mean with the half width of its interval."""
    if found.count < 2:
        return number(found.mean)
    return f"{number(found.mean)} ± {number(spread(found))}"


def spread(found: Mean) -> float:
    """Return the half width of an interval; what rounding of equal values leaves is no spread."""
    return 0.0 if found.half_width < abs(found.mean) * 1e-9 else found.half_width


def number(value: float | None) -> str:
    """Return a number for people."""
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e5 else f"{value:.4e}"
