# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sets side by side: how far they are apart, and whether that can be chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.analysis.text import between, number, probability, scale, where
from airpath.report.measured import MOST_COMPARISONS, metric_words
from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from airpath.report.material import Material
    from airpath.report.measured import Comparison


def build(material: Material) -> Section | None:
    """Return the comparisons, those of sets that differ least first."""
    if len(material.sets) < 2 or not material.measured.pairs:
        return None
    measured = material.measured
    comparisons = [(one, _rows(one)) for one in measured.comparisons]
    body = fill(
        "comparisons",
        comparisons=comparisons,
        left_out=max(len(measured.pairs) - MOST_COMPARISONS, 0),
    )
    return Section("comparisons", "Comparisons", body)


def _rows(one: Comparison) -> list[dict[str, str]]:
    rows = []
    for row in one.table.iter_rows(named=True):
        divisor, unit = scale(row["unit"], [row["median_first"], row["median_second"]])
        low, high = row["shift_low"], row["shift_high"]
        rows.append(
            {
                "metric": row["metric"].replace("_", " "),
                "words": metric_words(row["metric"]),
                "of": where(row),
                "unit": unit,
                "first": number(row["median_first"], divisor),
                "second": number(row["median_second"], divisor),
                "shift": number(row["shift"], divisor),
                "interval": between(low, high, divisor),
                "delta": f"{row['cliffs_delta']:+.2f}",
                "p": probability(row["p"]),
                "p_holm": probability(row["p_holm"]),
                # Not 0 inside the interval: the sets differ.
                "differs": "yes" if low is not None and (low > 0 or high < 0) else "",
            }
        )
    return rows
