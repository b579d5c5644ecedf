# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Markov-based trace analysis: error-free and lossy states, a Markov chain within the lossy ones.

Source: Konrad, Zhao, Joseph and Ludwig 2003. The change-of-state constant C is the mean length of
error bursts plus one standard deviation. A run of at least C units without errors is an error-free
state; all between two such runs, from an error to an error, is a lossy state. Lengths of both are
geometric, those of error-free states from C on. Within lossy states the chance of an error depends
on the last k units.

The likelihood is that of the process as a scenario draws it: after an error the state is lossy and
the last units are known, so that a run without errors has either stayed within the state or left it
at one of its units, and then been an error-free state up to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airpath.errortrace.model import number, probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from airpath.errortrace.trace import Trace

    Vector = NDArray[np.float64]
    Whole = NDArray[np.int64]

ORDER = 6
"""Order of the chain, of Konrad et al."""
HIGHEST_ORDER = 12

_SURE = 1 - 1e-9


@dataclass(frozen=True)
class Mta:
    """The model."""

    constant: float
    """The change-of-state constant (C), in units."""
    error_free_mean: float
    lossy_mean: float
    error_after: Vector
    """Error probabilities by the last units, the last one being the lowest bit of the index."""

    @property
    def least(self) -> int:
        """Length of the shortest error-free state."""
        return max(int(np.ceil(self.constant)), 1)

    @property
    def order(self) -> int:
        """Number of units on which an error depends."""
        return len(self.error_after).bit_length() - 1

    @property
    def parameters(self) -> int:
        """Number of parameters that were fitted."""
        return len(self.error_after) + 3

    def errors(self) -> str:
        """Return the error process of a scenario, as an inline table of TOML."""
        free = (
            f'{{ type = "geometric", mean = {number(self.error_free_mean)}, least = {self.least} }}'
        )
        lossy = f'{{ type = "geometric", mean = {number(self.lossy_mean)} }}'
        table = ", ".join(probability(value) for value in self.error_after)
        return f'{{ type = "mta", error_free = {free}, lossy = {lossy}, error_after = [{table}] }}'

    def log_likelihood(self, trace: Trace, cuts: Sequence[int]) -> Vector:
        """Return the logarithms of the probabilities of parts of a trace (see ``Model``)."""
        begin = cuts[0]
        lengths = trace.lengths[begin:]
        history = histories(trace, np.arange(begin, len(trace.lengths)), self.order)
        logs = np.empty(len(lengths))
        logs[0::2] = self._good_runs(lengths[0::2], history[0::2])
        # The run before has been judged together with the error behind it.
        first = ((history[1::2] << 1) | 1) & (len(self.error_after) - 1)
        logs[1::2] = self._bad_runs(lengths[1::2] - 1, first)
        if len(lengths) % 2:
            logs[-1] = self._good_end(int(lengths[-1]), int(history[-1]))
        # The first unit is given.
        logs[0] -= self._good_end(1, int(history[0]))
        sums: Vector = np.add.reduceat(logs, np.array(cuts) - begin)
        return sums

    @property
    def _chances(self) -> Vector:
        """Error probabilities that leave something else possible."""
        return np.clip(self.error_after, 1 - _SURE, _SURE)

    @property
    def _leaves(self) -> float:
        return min(1 / self.lossy_mean, _SURE)

    @property
    def _ends(self) -> float:
        return min(1 / (self.error_free_mean - self.least + 1), _SURE)

    def _staying(self) -> tuple[Vector, Vector]:
        """Return what it takes to stay lossy without errors, by the last units.

        The first is, for each history and number of units up to the order, the logarithm of the
        probability of so many units without errors; the second that of an error behind them.
        """
        mask = len(self.error_after) - 1
        history = np.arange(mask + 1)
        stays = np.zeros((mask + 1, self.order + 1))
        hit = np.empty_like(stays)
        for units in range(self.order + 1):
            chance = self._chances[history << units & mask]
            hit[:, units] = np.log((1 - self._leaves) * chance)
            if units < self.order:
                stays[:, units + 1] = stays[:, units] + np.log((1 - self._leaves) * (1 - chance))
        return stays, hit

    def _good_runs(self, lengths: Whole, history: Whole) -> Vector:
        """Return logarithms: of a run without errors after this history, and an error behind it."""
        order = self.order
        stays, hit = self._staying()
        again = np.log((1 - self._leaves) * (1 - self._chances[0]))
        short = np.minimum(lengths, order)
        total = stays[history, short] + (lengths - short) * again + hit[history, short]
        # Leaving after some units: an error-free state has all others.
        goes_on, ends = np.log1p(-self._ends), np.log(self._ends)
        rest = lengths - self.least
        for units in range(order + 1):
            left = stays[history, units] + np.log(self._leaves) + ends + (rest - units) * goes_on
            total = np.logaddexp(total, np.where(units <= rest, left, -np.inf))
        more = np.maximum(rest - order, 0)
        high, low = max(again, goes_on), min(again, goes_on)
        ratio = low - high
        # The sum of again^d goes_on^(more - d) over d from 1 to more.
        with np.errstate(divide="ignore"):
            if ratio > -1e-12:
                terms = np.log(more) + (more - 1) * high
            else:
                terms = (
                    (more - 1) * high + np.log(-np.expm1(more * ratio)) - np.log(-np.expm1(ratio))
                )
        left = stays[history, order] + np.log(self._leaves) + ends + again + terms
        found: Vector = np.logaddexp(total, np.where(more > 0, left, -np.inf))
        return found

    def _bad_runs(self, lengths: Whole, history: Whole) -> Vector:
        """Return logarithms: of so many more errors after this history."""
        mask = len(self.error_after) - 1
        logs = np.log((1 - self._leaves) * self._chances)
        total: Vector = np.maximum(lengths - self.order, 0) * logs[mask]
        for errors in range(self.order):
            total += np.where(lengths > errors, logs[history], 0.0)
            history = (history << 1 | 1) & mask
        return total

    def _good_end(self, length: int, history: int) -> float:
        """Return the logarithm of the probability of at least so many units without errors."""
        stays, _ = self._staying()
        again = np.log((1 - self._leaves) * (1 - self._chances[0]))
        units = np.arange(length + 1)
        short = np.minimum(units, self.order)
        lossy = stays[history, short] + (units - short) * again
        rest = np.maximum(length - units[:-1] - self.least, 0)
        left = lossy[:-1] + np.log(self._leaves) + rest * np.log1p(-self._ends)
        return float(np.logaddexp.reduce(np.append(left, lossy[-1])))


