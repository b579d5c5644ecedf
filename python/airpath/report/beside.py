# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results beside figures from elsewhere: how far the medians of sets are from a reference's."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.experiment.shown import Selector
from airpath.report.presentation import selects

if TYPE_CHECKING:
    from airpath.report.material import Material
    from airpath.report.presentation import Beside

KEYS = ("metric", "flow", "hop", "direction")
"""Columns that say what a value is of."""

SCHEMA: dict[str, Any] = {
    "reference": pl.String,
    "source": pl.String,
    "set": pl.String,
    **dict.fromkeys((*KEYS, "unit"), pl.String),
    "n": pl.Int64,
    **dict.fromkeys(("median", "p10", "p90"), pl.Float64),
    **dict.fromkeys(("reference_median", "reference_p10", "reference_p90"), pl.Float64),
    "relative_error": pl.Float64,
}
"""Columns of ``table``."""


def table(material: Material) -> pl.DataFrame:
    """Return a row for each reference, set that it stands beside, and metric that both have.

    ``relative_error`` is the difference of the medians over the reference's; null if that is 0.
    """
    rows = [row for one in material.presentation.beside for row in _rows(material, one)]
    return pl.DataFrame(rows, schema=SCHEMA)


def mean_error(rows: pl.DataFrame) -> float | None:
    """Return the mean of the absolute relative errors of a set; none without any."""
    errors = [abs(error) for error in rows["relative_error"].drop_nulls()]
    return statistics.fmean(errors) if errors else None


def _rows(material: Material, one: Beside) -> list[dict[str, Any]]:
    found = []
    kept = ("set", *KEYS, "unit", "n", "median", "p10", "p90")
    of_sets = material.measured.summary.filter(pl.col("set").is_in(list(one.sets)))
    order = {name: place for place, name in enumerate(one.sets)}
    for text in one.reference.metrics:
        figure = one.reference.metrics[text]
        for row in of_sets.iter_rows(named=True):
            if not selects(Selector(text), row):
                continue
            error = (row["median"] - figure.median) / figure.median if figure.median else None
            found.append(
                {
                    "reference": one.reference.name,
                    "source": one.reference.source,
                    **{key: row[key] for key in kept},
                    "reference_median": figure.median,
                    "reference_p10": figure.p10,
                    "reference_p90": figure.p90,
                    "relative_error": error,
                }
            )
    return sorted(found, key=lambda row: order[row["set"]])
