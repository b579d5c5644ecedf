# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""All models fitted to a trace, judged by a part of it that the fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from airpath.errortrace import gilbert_elliott, mta, runs
from airpath.errortrace.trace import Statistics, Trace, TraceError, drawn, statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airpath.errortrace.model import Model

LEAST_BURSTS = 10
"""Bursts of a part below which nothing is fitted to it, nor judged by it."""
FEW_BURSTS = 100
"""Bursts of a part below which parameters or the judgement are rough."""
_PARTS = 20
"""Parts of the held-out trace, by which the error of a difference is told."""
_LEAST_UNITS, _MOST_UNITS = 1_000_000, 4_000_000
"""Lengths of the traces by which the figures of a model are told."""
_SEED = 1
_APART = 2.0
"""Standard errors from which on a difference is one."""


class Kind(NamedTuple):
    """A kind of model."""

    title: str
    source: str
    fit: Callable[[Trace, int], Model]
    """Function that fits it to a trace; the number is the order of chains."""


KINDS = {
    "gilbert_elliott": Kind(
        "Gilbert-Elliott",
        "Gilbert 1960, Elliott 1963",
        lambda trace, _: gilbert_elliott.fit(trace),
    ),
    "mta": Kind(
        "MTA",
        "Konrad, Zhao, Joseph and Ludwig 2003",
        mta.fit,
    ),
    "on_off": Kind(
        "extended on/off",
        "Ji, Liu, Towsley, Ge and Kurose 2004",
        lambda trace, _: runs.fit_on_off(trace),
    ),
    "weibull": Kind(
        "Weibull runs",
        "Karner, Nemethova, Svoboda and Rupp 2007",
        lambda trace, _: runs.fit_weibull_runs(trace),
    ),
}
"""Every kind of model, by name."""


@dataclass(frozen=True)
class Fitted:
    """A model that was fitted to a trace."""

    name: str
    model: Model
    """With the parameters of the whole trace."""
    drawn: Trace
    """A trace that the engine draws from it."""
    statistics: Statistics
    """Of that trace."""
    log_likelihood: float
    """Of the held-out part by the parameters of the first part, in bits per unit."""
    behind: float
    """Distance to the best model's, in bits per unit."""
    behind_error: float
    """Standard error of that difference."""

    @property
    def kind(self) -> Kind:
        """The kind of model."""
        return KINDS[self.name]


@dataclass(frozen=True)
class Comparison:
    """All models beside the data."""

    trace: Trace
    statistics: Statistics
    split: int
    """Number of the first run that was held out."""
    models: tuple[Fitted, ...]
    warnings: tuple[str, ...]

    @property
    def best(self) -> Fitted:
        """The model of the highest held-out likelihood."""
        return max(self.models, key=lambda model: model.log_likelihood)

    @property
    def equals(self) -> tuple[Fitted, ...]:
        """Models whose held-out likelihood cannot be told from the best's."""
        return tuple(
            model
            for model in self.models
            if model is not self.best and model.behind <= _APART * model.behind_error
        )

    @property
    def held_out(self) -> int:
        """Number of units that were held out."""
        return int(self.trace.lengths[self.split :].sum())


def _silent(_: str) -> None:
    """Tell nobody."""


