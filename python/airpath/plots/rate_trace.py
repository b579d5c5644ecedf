# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Traces of rates: the rate over time, one panel a trace."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.engine import find_engine
from airpath.plots.style import BLUE, GREY, NANOSECONDS_PER_SECOND, Picture, rate_unit, stack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

HEADROOM = 1.25
"""Height of a panel to that of the highest rate."""


class TraceError(Exception):
    """A file is no trace; the message is the engine's."""


def read(file: Path, bin_width: str) -> dict[str, Any]:
    """Return what the engine says of a trace, with all its rates.

    Raises:
        TraceError: it cannot be read.

    """
    command = [find_engine(), "trace", "show", "--json", "--points", "--bin", bin_width, str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise TraceError(result.stderr.strip())
    trace: dict[str, Any] = json.loads(result.stdout)
    return trace


def draw(traces: Sequence[tuple[str, dict[str, Any]]]) -> Picture:
    """Draw traces as ``read`` returns them, each with its name, to one scale of rates."""
    highest = max(float(trace["most_bps"]) for _, trace in traces)
    divisor, unit = rate_unit(highest)
    with stack(len(traces), row_inches=1.7) as (figure, axes):
        for axis, (name, trace) in zip(axes, traces, strict=True):
            columns = np.array(trace["rates"], dtype=np.float64).reshape(-1, 2)
            times, rates = columns[:, 0], columns[:, 1]
            edges = np.append(times, float(trace["duration_ns"])) / NANOSECONDS_PER_SECOND
            axis.stairs(rates / divisor, edges, color=BLUE, linewidth=0.9, baseline=None)
            mean = float(trace["mean_bps"]) / divisor
            axis.axhline(mean, color=GREY, linewidth=0.8, linestyle="--")
            for begin, end in outages(edges, rates):
                axis.axvspan(begin, end, color=GREY, alpha=0.25, linewidth=0)
            axis.set_ylim(0, highest / divisor * HEADROOM)
            axis.set_ylabel(f"Rate ({unit})")
            axis.set_title(f"{name}: mean {mean:.3g} {unit} (dashed); grey: no rate", loc="left")
        longest = max(float(trace["duration_ns"]) for _, trace in traces)
        axes[-1].set_xlim(0, longest / NANOSECONDS_PER_SECOND)
        axes[-1].set_xlabel("Time (s)")
    return Picture("rate", figure)


def outages(edges: NDArray[np.float64], rates: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return when each outage begins and ends, in seconds."""
    return [
        (float(begin), float(end))
        for begin, end, rate in zip(edges[:-1], edges[1:], rates, strict=True)
        if rate == 0
    ]
