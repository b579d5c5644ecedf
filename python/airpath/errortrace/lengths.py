# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions of the lengths of runs: fitted, and as a scenario writes them.

The mixture of geometric distributions is fitted by expectation maximisation (Dempster, Laird and
Rubin 1977), the discrete Weibull distribution (Nakagawa and Osaki 1975) by maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airpath.errortrace.model import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_PARTS = 4
"""Parts of the largest mixture that is tried."""
_STEPS = 300
_SETTLED = 1e-8
"""Gain per run in three steps of expectation maximisation below which it ends."""
_EXACT = 100
"""Lengths up to this are counted one by one, longer ones in bins of a few per cent."""
_BINS_PER_FOLD = 40
_SURE = 1 - 1e-12
_LEAST_EXCESS = 1e-9
"""Mean length of a part above 1 that is told from none."""


@dataclass(frozen=True)
class MixedGeometric:
    """Lengths whose distribution is a mixture of geometric ones."""

    weights: NDArray[np.float64]
    means: NDArray[np.float64]

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return 2 * len(self.weights) - 1

    def log_probability(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each length."""
        ends = np.log(np.minimum(1 / self.means, _SURE))
        return self._mixed(np.asarray(lengths, dtype=np.float64), ends)

    def log_at_least(self, length: int) -> float:
        """Return the logarithm of the probability that a run is at least so long."""
        return float(self._mixed(np.array([float(length)]), np.zeros(len(self.means)))[0])

    def _mixed(
        self, lengths: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        stays = np.log1p(-np.minimum(1 / self.means, _SURE))
        parts = np.log(self.weights) + ends + (lengths[:, np.newaxis] - 1) * stays
        mixed: NDArray[np.float64] = np.logaddexp.reduce(parts, axis=1)
        return mixed

    def table(self) -> str:
        """Return the distribution as an inline table of TOML."""
        if len(self.means) == 1:
            return f'{{ type = "geometric", mean = {number(self.means[0])} }}'
        parts = ", ".join(
            f"{{ weight = {number(weight)}, mean = {number(mean)} }}"
            for weight, mean in zip(self.weights, self.means, strict=True)
        )
        return f'{{ type = "mixed_geometric", of = [{parts}] }}'


@dataclass(frozen=True)
class Weibull:
    """Lengths of a discrete Weibull distribution: P(L > n) = exp(-(n / scale)^shape)."""

    shape: float
    scale: float

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return 2

    def log_probability(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each length."""
        n = np.asarray(lengths, dtype=np.float64)
        before = np.maximum(n - 1, 0)
        below = (before / self.scale) ** self.shape
        # The difference of two powers that may be near to each other.
        growth = np.expm1(self.shape * np.log1p(1 / np.maximum(before, 1)))
        step = np.where(before > 0, below * growth, (1 / self.scale) ** self.shape)
        with np.errstate(divide="ignore"):
            found: NDArray[np.float64] = np.log(-np.expm1(-step)) - below
        return found

    def log_at_least(self, length: int) -> float:
        """Return the logarithm of the probability that a run is at least so long."""
        return float(-(((length - 1) / self.scale) ** self.shape))

    def table(self) -> str:
        """Return the distribution as an inline table of TOML."""
        shape, scale = number(self.shape), number(self.scale)
        return f'{{ type = "weibull", shape = {shape}, scale = {scale} }}'


def binned(
    lengths: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lengths and how often each occurs; long ones as means of narrow bins."""
    values, counts = np.unique(lengths, return_counts=True)
    keys = np.where(
        values <= _EXACT,
        values,
        _EXACT + np.ceil(_BINS_PER_FOLD * np.log(np.maximum(values, 1) / _EXACT)),
    )
    _, place = np.unique(keys, return_inverse=True)
    weights = np.bincount(place, counts).astype(np.float64)
    return np.bincount(place, counts * values) / weights, weights


def fit_mixed_geometric(lengths: NDArray[np.int64]) -> MixedGeometric:
    """Return the mixture of geometric distributions that fits lengths best.

    Parts are added as long as the Bayesian information criterion (Schwarz 1978) falls.
    """
    values, counts = binned(lengths)
    best, least = None, np.inf
    for parts in range(1, MOST_PARTS + 1):
        if parts > len(values):
            break
        found, log = max(
            (
                _expectation_maximisation(values, counts, start)
                for start in _starts(values, counts, parts)
            ),
            key=lambda pair: pair[1],
        )
        criterion = found.parameters * np.log(counts.sum()) - 2 * log
        if criterion >= least:
            break
        best, least = found, criterion
    assert best is not None
    order = np.argsort(best.means)
    return MixedGeometric(best.weights[order], best.means[order])


def _starts(
    values: NDArray[np.float64], counts: NDArray[np.float64], parts: int
) -> list[MixedGeometric]:
    """Return mixtures to begin with: runs sorted by length, cut evenly or at the tail."""
    below = (np.cumsum(counts) - counts / 2) / counts.sum()
    steps = np.arange(1, parts) / parts
    tail = 1 - 0.2 ** np.arange(1, parts)
    found = []
    for edges in [steps] if parts == 1 else [steps, tail]:
        group = np.searchsorted(edges, below)
        weights = np.bincount(group, counts, minlength=parts)
        sums = np.bincount(group, counts * values, minlength=parts)
        means = np.where(weights > 0, sums / np.maximum(weights, 1), values.max())
        # Groups of one and the same mean would never part.
        means = 1 + (means - 1 + 1e-3) * (1 + 0.05 * np.arange(parts))
        found.append(MixedGeometric(np.maximum(weights / counts.sum(), 1e-3), means))
    return [MixedGeometric(one.weights / one.weights.sum(), one.means) for one in found]


def _expectation_maximisation(
    values: NDArray[np.float64], counts: NDArray[np.float64], start: MixedGeometric
) -> tuple[MixedGeometric, float]:
    """Return a mixture that fits locally best, and the logarithm of its likelihood.

    Every other step is drawn out along the way of two steps (Varadhan and Roland 2008), as far as
    that is no worse.
    """
    rows = values[:, np.newaxis]

    def step(point: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the next point, and the logarithm of the likelihood at this one."""
        weights, ends = _weights_and_ends(point)
        logs = np.log(weights * ends) + (rows - 1) * np.log1p(-ends)
        highest = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - highest)
        sums = shares.sum(axis=1, keepdims=True)
        log = float(counts @ (highest + np.log(sums))[:, 0])
        shares *= counts[:, np.newaxis] / sums
        held = np.maximum(shares.sum(axis=0), 1e-9)
        return _point(held / held.sum(), values @ shares / held), log

    here = _point(start.weights, start.means)
    last = -np.inf
    for _ in range(_STEPS):
        one, log = step(here)
        if log - last < _SETTLED * counts.sum():
            break
        last = log
        two, near = step(one)
        first, change = one - here, two - 2 * one + here
        bend = float(np.linalg.norm(change))
        stride = max(float(np.linalg.norm(first)) / bend, 1.0) if bend > 0 else 1.0
        far, there = step(here + 2 * stride * first + stride**2 * change)
        here = far if there >= near else two
    weights, ends = _weights_and_ends(here)
    return MixedGeometric(weights, 1 / ends), last


def _point(weights: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coordinates without bounds: logarithms of weights, and of means above 1."""
    return np.concatenate((np.log(weights), np.log(np.maximum(means - 1, _LEAST_EXCESS))))


def _weights_and_ends(
    point: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of parts, and the probability with which a unit ends their runs."""
    logs, excesses = point.reshape(2, -1)
    weights = np.exp(np.maximum(logs - logs.max(), -30.0))
    return weights / weights.sum(), 1 / (1 + np.exp(np.clip(excesses, np.log(_LEAST_EXCESS), 60.0)))


def fit_weibull(lengths: NDArray[np.int64]) -> Weibull:
    """Return the discrete Weibull distribution of the highest likelihood."""
    from scipy import optimize

    values, counts = np.unique(lengths, return_counts=True)
    mean = float(counts @ values) / counts.sum()
    stay = max(1 - 1 / mean, 1e-6)
    lowest, highest = np.log([0.05, 1e-3]), np.log([50.0, 1e12])

    def made(point: NDArray[np.float64]) -> Weibull:
        shape, scale = np.exp(np.clip(point, lowest, highest))
        return Weibull(float(shape), float(scale))

    def cost(point: NDArray[np.float64]) -> float:
        logs = np.maximum(made(point).log_probability(values), -1e6)
        outside = np.abs(point - np.clip(point, lowest, highest)).sum()
        return float(-(counts @ logs) / counts.sum() + outside)

    start = np.array([0.0, np.log(-1 / np.log(stay))])
    options = {"xatol": 1e-7, "fatol": 1e-12, "maxiter": 2000}
    found = optimize.minimize(cost, start, method="Nelder-Mead", options=options)
    return made(found.x)
