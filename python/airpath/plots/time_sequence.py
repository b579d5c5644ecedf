# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Time-sequence diagram of TCP: what was sent when, what came back, and what the link dropped.

In the tradition of xplot and tcptrace, and of figure 6 in Kojo et al. 2001: time to the right,
sequence numbers upwards, seen from the sender of the data. A bar is a segment from its first byte
to its last; the line below is what the receiver has acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from matplotlib.collections import LineCollection

from airpath.plots.style import (
    BLUE,
    GREEN,
    MANY_MARKS,
    NANOSECONDS_PER_SECOND,
    PURPLE,
    VERMILLION,
    YELLOW,
    DropStyle,
    Picture,
    bytes_unit,
    count,
    drop_styles,
    mark_drops,
    panels,
    seconds,
    within,
)
from airpath.tcp import Transfer, transfers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.plots.style import Span
    from airpath.run import Run

MOST_TRANSFERS = 8
"""Diagrams drawn at most: the largest transfers."""

MOST_MARKS = 150
"""Losses marked on the curve itself; more would hide it, and get a strip of their own below."""


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw one diagram for each of the largest TCP transfers that have segments in the span."""
    found = [one for one in transfers(run) if not within(one.segments, run, span).is_empty()]
    if len(found) > MOST_TRANSFERS:
        run.notes.append(
            f"{len(found)} TCP transfers; the {MOST_TRANSFERS} largest have a diagram each"
        )
    pictures: list[Picture] = []
    for transfer in found[:MOST_TRANSFERS]:
        number = len(pictures) + 1
        name = f"time-sequence-{number}-{transfer.direction}"
        pictures.append(_draw_one(run, span, transfer, name))
    return pictures


def _draw_one(run: Run, span: Span, transfer: Transfer, name: str) -> Picture:
    divisor, unit = bytes_unit(transfer.payload_bytes)
    segments = within(transfer.segments, run, span)
    losses = _losses(segments, within(transfer.lost_acknowledgements, run, span), divisor)
    crowded = sum(len(loss.times) for loss in losses) > MOST_MARKS
    with panels(
        run,
        span,
        f"TCP {transfer.direction}",
        2 if crowded else 1,
        row_inches=2.5 if crowded else 4.2,
        ratios=[6, 0.3 + 0.3 * len(losses)] if crowded else None,
        detail=f"{transfer.label}, seen at the {transfer.vantage}",
    ) as (figure, axes):
        axis = axes[0]
        _segments(axis, segments, divisor)
        _acknowledgements(axis, run, span, transfer, divisor)
        if crowded:
            _strip(axes[1], losses)
        else:
            for loss in losses:
                mark_drops(axis, loss.times, loss.heights, loss.style, loss.label, **loss.look)
        axis.set_ylabel(f"Sequence number ({unit})")
        _limit_height(axis, segments, divisor)
        corner = "lower right" if _rises_soon(segments, run, span) else "upper left"
        axis.legend(loc=cast("Any", corner), frameon=True, framealpha=0.85)
    return Picture(name, figure)


def _bars(
    axis: Axes,
    frame: pl.DataFrame,
    divisor: float,
    colour: str,
    width: float,
    label: str,
    **options: Any,
) -> None:
    if frame.is_empty():
        return
    low = frame["first"].to_numpy() / divisor
    high = frame["end"].to_numpy() / divisor
    # One line with gaps: a collection has an object for each bar. Round ends: a bar too short to
    # see is still a dot.
    axis.plot(
        *_with_gaps(seconds(frame["time_ns"]), low, high),
        color=colour,
        linewidth=width,
        solid_capstyle="round",
        label=label,
        rasterized=frame.height > MANY_MARKS,
        scalex=False,
        scaley=False,
        **options,
    )


def _with_gaps(
    times: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points of upright bars as a line that breaks off behind each."""
    gaps = np.full(len(times), np.nan)
    across, up = np.column_stack([times, times, gaps]), np.column_stack([low, high, gaps])
    return across.ravel(), up.ravel()


def _segments(axis: Axes, segments: pl.DataFrame, divisor: float) -> None:
    again = segments["retransmission"]
    first_time = segments.filter(~again)
    repeated = segments.filter(again)
    _bars(axis, first_time, divisor, BLUE, 1.5, count(first_time.height, "segment"), zorder=3)
    _bars(
        axis,
        repeated,
        divisor,
        VERMILLION,
        2.4,
        count(repeated.height, "retransmission"),
        zorder=4,
    )


