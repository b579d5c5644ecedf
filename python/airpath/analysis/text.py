# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures as text: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.metric import in_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_PREFIXES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
}


def scale(unit: str, values: Sequence[float | None]) -> tuple[float, str]:
    """Return divisor and unit in which the values read best."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    for divisor, name in _PREFIXES.get(unit, ()):
        if largest >= divisor:
            return divisor, name
    if unit == "1":
        return 1.0, ""
    steps = _PREFIXES.get(unit, ((1.0, unit),))
    return steps[0] if largest == 0 else steps[-1]


def number(value: float | None, divisor: float = 1.0) -> str:
    """Return four significant digits; "-" for nothing."""
    if value is None or math.isnan(value):
        return "-"
    scaled = value / divisor
    return f"{scaled:.0f}" if abs(scaled) >= 1000 else f"{scaled:.4g}"


def summary_text(summary: pl.DataFrame) -> str:
    """Return the tables of all sets, one below the other."""
    blocks = []
    for key, part in summary.group_by("set", maintain_order=True):
        name = str(key[0])
        alone = part["n"].max() == 1
        heads = ["metric", "of", "unit"]
        heads += ["value"] if alone else ["n", "median", "95 % interval", "mean", "p5", "p95"]
        rows = []
        remarks = []
        for row in part.iter_rows(named=True):
            shown = [row[key] for key in ("median", "mean", "p95", "max", "median_high")]
            divisor, unit = scale(row["unit"], shown)
            cells = [row["metric"], where(row), unit]
            if alone:
                cells.append(number(row["median"], divisor))
            else:
                cells += [
                    str(row["n"]),
                    number(row["median"], divisor),
                    between(row["median_low"], row["median_high"], divisor),
                    number(row["mean"], divisor),
                    number(row["p5"], divisor),
                    number(row["p95"], divisor),
                ]
            rows.append(cells)
            if row["outliers"]:
                place = f" of {where(row)}" if where(row) else ""
                remarks.append(f"outliers in {row['metric']}{place}: {', '.join(row['outliers'])}")
        count = int(part["n"].to_numpy().max())
        title = name if alone else f"{name}: {count} replications"
        blocks.append("\n".join([title, *columns(heads, rows), *remarks]))
    return "\n\n".join(blocks)


def comparison_text(table: pl.DataFrame, first: str, second: str) -> str:
    """Return the table of a comparison."""
    heads = [
        "metric",
        "of",
        "unit",
        first,
        second,
        "shift",
        "95 % interval",
        "delta",
        "p",
        "p_holm",
    ]
    rows = []
    for row in table.iter_rows(named=True):
        shown = [row[key] for key in ("median_first", "median_second", "shift")]
        divisor, unit = scale(row["unit"], shown)
        rows.append(
            [
                row["metric"],
                where(row),
                unit,
                number(row["median_first"], divisor),
                number(row["median_second"], divisor),
                number(row["shift"], divisor),
                between(row["shift_low"], row["shift_high"], divisor),
                f"{row['cliffs_delta']:+.2f}",
                probability(row["p"]),
                probability(row["p_holm"]),
            ]
        )
    tests = ", ".join(table["test"].unique(maintain_order=True).to_list())
    foot = [
        f"medians of both; shift: {second} less {first} (Hodges-Lehmann); delta: Cliff's, "
        f"+1 if all of {second} are greater; p: {tests}"
    ]
    return "\n".join([*columns(heads, rows), *foot])


PLACE = ("flow", "hop", "direction")
"""Columns that say what a value is of."""


def where(row: Mapping[str, Any], keys: Collection[str] = PLACE) -> str:
    """Return what a value is of: "tcp-1, downlink", "radio, uplink", or nothing for a run.

    Args:
        row: has the columns of ``PLACE``.
        keys: those that are told.

    """
    return ", ".join(row[key] for key in PLACE if key in keys and row[key])


def differing(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of ``PLACE`` that tell the rows apart: those with several values."""
    seen = list(rows)
    return [key for key in PLACE if len({row[key] for row in seen if row[key]}) > 1]


def between(low: float | None, high: float | None, divisor: float) -> str:
    """Return an interval's ends."""
    return "-" if low is None else f"{number(low, divisor)} to {number(high, divisor)}"


def probability(value: float | None) -> str:
    """Return a p value."""
    if value is None:
        return "-"
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def columns(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Lay a table out: text to the left, numbers to the right."""
    left = {"metric", "of", "unit"}
    widths = [max(len(line[place]) for line in [heads, *rows]) for place in range(len(heads))]
    lines = []
    for line in [heads, *rows]:
        cells = [
            cell.ljust(width) if heads[place] in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def metrics_text() -> str:
    """Return the list of all metrics, for the command line."""
    metrics = in_order()
    width = max(len(metric.name) for metric in metrics)
    lines: list[str] = []
    group = ""
    for metric in metrics:
        if metric.group != group:
            group = metric.group
            lines += ["", group] if lines else [group]
        mark = "*" if metric.headline else " "
        lines.append(f"{mark} {metric.name:{width}}  {metric.unit:8}  {metric.text}")
    return "\n".join([*lines, "", "* shown when no --metrics are named"])


def as_json(values: pl.DataFrame, summary: pl.DataFrame, **more: Any) -> str:
    """Return everything as JSON: values, summary, and what else is given."""
    content = {"values": values.to_dicts(), "summary": summary.to_dicts()} | more
    return json.dumps(content, indent=1, allow_nan=False)
