# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sharing of a direction by competing flows: their goodput, and Jain's index over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.analysis.fairness_metrics import arrivals, overlap, pauses
from airpath.analysis.traffic import Traffic
from airpath.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Picture,
    panels,
    rate_unit,
    seconds,
)
from airpath.plots.throughput import bin_width
from airpath.run import DIRECTIONS
from airpath.tcp import SENDING_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.plots.style import Span
    from airpath.run import Run

COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE, BLACK, GREY)
LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
MOST_FLOWS = len(COLOURS)
"""Flows with a line of their own, those that got most; the index is over all."""

LEAST_BIN_S = 0.1
LEGEND_ROOM = 1.3


def draw(run: Run, span: Span) -> list[Picture]:
    """Draw a picture of each direction in which two or more flows compete."""
    if not _may_compete(run):
        return []
    traffic = Traffic(run)
    competing = arrivals(traffic)
    return [
        _picture(run, span, traffic, direction, competing.filter(pl.col("direction") == direction))
        for direction in DIRECTIONS
        if (competing["direction"] == direction).any()
    ]


def _may_compete(run: Run) -> bool:
    """Say whether an end saw packets of more than one flow, which costs less than their tables."""
    captured = (len(_pairs_of_ends(capture)) for capture in run.captures.values())
    return max(captured, default=0) > 1


def _pairs_of_ends(capture: pl.DataFrame) -> set[tuple[int, frozenset[tuple[str, int]]]]:
    """Return the pairs of ends that sent packets to each other, both ways or one."""
    ends = ["protocol", "source", "source_port", "destination", "destination_port"]
    return {
        (protocol, frozenset([(source, source_port), (destination, destination_port)]))
        for protocol, source, source_port, destination, destination_port in (
            capture.select(ends).unique().iter_rows()
        )
    }


def _picture(
    run: Run, span: Span, traffic: Traffic, direction: str, competing: pl.DataFrame
) -> Picture:
    begin, end = span.limits(run)
    flows = competing.group_by("flow").agg(
        pl.col("bits").sum(), first=pl.col("time_ns").min(), last=pl.col("time_ns").max()
    )
    busiest = competing.height // flows.height
    width = max(LEAST_BIN_S, bin_width(end - begin, busiest))
    bins = math.ceil((end - begin) / width - 1e-9)
    edges: NDArray[np.float64] = begin + width * np.arange(bins + 1, dtype=np.float64)
    rates = {
        int(flow): np.histogram(seconds(of["time_ns"]), edges, weights=of["bits"].to_numpy())[0]
        / width
        for (flow,), of in competing.group_by("flow")
    }
    paused = traffic.once("pauses", pauses).filter(pl.col("direction") == direction)
    # Before its first byte, after its last and in a pause a flow has no rate, rather than one of 0.
    alive = {
        int(flow): (edges[1:] > first / 1e9) & (edges[:-1] <= last / 1e9)
        for flow, first, last in flows.select("flow", "first", "last").iter_rows()
    }
    sends = {
        int(flow): (edges[:-1] >= first / 1e9) & (edges[1:] <= last / 1e9)
        for flow, first, last in flows.select("flow", "first", "last").iter_rows()
    }
    for flow, since, until in paused.select("flow", "begin_ns", "end_ns").iter_rows():
        if flow in sends:
            alive[flow] &= (edges[:-1] < since / 1e9) | (edges[1:] > until / 1e9)
            sends[flow] &= (edges[1:] <= since / 1e9) | (edges[:-1] >= until / 1e9)
    shown = sorted(flows.sort("bits", descending=True)["flow"].head(MOST_FLOWS).to_list())
    divisor, unit = rate_unit(max(float(rates[flow].max()) for flow in shown))
    names = congestion_controls(run, traffic, direction)
    labels = dict(traffic.flows.select("flow", pl.coalesce("user", "label")).iter_rows())
    detail = f"means over {width:g} s"
    if flows.height > len(shown):
        detail += f", {len(shown)} of {flows.height} flows"
    with panels(run, span, "sharing", 2, row_inches=2.2, ratios=[5, 2], detail=detail) as (
        figure,
        (upper, lower),
    ):
        for place, flow in enumerate(shown):
            upper.stairs(
                np.where(alive[flow], rates[flow] / divisor, np.nan),
                edges,
                label=f"{labels[flow]}, {names[flow]}" if flow in names else labels[flow],
                color=COLOURS[place % len(COLOURS)],
                linestyle=LINES[place % len(LINES)],
                linewidth=1.3,
                baseline=None,
            )
        upper.set_ylim(0, upper.get_ylim()[1] * LEGEND_ROOM)
        upper.set_ylabel(f"Goodput, {direction} ({unit})")
        upper.legend(loc="upper right", ncols=4)
        _index(lower, edges, rates, sends)
        label = "all send"
        spans = overlap(competing, paused).sort("begin_ns").select("begin_ns", "end_ns")
        for since, until in spans.iter_rows():
            lower.axvspan(since / 1e9, until / 1e9, color="#EEEEEE", zorder=0, label=label)
            label = "_"
        lower.legend(loc="lower right", ncols=2, frameon=True, framealpha=0.85)
    return Picture(f"fairness-{direction}", figure)


def _index(
    axis: Axes,
    edges: NDArray[np.float64],
    rates: dict[int, NDArray[np.float64]],
    sends: dict[int, NDArray[np.bool_]],
) -> None:
    """Draw Jain's index over the flows that send during the whole of each bin."""
    taking_part, total, squares = (np.zeros(len(edges) - 1) for _ in range(3))
    for flow, there in sends.items():
        taking_part += there
        total += there * rates[flow]
        squares += there * rates[flow] ** 2
    known = (taking_part >= 2) & (squares > 0)
    index = np.full(len(total), np.nan)
    index[known] = total[known] ** 2 / (taking_part[known] * squares[known])
    axis.stairs(index, edges, color=BLACK, baseline=None, label="of those that send")
    axis.set_ylim(0, 1.05)
    axis.set_ylabel("Jain's index")


def congestion_controls(run: Run, traffic: Traffic, direction: str) -> dict[int, str]:
    """Return what the sender's kernel named last for each flow, as far as it was recorded."""
    end = SENDING_END[direction]
    told = run.tcp_state.filter((pl.col("end") == end) & pl.col("congestion_control").is_not_null())
    # Clients of several users may have the same port.
    ends = [f"{which}_{what}" for which in ("local", "remote") for what in ("address", "port")]
    named = told.select(
        pl.concat_list(pl.col(name).cast(pl.String) for name in ends), "congestion_control"
    )
    last = {tuple(ends): str(name) for ends, name in named.iter_rows()}
    found = {}
    columns = ("flow", "client", "client_port", "server", "server_port")
    for flow, *client_and_server in traffic.flows.select(columns).iter_rows():
        client, server = client_and_server[:2], client_and_server[2:]
        here = [*client, *server] if end == "client" else [*server, *client]
        key = tuple(map(str, here))
        if key in last:
            found[int(flow)] = last[key]
    return found