def histories(trace: Trace, runs: Whole, order: int) -> Whole:
    """Return the last units before runs, the last one being the lowest bit; none is no error."""
    found = np.zeros(len(runs), dtype=np.int64)
    starts = trace.starts[runs]
    for distance in range(1, order + 1):
        place = starts - distance
        bits = trace.elements[np.maximum(place, 0)].astype(np.int64)
        found |= np.where(place >= 0, bits, 0) << (distance - 1)
    return found


def fit(trace: Trace, order: int = ORDER) -> Mta:
    """Return the model that fits a trace.

    Args:
        trace: the trace.
        order: of the chain within lossy states.

    """
    constant = float(trace.bad.mean() + trace.bad.std())
    least = max(int(np.ceil(constant)), 1)
    runs = trace.lengths
    free = np.flatnonzero((np.arange(len(runs)) % 2 == 0) & (runs >= least))
    complete = free[(free > 0) & (free < len(runs) - 1)]
    error_free = runs[complete]
    ends = np.cumsum(runs)
    lossy = trace.starts[complete[1:]] - ends[complete[:-1]]
    if not len(lossy):
        # No error-free state, or one: all else is lossy.
        lossy = np.array([trace.units - error_free.sum()])
    mean_free = float(error_free.mean()) if len(error_free) else float(trace.units)
    visits, hits = _counts(trace, free, order)
    return Mta(constant, mean_free, float(lossy.mean()), _table(visits, hits))


def _counts(trace: Trace, free: Whole, order: int) -> tuple[Vector, Vector]:
    """Return for each history how many units of lossy states follow it, and how many are errors."""
    elements = trace.elements
    history = np.zeros(len(elements), dtype=np.uint16)
    for distance in range(1, min(order, len(elements) - 1) + 1):
        history[distance:] |= elements[:-distance].astype(np.uint16) << (distance - 1)
    kinds = np.zeros(len(trace.lengths), dtype=bool)
    kinds[free] = True
    counted = np.repeat(~kinds, trace.lengths)
    # The error with which a lossy state begins is no matter of chance.
    begins = trace.starts[free[free < len(trace.lengths) - 1] + 1]
    counted[begins] = False
    counted[: trace.lengths[0]] = False
    chosen = history[counted]
    size = 1 << order
    visits = np.bincount(chosen, minlength=size)
    hits = np.bincount(chosen, elements[counted], minlength=size)
    return visits.astype(np.float64), hits.astype(np.float64)


def _table(visits: Vector, hits: Vector) -> Vector:
    """Return error probabilities: counts, with one more unit as after the history less its oldest.

    A history that never came has the probability of the shorter one.
    """
    found = np.array([(hits.sum() + 0.5) / (visits.sum() + 1)])
    order = len(visits).bit_length() - 1
    for units in range(1, order + 1):
        size = 1 << units
        shorter_visits = visits.reshape(-1, size).sum(axis=0)
        shorter_hits = hits.reshape(-1, size).sum(axis=0)
        found = (shorter_hits + np.tile(found, 2)) / (shorter_visits + 1)
    table: Vector = np.clip(found, 1 - _SURE, _SURE)
    return table
