# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Alternating renewal processes: the extended on/off model, and runs of Weibull lengths.

Runs without errors and runs of errors follow each other, and all lengths are independent. Extended
on/off: Ji, Liu, Towsley, Ge and Kurose 2004; Weibull lengths: Karner, Nemethova, Svoboda and Rupp
2007. Runs that the begin or the end of the trace cuts are left out of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airpath.errortrace.lengths import fit_mixed_geometric, fit_weibull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from airpath.errortrace.lengths import MixedGeometric, Weibull
    from airpath.errortrace.trace import Trace


@dataclass(frozen=True)
class Runs:
    """An alternating renewal process."""

    good: MixedGeometric | Weibull
    bad: MixedGeometric | Weibull

    @property
    def parameters(self) -> int:
        """Number of parameters that were fitted."""
        return self.good.parameters + self.bad.parameters

    def errors(self) -> str:
        """Return the error process of a scenario, as an inline table of TOML."""
        return f'{{ type = "runs", good = {self.good.table()}, bad = {self.bad.table()} }}'

    def log_likelihood(self, trace: Trace, cuts: Sequence[int]) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities of parts of a trace (see ``Model``)."""
        lengths = trace.lengths[cuts[0] :]
        logs = np.empty(len(lengths))
        for first, kind in ((0, self.good), (1, self.bad)):
            logs[first::2] = kind.log_probability(lengths[first::2])
        last = (self.good, self.bad)[(len(lengths) - 1) % 2]
        logs[-1] = last.log_at_least(int(lengths[-1]))
        sums: NDArray[np.float64] = np.add.reduceat(logs, np.array(cuts) - cuts[0])
        return sums


def fit_on_off(trace: Trace) -> Runs:
    """Return the extended on/off model that fits a trace."""
    return Runs(fit_mixed_geometric(trace.good), fit_mixed_geometric(trace.bad))


def fit_weibull_runs(trace: Trace) -> Runs:
    """Return the process with runs of Weibull lengths that fits a trace."""
    return Runs(fit_weibull(trace.good), fit_weibull(trace.bad))