def compare(
    trace: Trace,
    held_out: float,
    order: int = mta.ORDER,
    tell: Callable[[str], None] = _silent,
) -> Comparison:
    """Fit every kind of model to a trace.

    Args:
        trace: the trace.
        held_out: share of the trace, at its end, that judges the models.
        order: of the chain within lossy states of ``mta``.
        tell: is told what is done next.

    Raises:
        TraceError: the trace has too few errors, or too few units without.

    """
    _check(trace)
    split = trace.split(1 - held_out)
    first = trace.before(split)
    rest = Trace(trace.lengths[split:])
    for part, what in ((first, "first"), (rest, "held-out")):
        if part.bursts < LEAST_BURSTS:
            message = (
                f"the {what} part of the trace has {part.bursts} bursts of errors, and at least "
                f"{LEAST_BURSTS} are needed; use a longer trace, or another --held-out"
            )
            raise TraceError(message)
    cuts = _cuts(split, len(trace.lengths))
    units = np.add.reduceat(trace.lengths[split:], np.array(cuts) - split)
    logs = {}
    for name, kind in KINDS.items():
        tell(f"fitting {kind.title} to the first part")
        logs[name] = kind.fit(first, order).log_likelihood(trace, cuts) / np.log(2)
    best = logs[max(logs, key=lambda name: float(logs[name].sum()))]
    models = []
    for name, kind in KINDS.items():
        tell(f"fitting {kind.title} to the whole trace")
        model = kind.fit(trace, order)
        length = int(np.clip(trace.units, _LEAST_UNITS, _MOST_UNITS))
        made = drawn(model.errors(), length, _SEED)
        lead = best - logs[name]
        # Of a ratio of sums over parts: what is left of each part beside its share.
        left = lead - units * lead.sum() / units.sum()
        error = np.sqrt((left**2).sum() * len(cuts) / (len(cuts) - 1)) / units.sum()
        models.append(
            Fitted(
                name,
                model,
                made,
                statistics(made),
                float(logs[name].sum() / (units.sum() - 1)),
                float(lead.sum() / units.sum()),
                float(error),
            )
        )
    return Comparison(trace, statistics(trace), split, tuple(models), _warnings(trace, split))


def _check(trace: Trace) -> None:
    if trace.errors == 0:
        message = (
            f"the trace has {trace.units} units and no error, so that there is nothing to fit; "
            f'the process of such a link is errors = {{ type = "none" }}'
        )
        raise TraceError(message)
    if trace.errors == trace.units:
        message = (
            f"all {trace.units} units of the trace are errors, so that there is nothing to fit; if "
            f"it writes 1 for what arrived, exchange 0 and 1: in a trace 1 is an error"
        )
        raise TraceError(message)
    if trace.bursts < 2 * LEAST_BURSTS:
        message = (
            f"the trace has {trace.bursts} bursts of errors in {trace.units} units; at least "
            f"{2 * LEAST_BURSTS} are needed to fit a model and judge it, and hundreds for good "
            f"parameters: record a longer trace, or use the trace itself "
            f'(errors = {{ type = "trace", file = "FILE" }})'
        )
        raise TraceError(message)


def _cuts(split: int, end: int) -> Sequence[int]:
    """Return the first run of each of some parts of about as many runs, each a good one."""
    edges = np.linspace(split, end, _PARTS + 1)[:-1]
    return [int(edge) for edge in np.unique(split + (edges - split) // 2 * 2)]


def _warnings(trace: Trace, split: int) -> tuple[str, ...]:
    first, rest = trace.before(split), Trace(trace.lengths[split:])
    found = []
    if first.bursts < FEW_BURSTS:
        found.append(
            f"the first part has {first.bursts} bursts of errors only: parameters are rough "
            f"(hundreds of bursts make them good)"
        )
    if rest.bursts < FEW_BURSTS:
        found.append(
            f"the held-out part has {rest.bursts} bursts of errors only: which model is best is "
            f"uncertain"
        )
    rates = sorted((first.error_rate, rest.error_rate))
    if rates[1] > 1.5 * rates[0]:
        found.append(
            f"{100 * first.error_rate:.3g} % of the first part and {100 * rest.error_rate:.3g} % "
            f"of the held-out part are errors: the link has changed, or the trace is too short; "
            f"all models assume that it stays the same"
        )
    if len(trace.good) and trace.good.max() > trace.units / 10:
        found.append(
            f"one run without errors is {100 * trace.good.max() / trace.units:.0f} % of the trace: "
            f"its length decides about means and the tail"
        )
    return tuple(found)
