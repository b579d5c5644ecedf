# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Fitted error models beside the trace: lengths of runs of both kinds, and autocorrelation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from airpath.errortrace.trace import exceedance
from airpath.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    Picture,
    canvas,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from airpath.errortrace.compare import Comparison
    from airpath.errortrace.trace import Trace

STYLES = {
    "gilbert_elliott": (BLUE, "-"),
    "mta": (ORANGE, "--"),
    "on_off": (GREEN, (0, (4, 1, 1, 1))),
    "weibull": (PURPLE, ":"),
}
"""Colour and line of each model."""

_LONGEST_LAG = 1000
_LAGS = np.unique(np.round(np.geomspace(1, _LONGEST_LAG, 40)).astype(int))


def draw(found: Comparison, name: str) -> Picture:
    """Draw the models beside the data.

    Args:
        found: the models.
        name: of the trace.

    """
    with canvas(6.0) as figure:
        grid = figure.subplot_mosaic([["good", "bad"], ["correlation", "correlation"]])
        good, bad, correlation = grid["good"], grid["bad"], grid["correlation"]
        _runs(good, found, "good")
        good.set_xlabel("Length of a run without errors (units)")
        good.set_ylabel("Share of runs at least as long")
        _runs(bad, found, "bad")
        bad.set_xlabel("Length of a run of errors (units)")
        _correlation(correlation, found)
        correlation.legend(loc="upper right")
        best = found.best
        figure.suptitle(
            f"{name}: {found.trace.units:,} units, {100 * found.trace.error_rate:.3g} % errors; "
            f"best by held-out likelihood: {best.kind.title}",
            fontsize=9.5,
        )
    return Picture("error-fit", figure)


def _traces(found: Comparison) -> list[tuple[str, Trace, dict[str, object]]]:
    """Return all traces with their labels and styles, the data first."""
    data: dict[str, object] = {"color": BLACK, "linewidth": 2.2, "alpha": 0.75, "zorder": 2}
    traces = [("data", found.trace, data)]
    for one in found.models:
        colour, line = STYLES[one.name]
        style: dict[str, object] = {"color": colour, "linestyle": line, "linewidth": 1.3}
        bits = f"{one.log_likelihood:.4f} bit/unit held out"
        traces.append((f"{one.kind.title} ({bits})", one.drawn, {**style, "zorder": 3}))
    return traces


def _runs(axis: Axes, found: Comparison, kind: str) -> None:
    for label, trace, style in _traces(found):
        lengths, shares = exceedance(getattr(trace, kind))
        # Shares hold up to their length, from behind the one before.
        axis.step(lengths, shares, where="pre", label=label, **style)  # type: ignore[arg-type]
    axis.set_xscale("log")
    axis.set_yscale("log")
    data = getattr(found.trace, kind)
    # Tails of longer traces go on; what the data cannot tell is not shown far.
    axis.set_ylim(0.3 / len(data), 1.3)
    axis.set_xlim(0.9, data.max() * 3)


def _correlation(axis: Axes, found: Comparison) -> None:
    lags = [int(lag) for lag in _LAGS if lag < found.trace.units // 10]
    for label, trace, style in _traces(found):
        values = [trace.autocorrelation(lag) for lag in lags]
        axis.plot(lags, values, label=label, **style)  # type: ignore[arg-type]
    axis.set_xscale("log")
    axis.set_xlabel("Distance (units)")
    axis.set_ylabel("Autocorrelation of errors")
