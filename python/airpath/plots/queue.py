# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Length of each queue over time, with what was dropped there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.ticker import MaxNLocator

from airpath.plots.style import (
    DIRECTION_COLOURS,
    DIRECTION_TEXTS,
    Picture,
    bytes_unit,
    drop_styles,
    mark_drops,
    panels,
    seconds,
    within,
)
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.plots.style import Span
    from airpath.run import Run

MOST_STEPS = 250
"""Changes of a queue that a panel still shows one by one; more become a range and a mean."""

BINS = 250
"""Intervals over which range and mean are taken."""


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw two pictures, in packets and in bytes, with a panel for each queue that was used.

    Lengths include virtual packets of background loads; what was dropped of those is marked apart.
    Of several users the queues of a hop are added up.
    """
    events = within(_of_all_users(run), run, span)
    several = f" of {len(run.users)} users together" if _has_several(run) else ""
    queues = {
        (name, direction): events.filter(
            (pl.col("hop") == name) & (pl.col("direction") == direction)
        )
        for name in events["hop"].unique(maintain_order=True)
        for direction in DIRECTIONS
    }
    pictures = []
    for column, name, title in (
        ("queue_packets", "queue-packets", "queue length in packets"),
        ("queue_bytes", "queue-bytes", "queue length in bytes"),
    ):
        shown = {place: rows for place, rows in queues.items() if (lasting(rows)[column] > 0).any()}
        if not shown:
            continue
        with panels(run, span, title, len(shown), row_inches=1.75) as (figure, axes):
            for axis, ((hop, direction), rows) in zip(axes, shown.items(), strict=True):
                where = DIRECTION_TEXTS[direction]
                heading = f"{hop}{several}, {where[0].lower()}{where[1:]}" if hop else where
                _panel(axis, rows, column, direction, span.limits(run)[1])
                axis.legend(title=heading, loc="upper right", ncols=4, alignment="right")
        pictures.append(Picture(name, figure))
    return pictures


def _has_several(run: Run) -> bool:
    return bool(run.users) and run.user is None


def _of_all_users(run: Run) -> pl.DataFrame:
    """Return the events of queues; lengths are those of all users' queues of the hop together."""
    events = run.events.filter(pl.col("stage") == "queue")
    if not _has_several(run):
        return events.with_columns(run.queue_name())
    place = ["hop", "direction"]
    queue = [*place, "user", "bearer"] if run.has_bearers else [*place, "user"]
    change = {
        name: pl.col(name) - pl.col(name).shift(1, fill_value=0).over(queue)
        for name in ("queue_packets", "queue_bytes")
    }
    changed = events.with_columns(pl.col("hop").cast(pl.String), **change)
    return changed.with_columns(pl.col(name).cum_sum().over(place) for name in change)


def _panel(axis: Axes, rows: pl.DataFrame, column: str, direction: str, end: float) -> None:
    changes = lasting(rows)
    # The last length holds until the end.
    times = np.append(seconds(changes["time_ns"]), end)
    lengths = changes[column].to_numpy().astype(np.float64)
    lengths = np.append(lengths, lengths[-1])
    if column == "queue_bytes":
        divisor, unit = bytes_unit(float(lengths.max()))
        lengths = lengths / divisor
    else:
        unit = "packets"
        axis.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    colour = DIRECTION_COLOURS[direction]
    if len(times) <= MOST_STEPS:
        axis.fill_between(times, lengths, step="post", color=colour, alpha=0.2, linewidth=0)
        axis.step(times, lengths, where="post", color=colour, linewidth=0.9, label="length")
    else:
        course = summarise(times, lengths, BINS)
        axis.fill_between(
            course.edges[:-1],
            course.least,
            course.greatest,
            step="post",
            color=colour,
            alpha=0.25,
            linewidth=0,
            label="range",
        )
        width = course.edges[1] - course.edges[0]
        axis.step(
            course.edges[:-1],
            course.mean,
            where="post",
            color=colour,
            linewidth=0.9,
            label=f"mean over {width:.2g} s",
        )
    highest = float(lengths.max())
    drops = rows.filter(pl.col("kind") == "dropped")
    is_virtual = pl.col("origin") == "background"
    for whose, height, of_origin in (
        ("dropped", 1.08, ~is_virtual),
        ("background dropped", 1.2, is_virtual),
    ):
        for cause, style in drop_styles(drops.filter(of_origin)["cause"].cast(pl.String)).items():
            dropped = drops.filter(of_origin & (pl.col("cause") == cause))
            mark_drops(
                axis,
                seconds(dropped["time_ns"]),
                highest * height,
                style,
                f"{whose}, {style.text}: {dropped.height:,}",
            )
    axis.set_ylim(0, highest * 1.5)
    axis.set_ylabel(f"Queue ({unit})")


def lasting(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the last row of each instant.

    A packet that is taken out in the instant in which it came was never met by another.
    """
    return rows.unique(subset="time_ns", keep="last", maintain_order=True)


@dataclass(frozen=True)
class Course:
    """A step function in equal intervals."""

    edges: NDArray[np.float64]
    least: NDArray[np.float64]
    greatest: NDArray[np.float64]
    mean: NDArray[np.float64]


def summarise(times: NDArray[np.float64], values: NDArray[np.float64], bins: int) -> Course:
    """Take extremes and means over time of a step function.

    Args:
        times: when the function takes each value, ascending; its last entry ends the function.
        values: the values.
        bins: number of intervals.

    """
    edges: NDArray[np.float64] = np.linspace(times[0], times[-1], bins + 1)
    # Each border becomes a step of its own, with the value that holds there.
    holding = np.searchsorted(times, edges[:-1], side="right") - 1
    all_times = np.concatenate([times, edges[:-1]])
    all_values = np.concatenate([values, values[holding]])
    order = np.argsort(all_times, kind="stable")
    all_times, all_values = all_times[order], all_values[order]
    lengths = np.diff(all_times, append=all_times[-1])
    starts = np.searchsorted(all_times, edges[:-1], side="left")
    # Where a step falls on a border, the value before it lasts for no time there.
    held = lengths > 0
    least = np.minimum.reduceat(np.where(held, all_values, np.inf), starts)
    greatest = np.maximum.reduceat(np.where(held, all_values, -np.inf), starts)
    mean = np.add.reduceat(all_values * lengths, starts) / np.diff(edges)
    return Course(edges, least, greatest, mean)
