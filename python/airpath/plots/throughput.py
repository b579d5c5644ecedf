# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Throughput over time: offered to the path, delivered by it, new bytes, and the link's rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from airpath.plots.capacity import capacity
from airpath.plots.rate_trace import outages
from airpath.plots.style import (
    BLACK,
    DIRECTION_COLOURS,
    DIRECTION_TEXTS,
    GREEN,
    GREY,
    Picture,
    panels,
    rate_unit,
    seconds,
    within,
)
from airpath.run import DIRECTIONS
from airpath.tcp import goodput_events

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from airpath.plots.style import Span
    from airpath.run import Run

MOST_BINS = 150
LEAST_PACKETS_PER_BIN = 3
MOST_CAPACITY = 3.0
"""Rate of a link, by the highest curve, up to which it is drawn: above, it limits nothing."""

LEGEND_ROOM = 1.4
"""Height of a panel to that of its highest curve."""


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw a panel for each direction that carried packets."""
    offered = within(run.path_events("offered"), run, span)
    delivered = within(run.path_events("delivered"), run, span)
    directions = [
        direction
        for direction in DIRECTIONS
        if (offered["direction"] == direction).any() or (delivered["direction"] == direction).any()
    ]
    if not directions:
        return []
    begin, end = span.limits(run)
    busiest = max(
        delivered.filter(delivered["direction"] == direction).height for direction in directions
    )
    width = bin_width(end - begin, busiest)
    bins = math.ceil((end - begin) / width - 1e-9)
    edges: NDArray[np.float64] = begin + width * np.arange(bins + 1, dtype=np.float64)
    with panels(
        run,
        span,
        "throughput",
        len(directions),
        row_inches=2.1,
        detail=f"means over {width:g} s",
    ) as (figure, axes):
        for axis, direction in zip(axes, directions, strict=True):
            lines = [
                ("offered", _rates(offered, direction, edges), GREY, 0.8),
                ("delivered (IP)", _rates(delivered, direction, edges), None, 1.3),
            ]
            new = within(goodput_events(run, direction), run, span)
            if not new.is_empty():
                rates = _histogram(seconds(new["time_ns"]), 8.0 * new["bytes"].to_numpy(), edges)
                lines.append(("goodput (new TCP payload)", rates, GREEN, 1.0))
            highest = max(float(rates.max()) for _, rates, _, _ in lines)
            able = capacity(run, direction, edges)
            shown = able is not None and _limits(able, highest)
            if able is not None and shown:
                highest = max(highest, min(float(np.nanmax(able)), MOST_CAPACITY * highest))
            divisor, unit = rate_unit(highest)
            for text, rates, colour, thickness in lines:
                axis.stairs(
                    rates / divisor,
                    edges,
                    label=text,
                    color=colour or DIRECTION_COLOURS[direction],
                    linewidth=thickness,
                    baseline=None,
                )
            if able is not None and shown:
                axis.stairs(
                    able / divisor,
                    edges,
                    label="rate of the link",
                    color=BLACK,
                    linewidth=0.9,
                    linestyle=(0, (4, 2)),
                    baseline=None,
                )
            for out, back in [] if able is None else outages(edges, able):
                axis.axvspan(out, back, color=GREY, alpha=0.15, linewidth=0)
            # Room for the legend above every curve.
            axis.set_ylim(0, highest / divisor * LEGEND_ROOM or 1)
            axis.set_ylabel(f"Rate ({unit})")
            axis.legend(
                title=DIRECTION_TEXTS[direction], loc="upper right", ncols=4, alignment="right"
            )
    return [Picture("throughput", figure)]


def _limits(able: NDArray[np.float64], highest: float) -> bool:
    """Say whether the rate of a link is ever near what was sent, outages aside."""
    rates = able[able > 0]
    return rates.size > 0 and float(rates.min()) <= MOST_CAPACITY * highest


def bin_width(duration: float, packets: int) -> float:
    """Return a round width in seconds: many bins, but each with a few packets."""
    bins = min(MOST_BINS, max(packets / LEAST_PACKETS_PER_BIN, 1))
    least = duration / bins
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def _rates(events: pl.DataFrame, direction: str, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = events.filter(events["direction"] == direction)
    return _histogram(seconds(rows["time_ns"]), rows["bits"].to_numpy(), edges)


def _histogram(
    times: NDArray[np.float64], bits: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean rate in each bin, in bit/s."""
    total, _ = np.histogram(times, bins=edges, weights=bits)
    return np.asarray(total / (edges[1] - edges[0]), dtype=np.float64)