def _acknowledgements(axis: Axes, run: Run, span: Span, transfer: Transfer, divisor: float) -> None:
    heard = within(transfer.acknowledgements, run, span)
    if not heard.is_empty():
        axis.step(
            seconds(heard["time_ns"]),
            np.maximum.accumulate(heard["number"].to_numpy()) / divisor,
            where="post",
            color=GREEN,
            linewidth=1.0,
            label=f"acknowledged ({count(heard.height, 'ACK')})",
            zorder=2.5,
            rasterized=heard.height > MANY_MARKS,
        )
    blocks = within(transfer.selective, run, span)
    _bars(axis, blocks, divisor, PURPLE, 0.6, "SACK block", zorder=2.2)


@dataclass(frozen=True)
class _Loss:
    """Packets of one kind that the link dropped for one cause, or damaged."""

    label: str
    style: DropStyle
    times: NDArray[np.float64]
    heights: NDArray[np.float64]
    look: dict[str, Any]


def _losses(segments: pl.DataFrame, lost_answers: pl.DataFrame, divisor: float) -> list[_Loss]:
    dropped = segments.filter(pl.col("cause") != "")
    styles = drop_styles([*dropped["cause"], *lost_answers["cause"]])
    losses = []

    def add(rows: pl.DataFrame, what: str, style: DropStyle, heights: pl.Expr, **look: Any) -> None:
        if rows.is_empty():
            return
        at = rows.select(heights).to_series().to_numpy() / divisor
        label = f"{what}: {rows.height:,}"
        losses.append(_Loss(label, style, seconds(rows["time_ns"]), at, look))

    middle = (pl.col("first") + pl.col("end")) / 2
    for cause, style in styles.items():
        same_cause = pl.col("cause") == cause
        add(dropped.filter(same_cause), f"dropped, {style.text}", style, middle)
        add(
            lost_answers.filter(same_cause),
            f"ACK dropped, {style.text}",
            style,
            pl.col("number"),
            markersize=3.4,
            markerfacecolor="none",
            markeredgecolor=GREEN,
            markeredgewidth=0.7,
            zorder=4.5,
        )
    damaged = segments.filter(pl.col("damaged") & (pl.col("cause") == ""))
    add(damaged, "arrived damaged", DropStyle("h", YELLOW, "damaged", "hexagon"), middle)
    return losses


def _strip(axis: Axes, losses: list[_Loss]) -> None:
    """Show losses as ticks in a row for each kind, where marks would hide the segments."""
    for row, loss in enumerate(losses):
        colour = loss.look.get("markeredgecolor", loss.style.line_colour)
        lengths = np.column_stack([np.full(len(loss.times), row + 0.32)] * 2)
        lengths[:, 0] -= 0.64
        bars = np.stack([np.column_stack([loss.times] * 2), lengths], axis=2)
        axis.add_collection(
            LineCollection(
                list(bars), colors=colour, linewidths=0.6, rasterized=len(bars) > MANY_MARKS
            )
        )
    axis.set_yticks(range(len(losses)), [loss.label.replace("dropped, ", "") for loss in losses])
    axis.set_ylim(len(losses) - 0.4, -0.6)
    axis.set_ylabel("Drops")
    axis.tick_params(axis="y", length=0, labelsize=7)
    axis.grid(visible=False, axis="y")
    axis.spines["left"].set_visible(False)


def _limit_height(axis: Axes, segments: pl.DataFrame, divisor: float) -> None:
    """Set the vertical limits from the segments; collections do not always set their own."""
    if segments.is_empty():
        return
    low = float(segments["first"].to_numpy().min()) / divisor
    high = float(segments["end"].to_numpy().max()) / divisor
    margin = 0.03 * (high - low) or 1.0
    axis.set_ylim(low - margin, high + margin)


def _rises_soon(segments: pl.DataFrame, run: Run, span: Span) -> bool:
    """Say whether the curve is past half its height at half its time."""
    if segments.is_empty():
        return False
    begin, end = span.limits(run)
    middle = segments.filter(pl.col("time_ns") <= int((begin + end) / 2 * NANOSECONDS_PER_SECOND))
    low, high = segments["first"].to_numpy().min(), segments["end"].to_numpy().max()
    return bool(middle["end"].to_numpy().max(initial=low) > (low + high) / 2)
