# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""State of TCP connections in the kernel: window, round-trip time, timeout, rates, states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from airpath.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MANY_MARKS,
    NANOSECONDS_PER_SECOND,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    Picture,
    count,
    panels,
    rate_unit,
    seconds,
    within,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from airpath.plots.style import Span
    from airpath.run import Run

MOST_PICTURES = 6
"""Sockets that get a picture, those that sent most first."""

LEAST_BYTES = 1500
"""Acknowledged bytes from which a socket is a sender of more than a request."""

_BANDS = {
    "disorder": (YELLOW, "", "disorder"),
    "cwr": (SKY, "....", "window reduced"),
    "recovery": (ORANGE, "////", "fast recovery"),
    "loss": (VERMILLION, "xxxx", "timeout recovery"),
}
"""Colour, hatching and name of each state of congestion control but the usual one."""


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw a picture of each socket that sent data, those that sent most first."""
    rows = within(run.tcp_state, run, span)
    if rows.is_empty():
        return []
    sent = (
        rows.group_by("socket")
        .agg(pl.col("bytes_acked").max().fill_null(0), pl.len())
        .filter((pl.col("bytes_acked") >= LEAST_BYTES) & (pl.col("len") > 1))
        .sort(["bytes_acked", "socket"], descending=[True, False])
    )
    senders = sent["socket"].head(MOST_PICTURES).to_list()
    return [
        _picture(rows.filter(pl.col("socket") == socket), number, run, span)
        for number, socket in enumerate(senders, start=1)
    ]


def _picture(rows: pl.DataFrame, number: int, run: Run, span: Span) -> Picture:
    last = rows.row(-1, named=True)
    control = rows["congestion_control"].drop_nulls()
    detail = f"{_end_point(last, 'local')} to {_end_point(last, 'remote')}"
    if not control.is_empty():
        detail += f", {control[-1]}"
    title = f"TCP state at the {last['end']}"
    with panels(run, span, title, 3, row_inches=1.9, ratios=[5, 3, 3], detail=detail) as (
        figure,
        axes,
    ):
        end = span.limits(run)[1]
        _bands(axes, rows, end)
        window(axes[0], rows)
        _times(axes[1], rows)
        _rates(axes[2], rows)
        for axis in axes:
            axis.legend(loc="upper left", ncols=4, frameon=True, framealpha=0.85)
    return Picture(f"tcp-state-{number}-{last['end']}", figure)


def _end_point(row: dict[str, object], which: str) -> str:
    address = str(row[f"{which}_address"])
    return (
        f"[{address}]:{row[f'{which}_port']}"
        if ":" in address
        else (f"{address}:{row[f'{which}_port']}")
    )


def _steps(
    axis: Axes, rows: pl.DataFrame, column: str, label: str, divisor: float, **look: Any
) -> None:
    """Draw a value that holds until it is told anew; where there is none, there is a gap."""
    # The tracepoint tells some values only: of the others it says nothing, not that they ended.
    told = rows.filter(pl.col(column).is_not_null() | (pl.col("source") != "ack"))
    values = told[column].cast(pl.Float64).fill_null(np.nan).to_numpy() / divisor
    if not np.isfinite(values).any():
        return
    axis.step(
        seconds(told["time_ns"]),
        values,
        where="post",
        label=label,
        rasterized=len(values) > MANY_MARKS,
        **look,
    )


def window(axis: Axes, rows: pl.DataFrame) -> None:
    """Draw the congestion window of a socket, its threshold, what is unacknowledged, and resent."""
    _steps(axis, rows, "unacked", "unacknowledged", 1, color=GREY, linewidth=0.6, zorder=2.2)
    _steps(axis, rows, "cwnd", "congestion window", 1, color=BLUE, linewidth=1.3, zorder=3)
    _steps(
        axis,
        rows,
        "ssthresh",
        "slow start threshold",
        1,
        color=VERMILLION,
        linestyle=(0, (4, 1.5)),
        zorder=2.6,
    )
    again = rows.filter(pl.col("total_retrans").is_not_null()).filter(
        pl.col("total_retrans").diff() > 0
    )
    if not again.is_empty():
        total = int(rows["total_retrans"].drop_nulls()[-1])
        axis.plot(
            seconds(again["time_ns"]),
            again["cwnd"].cast(pl.Float64).fill_null(np.nan).to_numpy(),
            linestyle="none",
            marker="v",
            markersize=3.4,
            color=BLACK,
            label=count(total, "retransmission"),
            zorder=4,
        )
    axis.set_ylim(bottom=0)
    # Room for the legend.
    axis.set_ylim(top=axis.get_ylim()[1] * 1.25)
    axis.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_ylabel("Window (segments)")


def _times(axis: Axes, rows: pl.DataFrame) -> None:
    millisecond = 1e6
    _steps(axis, rows, "rto_ns", "RTO", millisecond, color=PURPLE, linestyle=(0, (4, 1.5)))
    _steps(axis, rows, "srtt_ns", "smoothed RTT", millisecond, color=BLUE)
    _steps(axis, rows, "min_rtt_ns", "least RTT", millisecond, color=GREEN, linewidth=0.8)
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.set_ylim(low, high * (high / low) ** 0.35)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel("Time (ms)")


def _rates(axis: Axes, rows: pl.DataFrame) -> None:
    rates = rows["delivery_rate_bps"].drop_nulls()
    divisor, unit = rate_unit(float(rates.to_numpy().max(initial=0)))
    _steps(axis, rows, "delivery_rate_bps", "delivery rate", divisor, color=BLUE)
    axis.set_ylim(bottom=0, top=axis.get_ylim()[1] * 1.35)
    _steps(
        axis,
        rows,
        "bbr_bandwidth_bps",
        "BBR's bandwidth",
        divisor,
        color=VERMILLION,
        linestyle=(0, (4, 1.5)),
    )
    axis.set_ylabel(f"Rate ({unit})")


def _bands(axes: list[Axes], rows: pl.DataFrame, end: float) -> None:
    """Shade the times in which congestion control was not in its usual state."""
    told = rows.filter(pl.col("congestion_state").is_not_null())
    states = told["congestion_state"].cast(pl.String).to_list()
    times = [*(told["time_ns"].to_numpy() / NANOSECONDS_PER_SECOND).tolist(), end]
    named: set[str] = set()
    index = 0
    while index < len(states):
        state, first = states[index], index
        while index < len(states) and states[index] == state:
            index += 1
        if state not in _BANDS:
            continue
        colour, hatch, text = _BANDS[state]
        # The last row of a socket that is gone lasts no longer.
        until = times[index] if index < len(states) else times[index - 1]
        for axis in axes:
            axis.axvspan(
                times[first],
                until,
                facecolor=colour,
                alpha=0.28,
                hatch=hatch,
                edgecolor="#888888",
                linewidth=0,
                zorder=0.5,
                label=text if axis is axes[0] and state not in named else None,
            )
        named.add(state)
