# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sets beside figures from elsewhere, such as a paper's, and how far they are from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.text import between, number, scale, where
from airpath.report import beside
from airpath.report.measured import metric_words
from airpath.report.page import Section, fill
from airpath.report.units import NOTHING

if TYPE_CHECKING:
    from airpath.report.material import Material

_KEYS = [*beside.KEYS, "unit"]


@dataclass(frozen=True)
class Head:
    """A metric, and what the reference has of it."""

    name: str
    of: str
    unit: str
    words: str
    median: str
    spread: str


@dataclass(frozen=True)
class Row:
    """One set beside the reference."""

    name: str
    n: int
    cells: list[tuple[str, str, str]]
    """Median, percentiles, relative error."""
    mean: str


def build(material: Material) -> Section | None:
    """Return a table for each reference."""
    every = beside.table(material)
    if every.is_empty():
        return None
    tables = [
        (name, source, *_table(part))
        for (name, source), part in every.group_by("reference", "source", maintain_order=True)
    ]
    return Section("references", "Beside references", fill("references", tables=tables))


def _table(part: pl.DataFrame) -> tuple[list[Head], list[Row]]:
    heads = []
    cells: dict[str, dict[int, tuple[str, str, str]]] = {}
    groups = part.group_by(_KEYS, maintain_order=True)
    for place, (key, rows) in enumerate(groups):
        named = dict(zip(_KEYS, map(str, key), strict=True))
        first = rows.row(0, named=True)
        divisor, unit = scale(named["unit"], [*rows["median"].to_list(), first["reference_median"]])
        heads.append(
            Head(
                named["metric"].replace("_", " "),
                where(named),
                unit,
                metric_words(named["metric"]),
                number(first["reference_median"], divisor),
                _spread(first, "reference_p10", "reference_p90", divisor),
            )
        )
        for row in rows.iter_rows(named=True):
            cells.setdefault(row["set"], {})[place] = (
                number(row["median"], divisor),
                _spread(row, "p10", "p90", divisor),
                percent(row["relative_error"]),
            )
    sets = []
    for (name,), rows in part.group_by(["set"], maintain_order=True):
        mean = beside.mean_error(rows)
        line = [cells[str(name)].get(place, (NOTHING, "", "")) for place in range(len(heads))]
        said = NOTHING if mean is None else f"{100 * mean:.0f} %"
        sets.append(Row(str(name), int(rows["n"].to_numpy().max()), line, said))
    return heads, sets


def _spread(row: dict[str, Any], low: str, high: str, divisor: float) -> str:
    """Return percentiles where both are known and there is more than one value."""
    if row[low] is None or row[high] is None or (low == "p10" and row["n"] < 2):
        return ""
    return between(row[low], row[high], divisor)


def percent(share: float | None) -> str:
    """Return a relative error with its sign."""
    if share is None:
        return NOTHING
    rounded = round(100 * share)
    return f"{rounded:+d} %".replace("-", "\N{MINUS SIGN}") if rounded else "0 %"
