# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Comparisons that the experiment asks for: how large each effect is, and whether it is chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.analysis.intervals import CONFIDENCE
from airpath.analysis.text import between, probability, scale, where
from airpath.plots import sweeps
from airpath.report import sentences
from airpath.report.contrasts import CELL
from airpath.report.measured import metric_words
from airpath.report.page import Section, fill
from airpath.report.units import NOTHING

if TYPE_CHECKING:
    from airpath.report.comparison import Comparison
    from airpath.report.material import Material


def build(material: Material) -> Section | None:
    """Return a row for each comparison, the most important first."""
    compared = material.measured.comparisons
    if not compared:
        return None
    tested = material.measured.tested
    metrics = list(dict.fromkeys(one["metric"].replace("_", " ") for one in tested))
    body = fill(
        "comparisons",
        rows=[_row(one) for one in compared],
        tests=(tests := sum(one.effect.p is not None for one in compared)),
        level=f"{1 - (1 - CONFIDENCE) / max(tests, 1):.4%}".replace("%", " %"),
        metrics=metrics,
        named=bool(material.presentation.asked),
        paired=any(one.effect.paired for one in compared),
        unpaired=any(not one.effect.paired for one in compared),
    )
    return Section("comparisons", "Comparisons", body)


def _row(one: Comparison) -> dict[str, str]:
    effect, key = one.effect, one.key
    factor = one.contrast.factor
    first = one.contrast.first if factor == CELL else sweeps.value_text(factor, one.contrast.first)
    if effect.is_ratio:
        change = f"{sentences.times(effect.estimate)} times"
        interval = f"{sentences.times(effect.low)} to {sentences.times(effect.high)}"
    else:
        divisor, unit = scale(key["unit"], [effect.estimate, effect.low, effect.high])
        estimate = sentences.signed(f"{effect.estimate / divisor:+.4g}")
        change = " ".join(filter(None, (estimate, unit)))
        interval = sentences.signed(between(effect.low, effect.high, divisor))
    return {
        "second": sentences.subject(one),
        "first": first,
        "metric": key["metric"].replace("_", " "),
        "words": metric_words(key["metric"]),
        "of": where(dict(key)),
        "change": change,
        "interval": interval if effect.p is not None else "the same in every run",
        "strata": sentences.strata(one) if len(one.strata) > 1 else NOTHING,
        "count": f"{effect.first}" if effect.paired else f"{effect.first} and {effect.second}",
        "p": probability(effect.p),
        "p_holm": probability(one.p_holm),
        "supported": "yes" if one.supported else "",
    }
