# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Effect of a change: ratio or difference of two sides, with the interval and p of Student's t.

A test of ranks cannot tell any difference of five pairs: its least p is 0.0625. The t test can,
for which the logarithms of ratios (or the differences) are assumed to be normal.
``docs/analysis.md`` says how often the intervals hold; ``studies/coverage`` measures that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from airpath.analysis.intervals import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Block = tuple[Values, Values]
    """Values of the first side and of the second, all else being equal."""

LEAST_FOR_EFFECT = 2
"""Pairs, or values of each side, below which nothing is known of chance."""

_SAME = 1e-9
"""Differences relative to their size that come from rounding alone."""


@dataclass(frozen=True)
class Effect:
    """Change from the first side to the second."""

    is_ratio: bool
    """True for the second by the first (geometric means), False for the second less the first."""
    paired: bool
    first: int
    """Values of the first side in each block; of pairs their number."""
    second: int
    estimate: float
    low: float
    high: float
    """Ends of the interval: of 95 %, unless ``at`` made another one."""
    p: float | None
    """Two-sided; none where every replication gives the same change, so that no chance is left."""
    of_blocks: tuple[float, ...]
    """Estimate of each block alone."""
    error: float = 0.0
    """Standard error of the estimate, or of its logarithm if it is a ratio."""
    freedom: float = 1.0
    """Degrees of freedom of Student's t."""

    def at(self, confidence: float) -> Effect:
        """Return the effect with the interval of a level, such as 0.95."""
        middle = math.log(self.estimate) if self.is_ratio else self.estimate
        half = _half_width(self.error, self.freedom, confidence)
        low, high = middle - half, middle + half
        if self.is_ratio:
            low, high = math.exp(low), math.exp(high)
        return replace(self, low=low, high=high)

    @property
    def differs(self) -> bool:
        """True if the interval leaves out no change."""
        nothing = 1.0 if self.is_ratio else 0.0
        same = math.isclose(self.estimate, nothing, rel_tol=_SAME)
        return not same and not self.low <= nothing <= self.high


def paired_effect(blocks: Sequence[Block]) -> Effect:
    """Return the effect over pairs, which are in the same order in all blocks.

    The logarithms of ratios are averaged over the blocks of a pair, as these share its random
    numbers; Student's t is of these averages (Student 1908).

    Args:
        blocks: pairs under all else that is equal, one block for each combination of that.

    Raises:
        ValueError: there are fewer than two pairs.

    """
    is_ratio, sides = _scaled(blocks)
    changes = np.array([second - first for first, second in sides])
    of_pairs = changes.mean(axis=0)
    count = len(of_pairs)
    if count < LEAST_FOR_EFFECT:
        message = f"an effect of {count} pairs"
        raise ValueError(message)
    variance = 0.0 if _same(of_pairs, sides) else float(of_pairs.var(ddof=1)) / count
    return _effect(is_ratio, True, (count, count), changes.mean(axis=1), variance, count - 1)


def unpaired_effect(blocks: Sequence[Block]) -> Effect:
    """Return the effect between independent values, whose variances may differ (Welch 1947).

    Raises:
        ValueError: a side of a block has fewer than two values.

    """
    is_ratio, sides = _scaled(blocks)
    parts = [(side, len(side)) for block in sides for side in block]
    if min(count for _, count in parts) < LEAST_FOR_EFFECT:
        message = "an effect between sides of fewer than two values"
        raise ValueError(message)
    terms = [
        0.0 if _same(side, [(side, side)]) else float(side.var(ddof=1)) / count
        for side, count in parts
    ]
    total = sum(terms)
    freedom = sum(term**2 / (count - 1) for term, (_, count) in zip(terms, parts, strict=True))
    estimates = np.array([second.mean() - first.mean() for first, second in sides])
    return _effect(
        is_ratio,
        False,
        (min(len(first) for first, _ in sides), min(len(second) for _, second in sides)),
        estimates,
        total / len(sides) ** 2,
        total**2 / freedom if freedom else 1.0,
    )


def _scaled(blocks: Sequence[Block]) -> tuple[bool, list[Block]]:
    """Return logarithms where every value has one; else the values."""
    is_ratio = all(bool((side > 0).all()) for block in blocks for side in block)
    if not is_ratio:
        return False, list(blocks)
    return True, [(np.log(first), np.log(second)) for first, second in blocks]


def _same(values: Values, sides: Sequence[Block]) -> bool:
    """Say whether values differ by what rounding makes of numbers of such size at most."""
    size = max(float(np.abs(side).max()) for block in sides for side in block)
    return float(np.ptp(values)) <= _SAME * size


def _effect(
    is_ratio: bool,
    paired: bool,
    counts: tuple[int, int],
    of_blocks: Values,
    variance: float,
    freedom: float,
) -> Effect:
    estimate = float(of_blocks.mean())
    error, p = math.sqrt(variance), None
    half = _half_width(error, freedom, CONFIDENCE)
    if error > 0:
        from scipy import special  # here, as its import takes longer than a picture of one run

        p = 2 * float(special.stdtr(freedom, -abs(estimate) / error))
    shown = [estimate, estimate - half, estimate + half, *of_blocks.tolist()]
    if is_ratio:
        shown = [math.exp(one) for one in shown]
    middle, low, high, *each = shown
    return Effect(is_ratio, paired, *counts, middle, low, high, p, tuple(each), error, freedom)


def _half_width(error: float, freedom: float, confidence: float) -> float:
    if error == 0:
        return 0.0
    from scipy import special

    return float(special.stdtrit(freedom, (1 + confidence) / 2)) * error
