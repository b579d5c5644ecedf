# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Mean time of packets in each hop, by what they waited for, and what was lost there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.analysis.hop_times import PARTS, hop_times
from airpath.plots.style import (
    BLUE,
    DIRECTION_TEXTS,
    GREY,
    ORANGE,
    SKY,
    Picture,
    drop_styles,
    panels,
    time_unit,
    within,
)
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from airpath.plots.style import Span
    from airpath.run import Run

_PARTS = dict(
    zip(
        PARTS,
        (
            ("in the queue", BLUE),
            ("in the send buffer", SKY),
            ("transmission, repetitions, propagation", ORANGE),
        ),
        strict=True,
    )
)
_ROW_INCHES = 0.42
MOST_HOPS = 16
"""Maximum number of bars of a panel; the queues of more users are no picture."""


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw a panel for each direction, with a bar for each hop in the order of travel.

    Nothing is drawn of a run with one hop, of which the other pictures tell, and of too many.
    """
    offered = within(run.path_events("offered"), run, span)["pdu"]
    times = hop_times(run).filter(pl.col("pdu").is_in(offered.implode()))
    drops = within(run.drops(), run, span).with_columns(
        run.queue_name(), *(pl.col(name).cast(pl.String) for name in ("direction", "cause"))
    )
    places = {direction: _hops(run, direction) for direction in DIRECTIONS}
    places = {direction: hops for direction, hops in places.items() if hops}
    longest = max((len(hops) for hops in places.values()), default=0)
    if not 1 < longest <= MOST_HOPS or times.is_empty():
        return []
    sizes = [len(hops) + 1.2 for hops in places.values()]
    with panels(
        run,
        span,
        "where packets waited and were lost",
        len(places),
        row_inches=_ROW_INCHES * sum(sizes) / len(sizes) + 0.4,
        ratios=sizes,
        shares_time=False,
    ) as (figure, axes):
        for axis, (direction, hops) in zip(axes, places.items(), strict=True):
            mine = pl.col("direction") == direction
            _panel(axis, hops, times.filter(mine), drops.filter(mine))
            _name_hosts(axis, hops, run)
            axis.set_xlabel(f"{DIRECTION_TEXTS[direction]}: {axis.get_xlabel()}")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return [Picture("hops", figure)]


def _hops(run: Run, direction: str) -> list[str]:
    """Return the hops of a direction in the order in which packets meet them."""
    entered = run.events.filter(
        (pl.col("kind") == "enqueued") & (pl.col("direction") == direction)
    ).select(run.queue_name(), "pdu", "time_ns")
    # The place of a hop is its place among those of one packet, and at best of all packets.
    order = entered.with_columns(place=pl.col("time_ns").rank("ordinal").over("pdu"))
    mean = order.group_by("hop").agg(pl.col("place").max(), first=pl.col("time_ns").min())
    return mean.sort("place", "first")["hop"].to_list()


def _name_hosts(axis: Axes, hops: list[str], run: Run) -> None:
    """Name the host of each hop, where they were on several."""
    hosts = {
        hop: host["name"] for host in run.manifest.get("hosts", []) for hop in host.get("hops", [])
    }
    if hosts:
        labels = [f"{hop}\nat {hosts[hop]}" if hop in hosts else hop for hop in hops]
        axis.set_yticks(axis.get_yticks(), labels)


def _panel(axis: Axes, hops: list[str], times: pl.DataFrame, drops: pl.DataFrame) -> None:
    heights = np.arange(len(hops))[::-1]
    means = times.group_by("hop").agg(
        *(pl.col(part).mean() for part in PARTS),
        high=pl.sum_horizontal(PARTS).quantile(0.95, interpolation="linear"),
    )
    found = {row["hop"]: row for row in means.iter_rows(named=True)}
    nothing = dict.fromkeys((*PARTS, "high"), 0.0)
    rows = [found.get(hop, nothing) for hop in hops]
    longest = max(max(row["high"], sum(row[part] for part in PARTS)) for row in rows)
    divisor, unit = time_unit(longest)
    left = np.zeros(len(hops))
    for part, (text, colour) in _PARTS.items():
        width = np.array([row[part] for row in rows]) / divisor
        axis.barh(heights, width, left=left, height=0.6, color=colour, label=text)
        left += width
    high = np.array([row["high"] for row in rows]) / divisor
    axis.plot(high, heights, "|", color=GREY, markersize=11, label="95 % of packets within")
    for height, hop, mean, end in zip(heights, hops, left, np.maximum(left, high), strict=True):
        lost = drops.filter(pl.col("hop") == hop)["cause"]
        counts = [
            f"{(lost == cause).sum():,} {style.text}" for cause, style in drop_styles(lost).items()
        ]
        text = f"mean {mean:.3g} {unit}; " + (
            "lost: " + ", ".join(counts) if counts else "none lost"
        )
        axis.annotate(
            text, (end, height), (6, 0), textcoords="offset points", va="center", fontsize=7.5
        )
    axis.set_yticks(heights, hops)
    axis.set_ylim(-0.6, len(hops) - 0.4)
    axis.set_xlim(0, 1.6 * longest / divisor)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(f"mean time in the hop ({unit})")
