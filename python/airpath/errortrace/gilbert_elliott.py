# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The Gilbert-Elliott model: two states with an error probability each.

Source: Gilbert 1960, Elliott 1963. The state is not seen, so that the likelihood of a trace is the
product of a matrix for each unit (Baum, Petrie, Soules and Weiss 1970). A run of n equal units is
the n-th power of its matrix, and the product over runs is made by pairs. All four parameters are
fitted by maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airpath.errortrace.model import probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from airpath.errortrace.trace import Trace

    Vector = NDArray[np.float64]

MOST_BURSTS = 200_000
"""Bursts that are fitted at most, from the first on: more make the parameters no better."""
_FIRST_BURSTS = 1_500
"""Bursts by which the best of several beginnings is found."""
_WARM_UP_RUNS = 20_000
"""Runs before a part by which its state is known as well as by all of them."""
_STEP = 1e-6
"""Step of a logit by which a gradient is told."""
_EDGE = 20.0
"""Largest logit of a probability: what is nearer to 0 or 1 is either."""


@dataclass(frozen=True)
class GilbertElliott:
    """The model, its parameters named as a scenario has them."""

    good_to_bad: float
    bad_to_good: float
    error_in_good: float
    error_in_bad: float

    parameters = 4

    def errors(self) -> str:
        """Return the error process of a scenario, as an inline table of TOML."""
        names = ("good_to_bad", "bad_to_good", "error_in_good", "error_in_bad")
        keys = ", ".join(f"{name} = {_probability(getattr(self, name))}" for name in names)
        return f'{{ type = "gilbert_elliott", {keys} }}'

    def log_likelihood(self, trace: Trace, cuts: Sequence[int]) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities of parts of a trace (see ``Model``)."""
        lengths = trace.lengths
        begin = cuts[0]
        first = max(begin - _WARM_UP_RUNS, 0)
        state = self.stationary()
        if first < begin:
            state = _after(state, *_Product(lengths[first:begin], first).of(self))[0]
        # The first unit of the first part is given.
        state = _after(state, self.matrix(0), 0.0)[0]
        logs = []
        ends = [*cuts[1:], len(lengths)]
        for start, end in zip(cuts, ends, strict=True):
            part = lengths[start:end]
            if start == begin:
                part = np.concatenate(([part[0] - 1], part[1:]))
            state, log = _after(state, *_Product(part, start).of(self))
            logs.append(log)
        return np.array(logs)

    def matrix(self, error: int) -> Vector:
        """Return the probabilities of a unit in error (1) or not (0), and of the next state."""
        hit = np.array([self.error_in_good, self.error_in_bad])
        p, r = self.good_to_bad, self.bad_to_good
        moves = np.array([[1 - p, p], [r, 1 - r]])
        found: Vector = (hit if error else 1 - hit)[:, np.newaxis] * moves
        return found

    def stationary(self) -> Vector:
        """Return the probabilities of the states in the long run."""
        return np.array([self.bad_to_good, self.good_to_bad]) / (
            self.bad_to_good + self.good_to_bad
        )


def _powers(matrices: Vector, lengths: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """Return powers of matrices of two states, and the logarithms of their scales.

    Args:
        matrices: one for each model.
        lengths: the exponents.

    Returns:
        The four entries by model and exponent, and the scales by model and exponent.

    """
    a, b, c, d = matrices.reshape(-1, 4, 1).swapaxes(0, 1)
    root = np.sqrt((a - d) ** 2 + 4 * b * c)
    high = (a + d + root) / 2
    low = (a * d - b * c) / high
    gap = np.maximum(high - low, 1e-300)
    first = np.stack(((a - low) / gap, b / gap, c / gap, (d - low) / gap))
    second = np.array([1.0, 0.0, 0.0, 1.0]).reshape(4, 1, 1) - first
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.exp(lengths * np.log(abs(low / high)))
    small = np.where(lengths == 0, 1.0, small)
    small = np.where((low < 0) & (lengths % 2 == 1), -small, small)
    scales = lengths.astype(np.float64) * np.log(high)
    return first + second * small, scales


class _Product:
    """Product of the matrices of runs, for models with any parameters."""

    def __init__(self, lengths: NDArray[np.int64], first: int) -> None:
        """Sort the runs by length.

        Args:
            lengths: of the runs.
            first: number of the first; those of errors have odd numbers.

        """
        self.count = len(lengths)
        self.kinds = [
            (offset, (first + offset) % 2, *np.unique(lengths[offset::2], return_inverse=True))
            for offset in (0, 1)
        ]
        self.counts = [np.bincount(place) for _, _, _, place in self.kinds]

    def of(self, model: GilbertElliott) -> tuple[Vector, float]:
        """Return the product, and the logarithm of its scale."""
        products, scales = self.of_all([model])
        return products[0], float(scales[0])

    def of_all(self, models: Sequence[GilbertElliott]) -> tuple[Vector, Vector]:
        """Return the product for each of some models, and the logarithms of their scales."""
        matrices = np.empty((4, len(models), self.count))
        scales = np.zeros(len(models))
        for (offset, error, values, place), counts in zip(self.kinds, self.counts, strict=True):
            made, logs = _powers(np.array([model.matrix(error) for model in models]), values)
            matrices[:, :, offset::2] = made[:, :, place]
            scales += logs @ counts
        while matrices.shape[2] > 1:
            pairs = matrices.shape[2] // 2
            x, y = matrices[:, :, : 2 * pairs : 2], matrices[:, :, 1 : 2 * pairs : 2]
            made = np.empty((4, len(models), matrices.shape[2] - pairs))
            half = made[:, :, :pairs]
            half[:2] = x[0] * y[:2] + x[1] * y[2:]
            half[2:] = x[2] * y[:2] + x[3] * y[2:]
            sums = np.maximum(half.sum(axis=0), 1e-300)
            half /= sums
            scales += np.log(sums).sum(axis=1)
            made[:, :, pairs:] = matrices[:, :, 2 * pairs :]
            matrices = made
        return matrices[:, :, 0].T.reshape(-1, 2, 2), scales


def _after(state: Vector, matrix: Vector, scale: float) -> tuple[Vector, float]:
    """Return the probabilities of the states after units, and the logarithm of theirs."""
    made = state @ matrix
    total = max(float(made.sum()), 1e-300)
    return made / total, scale + float(np.log(total))


def fit(trace: Trace) -> GilbertElliott:
    """Return the model of the highest likelihood."""
    from scipy import optimize

    def better(start: Vector, part: Trace, flat: float) -> tuple[float, Vector]:
        products = _Product(part.lengths, 0)

        def cost(point: Vector) -> tuple[float, Vector]:
            """Return the cost per burst and its gradient, from one product for all points."""
            points = np.vstack((point, point + _STEP * np.eye(len(point))))
            models = [_model(one) for one in points]
            logs = np.array(
                [
                    _after(model.stationary(), product, scale)[1]
                    for model, product, scale in zip(models, *products.of_all(models), strict=True)
                ]
            )
            costs = -logs / part.bursts
            return float(costs[0]), (costs[1:] - costs[0]) / _STEP

        found = optimize.minimize(
            cost, start, method="BFGS", jac=True, options={"gtol": flat, "maxiter": 200}
        )
        return float(found.fun), found.x

    few, many = trace.first_bursts(_FIRST_BURSTS), trace.first_bursts(MOST_BURSTS)
    tried = [better(start, few, 1e-3) for start in _beginnings(trace)]
    _, point = better(min(tried, key=lambda pair: pair[0])[1], many, 1e-6)
    model = _model(point)
    if model.error_in_good > model.error_in_bad:
        model = GilbertElliott(
            model.bad_to_good, model.good_to_bad, model.error_in_bad, model.error_in_good
        )
    return model


def _beginnings(trace: Trace) -> list[Vector]:
    """Return parameters from which to look for better ones."""
    good, bad = trace.good.mean(), trace.bad.mean()
    # Runs of errors are stays in the bad state.
    simple = (1 / good, 1 / bad, 1e-4, 0.99)
    # Bursts that are near to each other are one stay.
    gap = np.quantile(trace.good, 0.7)
    apart = max(int((trace.good > gap).sum()), 1)
    within = trace.good[trace.good <= gap].sum()
    stays = (trace.bad.sum() + within) / (apart + 1)
    loose = (apart / trace.units, 1 / stays, 1e-3, trace.bad.sum() / (trace.bad.sum() + within))
    mixed = (apart / trace.units, 1 / stays, trace.error_rate / 2, 0.5)
    ways = np.clip(np.array([simple, loose, mixed]), 1e-6, 0.999)
    return list(np.log(ways / (1 - ways)))


def _model(point: Vector) -> GilbertElliott:
    p, r, good, bad = 1 / (1 + np.exp(-np.clip(point, -_EDGE, _EDGE)))
    return GilbertElliott(float(p), float(r), float(good), float(bad))


def _probability(value: float) -> str:
    """Return a probability as TOML; next to none and next to certain are that."""
    if value < 1e-8:
        return "0.0"
    return "1.0" if value > 1 - 1e-8 else probability(value)
