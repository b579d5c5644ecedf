"""Means with their intervals, by Student's t (Gosset 1908)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean and the half-width of its confidence interval."""

    count: int
    mean: float
    half_width: float
    """Infinite for fewer than two values."""

    @property
    def relative(self) -> float:
        """Half-width by the mean's absolute value."""
        if self.half_width == 0:
            return 0.0
        return self.half_width / abs(self.mean) if self.mean else math.inf


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of values and its interval.

    Raises:
        ValueError: there is no value.

    """
    if not values:
        message = "the mean of no values"
        raise ValueError(message)
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return Estimate(count, mean, math.inf)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Estimate(
        count, mean, t_quantile((1 + confidence) / 2, count - 1) * math.sqrt(variance / count)
    )


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t for a probability from 0.5 up."""
    low, high = 0.0, 2.0
    while _t_above(high, freedom) > 1 - probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if _t_above(middle, freedom) > 1 - probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_above(t: float, freedom: int) -> float:
    """Return the probability of more than t, by the finite series in theta = atan(t / sqrt(n)).

    Abramowitz & Stegun 1964, equations 26.7.3 and 26.7.4.
    """
    theta = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(theta)
    total, term = 0.0, (cosine if freedom % 2 else 1.0)
    start = 1 if freedom % 2 else 0
    for k in range(start, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    within = math.sin(theta) * total
    if freedom % 2:
        within = 2 / math.pi * (theta + within)
    return (1 - within) / 2


def checkpoints(least: int, most: int) -> list[int]:
    """Return after how many replications a stopping rule is looked at.

    A quarter more each time, whatever runs side by side: so the decision depends on the results
    alone, and the interval is not looked at so often that it is narrow once by chance.
    """
    found = [least]
    while found[-1] < most:
        found.append(min(most, math.ceil(found[-1] * 1.25)))
    return found
