# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One-way delay of every packet that the path delivered, and which packets it did not.

Delivered or dropped, a packet stands at the time at which it was offered to the path: so a drop is
seen among the packets that it travelled with, however late the link found out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.plots.style import (
    DIRECTION_COLOURS,
    DIRECTION_TEXTS,
    MANY_MARKS,
    Picture,
    drop_styles,
    mark_drops,
    panels,
    seconds,
    time_unit,
    within,
)
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from airpath.plots.style import Span
    from airpath.run import Run


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw a panel for each direction that delivered packets."""
    delays = within(one_way_delays(run), run, span)
    directions = [name for name in DIRECTIONS if (delays["direction"] == name).any()]
    if not directions:
        return []
    drops = within(offered_drops(run), run, span)
    with panels(
        run,
        span,
        "one-way delay",
        len(directions),
        row_inches=2.1,
        time_label="Time at which the packet was offered, since the run began (s)",
    ) as (figure, axes):
        for axis, direction in zip(axes, directions, strict=True):
            _panel(
                axis,
                delays.filter(pl.col("direction") == direction),
                drops.filter(pl.col("direction") == direction),
                direction,
            )
    return [Picture("delay", figure)]


def one_way_delays(run: Run) -> pl.DataFrame:
    """Return direction, pdu, time_ns (of the offer) and delay_ns of each delivered packet.

    The delay ends when the packet really left, where the run was live, and when it was due
    otherwise.
    """
    return run.once(one_way_delays, _one_way_delays)


def _one_way_delays(run: Run) -> pl.DataFrame:
    offered = run.path_events("offered").select("direction", "pdu", "time_ns")
    delivered = run.path_events("delivered").select(
        "direction",
        "pdu",
        left_ns=pl.coalesce("emitted_ns", "time_ns"),
    )
    joined = offered.join(delivered, on=["direction", "pdu"], maintain_order="left")
    return joined.with_columns(delay_ns=pl.col("left_ns") - pl.col("time_ns")).drop("left_ns")


def offered_drops(run: Run) -> pl.DataFrame:
    """Return direction, pdu, cause and time_ns (of the offer) of each dropped packet.

    A packet that the link itself brought forth was never offered and stands where it was dropped.
    """
    offered = run.path_events("offered").select("direction", "pdu", offered_ns="time_ns")
    drops = run.drops().select("direction", "pdu", "cause", "time_ns")
    joined = drops.join(offered, on=["direction", "pdu"], how="left", maintain_order="left")
    return joined.with_columns(time_ns=pl.coalesce("offered_ns", "time_ns")).drop("offered_ns")


def _panel(axis: Axes, delays: pl.DataFrame, drops: pl.DataFrame, direction: str) -> None:
    colour = DIRECTION_COLOURS[direction]
    values = delays["delay_ns"].to_numpy()
    divisor, unit = time_unit(float(values.max()))
    axis.plot(
        seconds(delays["time_ns"]),
        values / divisor,
        linestyle="none",
        marker="o",
        markersize=2.2,
        markeredgewidth=0,
        color=colour,
        alpha=0.75 if len(values) < 2000 else 0.4,
        label=f"delivered: {len(values):,}",
        rasterized=len(values) > MANY_MARKS,
    )
    highest = float(values.max()) / divisor
    for cause, style in drop_styles(drops["cause"].cast(pl.String)).items():
        rows = drops.filter(pl.col("cause") == cause)
        mark_drops(
            axis,
            seconds(rows["time_ns"]),
            highest * 1.08,
            style,
            f"dropped, {style.text}: {rows.height:,}",
        )
    median, high, extreme = np.percentile(values, [50, 95, 99]) / divisor
    axis.set_ylim(0, highest * 1.5)
    axis.set_ylabel(f"One-way delay ({unit})")
    title = (
        f"{DIRECTION_TEXTS[direction]}: median {median:.3g}, 95 % {high:.3g}, "
        f"99 % {extreme:.3g} {unit}"
    )
    axis.legend(title=title, loc="upper right", ncols=4, alignment="right")
