# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Interface of fitted error models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from airpath.errortrace.trace import Trace


class Model(Protocol):
    """An error model with the parameters that fit a trace."""

    @property
    def parameters(self) -> int:
        """Number of parameters that were fitted."""

    def errors(self) -> str:
        """Return the error process of a scenario, as an inline table of TOML."""

    def log_likelihood(self, trace: Trace, cuts: Sequence[int]) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities of parts of a trace.

        Each part is judged by what comes before it. The first unit of the first part is given, as
        it is the end of a burst that says where the part begins.

        Args:
            trace: the whole trace.
            cuts: number of the first run of each part, a good one; the last part ends with the
                trace, whose last run may go on beyond it.

        """


def number(value: float) -> str:
    """Return a number as TOML, to six digits."""
    text = f"{value:.6g}"
    return text if any(mark in text for mark in ".e") else f"{text}.0"


def probability(value: float) -> str:
    """Return a probability as TOML, to six digits and to the unit in which scenarios have them."""
    return number(round(value, 12))
