# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Times of packets in each hop, from the event log, and the metrics of queues' waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import GREATEST, MEAN, MEDIAN, P95, P99, seconds, statistics_of

if TYPE_CHECKING:
    from airpath.analysis.traffic import Traffic
    from airpath.run import Run

PARTS = ("queue_ns", "buffer_ns", "link_ns")
"""Columns of ``hop_times`` that add up to a packet's time in a hop."""

_KEYS = ["hop", "direction", "pdu"]


def hop_times(run: Run) -> pl.DataFrame:
    """Return the times of endpoints' packets in each hop that they left.

    Of a packet with copies the first exit counts. Its time ends when it was due, also in a live
    run.

    Returns:
        hop, direction, pdu, queue_ns (from entering the queue to leaving it), buffer_ns (from
        there to the start of the first frame; 0 where frames are not logged), link_ns (the rest:
        transmission, repetitions, propagation).

    """
    return _times(run.events, run.queue_name(), _KEYS)


def _times(events: pl.DataFrame, queue_name: pl.Expr, keys: list[str]) -> pl.DataFrame:
    """Return ``hop_times`` of a table of events, which may be those of several runs."""
    events = events.filter((pl.col("origin") == "user") & (pl.col("pdu") != 0))
    text = [pl.col(name).cast(pl.String) for name in ("direction", "kind")]
    others = [key for key in keys if key not in _KEYS]
    events = events.select(*others, queue_name, *text, "pdu", "time_ns")

    def first(kind: str, name: str) -> pl.DataFrame:
        rows = events.filter(pl.col("kind") == kind)
        return rows.group_by(keys, maintain_order=True).agg(pl.col("time_ns").min().alias(name))

    entered = first("enqueued", "entered_ns")
    left_queue = (
        events.filter(pl.col("kind") == "dequeued")
        .group_by(keys)
        .agg(left_queue_ns=pl.col("time_ns").max())
    )
    sent = first("frame_started", "sent_ns")
    passed = first("passed", "passed_ns")
    # A packet leaves its last hop when it leaves the path.
    delivered = first("delivered", "delivered_ns").drop("hop")
    delivered = delivered.group_by("direction", "pdu").agg(pl.col("delivered_ns").min())
    times = entered.join(left_queue, on=keys, maintain_order="left")
    times = times.join(sent, on=keys, how="left", maintain_order="left")
    times = times.join(passed, on=keys, how="left", maintain_order="left")
    times = times.join(delivered, on=["direction", "pdu"], how="left", maintain_order="left")
    last = pl.col("entered_ns") == pl.col("entered_ns").max().over("direction", "pdu")
    times = times.with_columns(
        exit_ns=pl.coalesce("passed_ns", pl.when(last).then("delivered_ns")),
        sent_ns=pl.coalesce("sent_ns", "left_queue_ns"),
    ).drop_nulls("exit_ns")
    return times.select(
        *keys,
        queue_ns=pl.col("left_queue_ns") - pl.col("entered_ns"),
        buffer_ns=pl.col("sent_ns") - pl.col("left_queue_ns"),
        link_ns=pl.col("exit_ns") - pl.col("sent_ns"),
    )


def _waits(traffic: Traffic) -> pl.DataFrame:
    return traffic.once(hop_times, _times_of_traffic).select(
        *traffic.by, "hop", "direction", sample=seconds(pl.col("queue_ns"))
    )


def _times_of_traffic(traffic: Traffic) -> pl.DataFrame:
    return _times(traffic.events, traffic.queue_name(), [*traffic.by, *_KEYS])


statistics_of(
    "queue_wait",
    "s",
    "queue",
    """the times that endpoints' packets waited in the queue, from entering it to leaving it, of
    packets that left the hop.""",
    _waits,
    (MEAN, MEDIAN, P95, P99, GREATEST),
    group="Queues and the medium",
    better="lower",
)
