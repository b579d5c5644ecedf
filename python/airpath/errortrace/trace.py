# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Traces of errors as lengths of runs: read through the engine, cut, measured."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from airpath.engine import find_engine

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LONGEST = 100_000_000
"""Units of the longest trace that is fitted: each takes a byte of memory, or a few."""

LAGS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Distances at which the autocorrelation is told."""

QUANTILES = (0.5, 0.9, 0.99)


class TraceError(Exception):
    """A trace cannot be read or fitted; the message is all that the user reads."""


@dataclass(frozen=True)
class Trace:
    """A trace of errors."""

    lengths: NDArray[np.int64]
    """Lengths of the runs without errors and of errors, in turn; the first is without errors, and
    may be 0."""

    @cached_property
    def units(self) -> int:
        """Number of packets, frames, bits or blocks."""
        return int(self.lengths.sum())

    @cached_property
    def errors(self) -> int:
        """Number of units in error."""
        return int(self.lengths[1::2].sum())

    @cached_property
    def bursts(self) -> int:
        """Number of runs of errors."""
        return len(self.lengths) // 2

    @property
    def error_rate(self) -> float:
        """Share of units in error."""
        return self.errors / self.units

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first unit of each run."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def elements(self) -> NDArray[np.uint8]:
        """A one for each unit in error, a zero for each other."""
        kinds = (np.arange(len(self.lengths)) % 2).astype(np.uint8)
        return np.repeat(kinds, self.lengths)

    @cached_property
    def good(self) -> NDArray[np.int64]:
        """Lengths of the runs without errors that begin and end within the trace."""
        return self.lengths[2:-1:2]

    @cached_property
    def bad(self) -> NDArray[np.int64]:
        """Lengths of the runs of errors that begin and end within the trace."""
        first = 1 if self.lengths[0] > 0 else 3
        return self.lengths[first:-1:2]

    def before(self, run: int) -> Trace:
        """Return the part before a run."""
        return Trace(self.lengths[:run])

    def first_bursts(self, count: int) -> Trace:
        """Return the part up to the end of so many runs of errors."""
        return self if count >= self.bursts else self.before(2 * count)

    def split(self, share: float) -> int:
        """Return the number of the first good run that begins behind a share of the units."""
        run = int(np.searchsorted(self.starts, share * self.units))
        return run + run % 2

    def autocorrelation(self, lag: int) -> float:
        """Return the correlation of units so far from each other; NaN if the trace is shorter."""
        if lag >= self.units:
            return float("nan")
        both = np.count_nonzero(self.elements[:-lag] & self.elements[lag:])
        rate = self.error_rate
        return (both / (self.units - lag) - rate**2) / (rate * (1 - rate))


@dataclass(frozen=True)
class RunStatistics:
    """Lengths of complete runs of one kind, in units."""

    runs: int
    mean: float
    quantiles: dict[float, float]


@dataclass(frozen=True)
class Statistics:
    """Figures of a trace."""

    units: int
    error_rate: float
    good: RunStatistics
    bad: RunStatistics
    autocorrelation: dict[int, float]


def statistics(trace: Trace) -> Statistics:
    """Return the figures of a trace."""
    return Statistics(
        trace.units,
        trace.error_rate,
        _of_runs(trace.good),
        _of_runs(trace.bad),
        {lag: trace.autocorrelation(lag) for lag in LAGS if lag < trace.units // 2},
    )


def _of_runs(lengths: NDArray[np.int64]) -> RunStatistics:
    found = np.quantile(lengths, QUANTILES, method="inverted_cdf")
    quantiles = {share: float(value) for share, value in zip(QUANTILES, found, strict=True)}
    return RunStatistics(len(lengths), float(lengths.mean()), quantiles)


def exceedance(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each length that occurs, and the share of runs that are at least as long."""
    values, counts = np.unique(lengths, return_counts=True)
    return values, counts[::-1].cumsum()[::-1] / len(lengths)


def read(file: Path, file_format: str | None, units: int | None) -> Trace:
    """Return the trace in a file, of any format that the engine reads.

    Raises:
        TraceError: it cannot be read, or is too long.

    """
    command = [find_engine(), "trace", "show", "--json", "--runs"]
    command += ["--from", file_format] if file_format else []
    command += ["--units", str(units)] if units is not None else []
    result = subprocess.run([*command, "--", str(file)], capture_output=True, check=False)
    if result.returncode != 0:
        raise TraceError(result.stderr.decode(errors="replace").strip())
    trace = Trace(np.array(json.loads(result.stdout)["runs"], dtype=np.int64))
    if trace.units > LONGEST:
        message = f"{file} has {trace.units} units; at most {LONGEST} are fitted, so cut a part out"
        raise TraceError(message)
    return trace


def drawn(errors: str, units: int, seed: int) -> Trace:
    """Return a trace that the engine draws from an error process.

    Args:
        errors: the process, as a table of TOML.
        units: length of the trace.
        seed: the random seed.

    Raises:
        TraceError: the engine does not accept the process.

    """
    command = [find_engine(), "trace", "generate", errors, "-", "--quiet"]
    command += ["--units", str(units), "--seed", str(seed)]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode != 0:
        raise TraceError(result.stderr.decode(errors="replace").strip())
    head = result.stdout.rindex(b"#")
    digits = np.frombuffer(result.stdout[result.stdout.index(b"\n", head) :], dtype=np.uint8)
    return of_elements(digits[digits >= ord("0")] - ord("0"))


def of_elements(elements: NDArray[np.uint8]) -> Trace:
    """Return the trace of units that are in error where there is a one."""
    changes = np.flatnonzero(np.diff(elements)) + 1
    edges = np.concatenate(([0], changes, [len(elements)]))
    lengths = np.diff(edges)
    if len(elements) and elements[0]:
        lengths = np.concatenate(([0], lengths))
    return Trace(lengths.astype(np.int64))
