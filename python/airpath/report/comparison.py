# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Comparisons of a page: the effect of each change, and whether it can be chance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airpath.analysis.effects import LEAST_FOR_EFFECT, paired_effect, unpaired_effect
from airpath.analysis.intervals import CONFIDENCE
from airpath.analysis.statistics import holm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airpath.analysis.effects import Block, Effect
    from airpath.report.contrasts import Contrast

SIGNIFICANT = 0.05

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("set", "factor", "first", "second"), pl.String),
    **dict.fromkeys(("metric", "flow", "hop", "direction", "unit"), pl.String),
    "strata": pl.Int64,
    "paired": pl.Boolean,
    "n_first": pl.Int64,
    "n_second": pl.Int64,
    "kind": pl.String,
    **dict.fromkeys(("effect", "low", "high", "confidence", "p", "p_holm"), pl.Float64),
    "supported": pl.Boolean,
}
"""Columns of ``table``."""


@dataclass(frozen=True)
class Comparison:
    """One metric under a change of one factor."""

    contrast: Contrast
    key: Mapping[str, str]
    """Metric, flow, hop, direction and unit."""
    effect: Effect
    strata: tuple[str, ...]
    """Names of the blocks of the effect."""
    p_holm: float | None = None
    """``p`` corrected for all comparisons of the page (Holm 1979)."""
    tests: int = 1
    """Tests of the page: the intervals of all of them hold together (Dunn 1961)."""

    @property
    def supported(self) -> bool:
        """True if the data tell the two apart."""
        if self.effect.p is None:
            return self.effect.differs
        return self.p_holm is not None and self.p_holm < SIGNIFICANT

    @property
    def size(self) -> float:
        """Size of the change, for an order within a factor."""
        if self.effect.is_ratio:
            return abs(math.log(self.effect.estimate))
        reach = max(abs(self.effect.low), abs(self.effect.high))
        return abs(self.effect.estimate) / reach if reach else 0.0


def compare_all(
    main: pl.DataFrame, contrasts: Sequence[Contrast], tested: Sequence[Mapping[str, str]]
) -> list[Comparison]:
    """Return the comparisons, the most important first.

    What was swept comes before workloads and networks, what the data support before the rest, and
    large effects before small ones.

    Args:
        main: values of the runs that count.
        contrasts: the comparisons asked for, in the order of their factors.
        tested: the metrics.

    """
    found: list[Comparison] = []
    for key in tested:
        part = main.filter(pl.all_horizontal(pl.col(name) == key[name] for name in key))
        sets = {str(name): rows for (name,), rows in part.partition_by("set", as_dict=True).items()}
        every = (_compared(contrast, key, sets) for contrast in contrasts)
        found += [one for one in every if one is not None]
    of_tests = [one.effect.p for one in found if one.effect.p is not None]
    corrected = iter(holm(of_tests))
    found = [
        one if one.effect.p is None else _among(one, len(of_tests), next(corrected))
        for one in found
    ]
    factors = list(dict.fromkeys((each.group, each.factor) for each in contrasts))
    metrics = [dict(key) for key in tested]

    def importance(one: Comparison) -> tuple[int, bool, int, float]:
        factor = factors.index((one.contrast.group, one.contrast.factor))
        return factor, not one.supported, metrics.index(dict(one.key)), -one.size

    return sorted(found, key=importance)


def _among(one: Comparison, tests: int, p_holm: float) -> Comparison:
    """Return a comparison as one of several tests: p corrected, and a simultaneous interval.

    The intervals of all tests contain what they are of together with at least 95 %, as each is of
    1 - 0.05 / tests (Dunn 1961, after Bonferroni's inequality).
    """
    effect = one.effect.at(1 - (1 - CONFIDENCE) / tests)
    return replace(one, effect=effect, p_holm=p_holm, tests=tests)


def _compared(
    contrast: Contrast, key: Mapping[str, str], sets: Mapping[str, pl.DataFrame]
) -> Comparison | None:
    """Compare over all strata that have values; none if they are too few."""
    strata = [each for each in contrast.strata if each.first in sets and each.second in sets]
    sides = [(sets[each.first], sets[each.second]) for each in strata]
    if not sides:
        return None
    names = tuple(each.name for each in strata)
    common = _common_seeds(sides)
    if common is not None:
        if len(common) < LEAST_FOR_EFFECT:
            return None
        blocks = [_ordered(first, second, common) for first, second in sides]
        return Comparison(contrast, key, paired_effect(blocks), names)
    values = [(first["value"].to_numpy(), second["value"].to_numpy()) for first, second in sides]
    enough = [min(map(len, block)) >= LEAST_FOR_EFFECT for block in values]
    if not any(enough):
        return None
    effect = unpaired_effect([block for block, of in zip(values, enough, strict=True) if of])
    names = tuple(name for name, of in zip(names, enough, strict=True) if of)
    return Comparison(contrast, key, effect, names)


def _common_seeds(sides: Sequence[tuple[pl.DataFrame, pl.DataFrame]]) -> list[int] | None:
    """Return the seeds that all sides share; none where they are not paired by seed.

    They are paired if every seed occurs once a side, and at least half of the smallest side's
    occur in all.
    """
    seeds = [side["seed"] for block in sides for side in block]
    if any(one.has_nulls() or one.n_unique() < len(one) for one in seeds):
        return None
    common = set(seeds[0].to_list()).intersection(*(one.to_list() for one in seeds[1:]))
    if not common or 2 * len(common) < min(map(len, seeds)):
        return None
    return sorted(common)


def _ordered(first: pl.DataFrame, second: pl.DataFrame, seeds: Sequence[int]) -> Block:
    def values(side: pl.DataFrame) -> np.ndarray:
        found = dict(side.select("seed", "value").iter_rows())
        return np.array([found[seed] for seed in seeds], dtype=np.float64)

    return values(first), values(second)


def table(comparisons: Sequence[Comparison]) -> pl.DataFrame:
    """Return the comparisons as a table, in their order."""
    rows = [
        {
            "set": one.contrast.group,
            "factor": one.contrast.factor or "set",
            "first": one.contrast.first,
            "second": one.contrast.second,
            **one.key,
            "strata": len(one.effect.of_blocks),
            "paired": one.effect.paired,
            "n_first": one.effect.first,
            "n_second": one.effect.second,
            "kind": "ratio" if one.effect.is_ratio else "difference",
            "effect": one.effect.estimate,
            "low": one.effect.low,
            "high": one.effect.high,
            "confidence": 1 - (1 - CONFIDENCE) / one.tests,
            "p": one.effect.p,
            "p_holm": one.p_holm,
            "supported": one.supported,
        }
        for one in comparisons
    ]
    return pl.DataFrame(rows, schema=SCHEMA)
