# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The sets of replications: how many, how trusted, medians with their intervals, outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.analysis.text import between, number, scale, where
from airpath.plots import sweeps
from airpath.report.measured import metric_words
from airpath.report.page import Section, fill
from airpath.report.sections.verdicts import GRADES
from airpath.report.units import NOTHING

if TYPE_CHECKING:
    from airpath.report.entry import Entry
    from airpath.report.material import Material
    from airpath.report.measured import Measured
    from airpath.report.presentation import Beside

MOST_COLUMNS = 16
"""Metrics (and what they are of) in the table; ``--csv`` has all."""

_KEYS = ["metric", "flow", "direction", "hop", "unit"]


Cell = tuple[str, str, str, str]
"""Median as it is sorted, median, interval, and how many values."""


@dataclass(frozen=True)
class Column:
    """One metric of one flow, direction or run."""

    name: str
    of: str
    unit: str
    words: str


@dataclass(frozen=True)
class ReferenceRow:
    """Figures from elsewhere, above those of sets."""

    name: str
    source: str
    cells: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Row:
    """One set."""

    name: str
    entries: list[Entry]
    verdicts: list[tuple[str, int]]
    failed: int
    cells: list[Cell]
    parameters: list[str]
    """Its values of what was swept, where that is more than one thing."""


def build(material: Material) -> Section | None:
    """Return the table of sets; nothing where no set has two runs and none is an experiment's."""
    sets = material.sets
    experiment = any(entry.about for entry in material.entries)
    if not experiment and all(len(entries) == 1 for entries in sets.values()):
        return None
    measured = material.measured
    presentation = material.presentation
    columns, values, keys = _columns(measured, percentiles=presentation.percentiles)
    swept = list(sweeps.swept(material.parameters))
    # Of one thing the sets' names say it.
    swept = swept if len(swept) > 1 else []
    rows = [
        Row(
            name,
            entries,
            [
                (grade, count)
                for grade in GRADES
                if (count := sum(entry.run.verdict == grade for entry in entries))
            ],
            sum(entry.about.get("status", "succeeded") != "succeeded" for entry in entries),
            [column.get(name, ("", NOTHING, "", "")) for column in values[:MOST_COLUMNS]],
            [str(material.parameters.get(name, {}).get(key, NOTHING)) for key in swept],
        )
        for name, entries in sets.items()
    ]
    body = fill(
        "sets",
        columns=columns[:MOST_COLUMNS],
        references=[_reference(one, keys[:MOST_COLUMNS]) for one in presentation.beside],
        rows=rows,
        swept=[sweeps.short(name) for name in swept],
        more=max(len(columns) - MOST_COLUMNS, 0),
        outliers=_outliers(material),
        left_out=measured.left_out,
        percentiles=presentation.percentiles,
        failures=[entry for entry in material.entries if entry.about.get("message")],
    )
    return Section("sets", "Sets", body)


def _columns(
    measured: Measured, *, percentiles: bool
) -> tuple[list[Column], list[dict[str, Cell]], list[tuple[dict[str, Any], float]]]:
    """Return columns, what sets have in each, and of each its key with the divisor of its unit."""
    columns, values, keys = [], [], []
    summary = measured.summary
    groups = [
        (dict(zip(_KEYS, key, strict=True)), part)
        for key, part in summary.group_by(_KEYS, maintain_order=True)
    ]
    for key, part in sorted(groups, key=lambda group: measured.place(group[0])):
        divisor, unit = scale(str(key["unit"]), part["median"].to_list())
        name = str(key["metric"])
        columns.append(Column(name.replace("_", " "), where(key), unit, metric_words(name)))
        rows = part.iter_rows(named=True)
        keys.append((key, divisor))
        values.append({str(row["set"]): _cell(row, divisor, percentiles) for row in rows})
    return columns, values, keys


def _reference(one: Beside, keys: list[tuple[dict[str, Any], float]]) -> ReferenceRow:
    cells = []
    for key, divisor in keys:
        figure = one.figure(key)
        if figure is None:
            cells.append((NOTHING, "", ""))
            continue
        known = figure.p10 is not None and figure.p90 is not None
        below = f"{between(figure.p10, figure.p90, divisor)}" if known else ""
        cells.append((number(figure.median, divisor), below, "10th and 90th percentile"))
    return ReferenceRow(one.reference.name, one.reference.source, cells)


def _cell(row: dict[str, Any], divisor: float, percentiles: bool) -> Cell:
    low, high = (row["p10"], row["p90"]) if percentiles else (row["median_low"], row["median_high"])
    interval = "" if low is None else between(low, high, divisor)
    return str(row["median"]), number(row["median"], divisor), interval, str(row["n"])


def _outliers(material: Material) -> list[tuple[str, str, list[Entry]]]:
    by_name = {(entry.set_name, entry.name): entry for entry in material.entries}
    return [
        (
            row["set"],
            ", ".join(filter(None, (row["metric"].replace("_", " "), where(row)))),
            [by_name[row["set"], run] for run in row["outliers"]],
        )
        for row in material.measured.summary.iter_rows(named=True)
        if row["outliers"]
    ]
