# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Intervals of means, medians and shifts of small samples.

``docs/analysis.md`` says how often each holds; ``studies/coverage`` measures that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Ends = tuple[float | None, float | None]

CONFIDENCE = 0.95
RESAMPLES = 2000
BOOTSTRAP_SEED = 1
LEAST_FOR_INTERVAL = 5
"""With fewer values next to nothing is known of their spread, and no interval is given."""

EXACT_PAIRS = 100
EXACT_PRODUCT = 2500
"""Up to so many pairs, or so many differences between two sets, ranks have their exact
distribution; beyond, the normal one."""

_BATCH = 250

_MOST_KEPT = 100
"""Values of a set up to which its resamples are kept for the next set of that size."""


@dataclass(frozen=True)
class Mean:
    """A mean and the half-width of its interval by Student's t (Gosset 1908)."""

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


def mean_with_half_width(values: Sequence[float]) -> Mean:
    """Return the mean of values and the half-width of its interval.

    Raises:
        ValueError: there is no value.

    """
    if not len(values):
        message = "the mean of no values"
        raise ValueError(message)
    count, mean = len(values), math.fsum(values) / len(values)
    if count < 2:
        return Mean(count, mean, math.inf)
    from scipy import special  # here, as its import takes longer than a picture of one run

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return Mean(count, mean, quantile * math.sqrt(variance / count))


def mean_interval(values: Values) -> Ends:
    """Return the ends of the mean's interval by Student's t; none for fewer than 5 values."""
    if len(values) < LEAST_FOR_INTERVAL:
        return None, None
    found = mean_with_half_width(values.tolist())
    return found.mean - found.half_width, found.mean + found.half_width


def median_interval(values: Values) -> Ends:
    """Return the median's bootstrap interval, bias-corrected and accelerated (Efron 1987).

    None for fewer than 5 values. All draws have a fixed seed, so that the same values give the same
    interval.
    """
    if len(values) < LEAST_FOR_INTERVAL:
        return None, None
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    count = len(values)
    batches = _kept_resamples(count) if count <= _MOST_KEPT else _resamples(count)
    medians = np.concatenate([np.median(values[batch], axis=1) for batch in batches])
    low, high = _bca_shares(values, medians)
    low, high = np.percentile(medians, [100 * low, 100 * high])
    return float(low), float(high)


def _resamples(count: int) -> Iterator[NDArray[np.int64]]:
    """Yield which of so many values each resample has: the same for all sets of that size."""
    random = np.random.default_rng(BOOTSTRAP_SEED)
    for _ in range(RESAMPLES // _BATCH):
        yield random.integers(0, count, (_BATCH, count))


@lru_cache(maxsize=32)
def _kept_resamples(count: int) -> tuple[NDArray[np.int64], ...]:
    return tuple(_resamples(count))


def _bca_shares(values: Values, medians: Values) -> tuple[float, float]:
    """Return the shares of the resamples' medians below the ends of the interval.

    Efron 1987, with the acceleration of the jackknife. Where nearly all values are equal it is
    undefined, and the shares are those of plain percentiles.
    """
    from scipy import special  # here, as its import takes longer than a picture of one run

    tail = (1 - CONFIDENCE) / 2
    middle = np.median(values)
    below = ((medians < middle).mean() + (medians <= middle).mean()) / 2
    left_out = np.array([np.median(np.delete(values, place)) for place in range(len(values))])
    apart = left_out.mean() - left_out
    spread = float((apart**2).sum())
    if not 0 < below < 1 or spread == 0:
        return tail, 1 - tail
    bias = float(special.ndtri(below))
    acceleration = float((apart**3).sum()) / (6 * spread**1.5)
    shares = []
    for share in (tail, 1 - tail):
        moved = bias + float(special.ndtri(share))
        shares.append(float(special.ndtr(bias + moved / (1 - acceleration * moved))))
    return shares[0], shares[1]


def paired_shift(first: Values, second: Values) -> tuple[float, float | None, float | None]:
    """Return Hodges and Lehmann's estimate of second less first over pairs, and its interval.

    The interval holds the shifts that Wilcoxon's signed rank test does not reject (Hollander and
    Wolfe 1999, 3.3). Where even the most extreme ranks leave a p above 5 % there is none.
    """
    difference = second - first
    left, right = np.triu_indices(len(difference))
    averages = np.sort((difference[left] + difference[right]) / 2)
    return _with_ends(averages, _first_rank_of_pairs(len(difference)))


def unpaired_shift(first: Values, second: Values) -> tuple[float, float | None, float | None]:
    """Return Hodges and Lehmann's estimate of second less first over all differences.

    The interval holds the shifts that Mann and Whitney's test does not reject (ibid., 4.3). Where
    even the most extreme ranks leave a p above 5 % there is none.
    """
    differences = np.sort((second[None, :] - first[:, None]).ravel())
    return _with_ends(differences, _first_rank_of_sets(*sorted((len(first), len(second)))))


def _with_ends(ordered: Values, rank: int) -> tuple[float, float | None, float | None]:
    """Return the median of ordered values, and those of a rank (from 1) from either end."""
    middle = float(np.median(ordered))
    if rank < 1:
        return middle, None, None
    return middle, float(ordered[rank - 1]), float(ordered[-rank])


@lru_cache(maxsize=256)
def _first_rank_of_pairs(count: int) -> int:
    """Return the rank of the interval's lower end among averages of pairs; 0 if there is none."""
    if count < LEAST_FOR_INTERVAL:
        return 0
    if count > EXACT_PAIRS:
        whole = count * (count + 1)
        return _by_normal(whole / 4, whole * (2 * count + 1) / 24)
    # How likely each sum of ranks is if every sign is as likely as the other.
    likely = np.ones(1)
    for rank in range(1, count + 1):
        likely = (np.pad(likely, (0, rank)) + np.pad(likely, (rank, 0))) / 2
    return _first_rank(likely)


@lru_cache(maxsize=256)
def _first_rank_of_sets(fewer: int, more: int) -> int:
    """Return the same among the differences between two sets."""
    if fewer < LEAST_FOR_INTERVAL:
        return 0
    product = fewer * more
    if product > EXACT_PRODUCT:
        return _by_normal(product / 2, product * (fewer + more + 1) / 12)
    # How likely each number of pairs out of order is: by which set has the greatest value.
    row: list[Values] = [np.ones(1) for _ in range(more + 1)]
    for one in range(1, fewer + 1):
        following: list[Values] = [np.ones(1)]
        for other in range(1, more + 1):
            shifted = np.pad(row[other], (other, 0)) * one
            kept = np.pad(following[other - 1], (0, one)) * other
            following.append((shifted + kept) / (one + other))
        row = following
    return _first_rank(row[more])


def _first_rank(likely: Values) -> int:
    """Return how many of the lowest sums are together no likelier than half of 5 %."""
    below = np.cumsum(likely)
    return int(np.searchsorted(below, (1 - CONFIDENCE) / 2 * (1 + 1e-12), side="right"))


def _by_normal(mean: float, variance: float) -> int:
    from scipy import special

    return math.floor(mean - float(special.ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(variance))


def least_p(count: int, other: int | None = None) -> float:
    """Return the least two-sided p of a rank test: of so many pairs, or of two sets."""
    return min(1.0, 2.0 / (2**count if other is None else math.comb(count + other, other)))
