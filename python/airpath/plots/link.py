# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The layers of a link with a protocol of its own, on one time axis.

From above: the bytes at the sockets, TCP where its state was recorded, the packets, the frames of
the link with their numbers, and what waits. A layer of which nothing is recorded has no panel. As
the multi-layer traces of Singh (2000), section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.layers import Frames, Layers, largest_flows, layers_of
from airpath.plots.style import (
    BLACK,
    BLUE,
    DIRECTION_TEXTS,
    GREEN,
    GREY,
    MANY_MARKS,
    ORANGE,
    VERMILLION,
    Picture,
    bytes_unit,
    clear_legends,
    count,
    drop_styles,
    mark_drops,
    panels,
    seconds,
    within,
)
from airpath.plots.tcp_state import window

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from airpath.plots.style import Span
    from airpath.run import Run

_FLOW_MARKERS = (".", "x", "+", "1")
"""Of the largest flows of a direction, in their order; further flows are not drawn."""

LEGEND_LETTERS = 120
"""Letters that a line of a legend has room for."""


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw a picture for each hop and direction in which a link entity with a log has sent."""
    return [
        _picture(layers, span)
        for layers in layers_of(run)
        if not within(layers.frames.sent.drop_nulls("number"), run, span).is_empty()
    ]


def _picture(layers: Layers, span: Span) -> Picture:
    run = layers.run

    def shown(rows: pl.DataFrame) -> pl.DataFrame:
        return within(rows, run, span)

    frames = Frames(shown(layers.frames.sent), shown(layers.frames.arrived), layers.frames.numbered)
    drawn: list[tuple[float, Callable[[Axes], None]]] = []
    sockets, tcp = shown(layers.sockets), shown(layers.tcp)
    delays, drops, queue = shown(layers.delays), shown(layers.drops), shown(layers.queue)
    if not sockets.is_empty():
        drawn.append((3.0, lambda axis: _sockets(axis, sockets)))
    if not tcp.is_empty():
        drawn.append((2.5, lambda axis: _tcp(axis, tcp)))
    if not (delays.is_empty() and drops.is_empty()):
        drawn.append((3.0, lambda axis: _packets(axis, delays, drops)))
    drawn.append((5.0, lambda axis: _link(axis, frames)))
    if frames.numbered or not queue.is_empty():
        drawn.append((2.5, lambda axis: _waiting(axis, frames, queue)))
    title = f"layers of {layers.hop}, {DIRECTION_TEXTS[layers.direction].lower()}"
    ratios = [height for height, _ in drawn]
    with panels(run, span, title, len(ratios), row_inches=1.8, ratios=ratios) as (figure, axes):
        for axis, (_, panel) in zip(axes, drawn, strict=True):
            panel(axis)
            texts = axis.get_legend_handles_labels()[1]
            # Names of flows are long where there are several.
            longest = max(map(len, texts), default=0)
            axis.legend(loc="upper left", ncols=max(1, min(4, LEGEND_LETTERS // (longest + 4))))
    clear_legends(figure)
    return Picture(f"link-{layers.hop}-{layers.direction}", figure)


def _sockets(axis: Axes, rows: pl.DataFrame) -> None:
    """Draw the bytes of the largest flows, as they left one socket and reached the other."""
    most = rows["last"].max()
    divisor, unit = bytes_unit(most if isinstance(most, int) else 0)
    flows = largest_flows(rows, len(_FLOW_MARKERS))
    for flow, marker in zip(flows, _FLOW_MARKERS, strict=False):
        for event, colour, size in (("sent", GREY, 4.0), ("received", GREEN, 2.5)):
            part = rows.filter((pl.col("flow") == flow) & (pl.col("event") == event))
            if part.is_empty():
                continue
            name = f"{flow.split()[0]} {event}" if len(flows) == 1 else f"{flow} {event}"
            axis.plot(
                seconds(part["time_ns"]),
                part["last"] / divisor,
                linestyle="none",
                marker=marker,
                markersize=size,
                color=colour,
                label=f"{name}: {part.height:,}",
                rasterized=part.height > MANY_MARKS,
            )
    axis.set_ylim(bottom=0)
    axis.set_ylabel(f"Sockets ({unit})")


def _tcp(axis: Axes, rows: pl.DataFrame) -> None:
    window(axis, rows)
    axis.set_ylabel("TCP (segments)")


def _packets(axis: Axes, delays: pl.DataFrame, drops: pl.DataFrame) -> None:
    if not delays.is_empty():
        axis.plot(
            seconds(delays["time_ns"]),
            seconds(delays["delay_ns"]),
            linestyle="none",
            marker=".",
            markersize=3,
            color=GREEN,
            label=count(delays.height, "packet"),
            rasterized=delays.height > MANY_MARKS,
        )
    for cause, style in drop_styles(drops["cause"]).items():
        dropped = drops.filter(pl.col("cause") == cause)
        mark_drops(axis, seconds(dropped["time_ns"]), 0, style, f"dropped, {style.text}")
    axis.set_ylim(bottom=0)
    axis.set_ylabel("Packet delay (s)")


def _link(axis: Axes, frames: Frames) -> None:
    sent, arrived = frames.sent, frames.arrived

    def dots(rows: pl.DataFrame, marker: str, colour: str, label: str, size: float) -> None:
        if rows.is_empty():
            return
        axis.plot(
            seconds(rows["time_ns"]),
            rows["number"],
            linestyle="none",
            marker=marker,
            markersize=size,
            color=colour,
            label=f"{label}: {rows.height:,}",
            rasterized=rows.height > MANY_MARKS,
        )

    information = pl.col("number").is_not_null()
    dots(sent.filter(information & (pl.col("event") == "sent")), ".", GREY, "sent", 2.5)
    dots(sent.filter(information & (pl.col("event") == "repeated")), "^", ORANGE, "repeated", 3.6)
    dots(
        arrived.filter(information & (pl.col("event") == "damaged")), "x", VERMILLION, "damaged", 4
    )
    for rows, column, colour, label in (
        (sent, "acknowledged", BLUE, "V(A), acknowledged"),
        (arrived, "delivered", GREEN, "V(R), delivered"),
    ):
        if not frames.numbered:
            continue
        axis.step(
            seconds(rows["time_ns"]), rows[column], where="post", color=colour, linewidth=0.9,
            label=label,
        )  # fmt: skip
    for event, line in (("reset", "-"), ("disconnected", ":")):
        for time in seconds(sent.filter(pl.col("event") == event)["time_ns"]):
            axis.axvline(time, color=BLACK, linewidth=0.8, linestyle=line)
    axis.set_ylabel("Frames, N(S)" if frames.numbered else "Frames, counted")


def _waiting(axis: Axes, frames: Frames, queue: pl.DataFrame) -> None:
    courses = [(queue, "queue_packets", ORANGE, "packets queued")]
    if frames.numbered:
        courses.insert(0, (frames.sent, "outstanding", BLUE, "frames not acknowledged"))
    for rows, column, colour, label in courses:
        axis.step(
            seconds(rows["time_ns"]), rows[column], where="post", color=colour, linewidth=0.9,
            label=label,
        )  # fmt: skip
    axis.set_ylim(bottom=0)
    axis.set_ylabel("Waiting")
