# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of QUIC connections from the qlog files of their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import (
    GREATEST,
    LEAST,
    MEAN,
    MEDIAN,
    P95,
    Compute,
    metric,
    of_each_run,
    statistics_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.analysis.qlog import Endpoint
    from airpath.analysis.traffic import Traffic

SECOND_NS = 1e9
GROUP = "QUIC (from qlog files)"
SOURCE = "draft-ietf-quic-qlog-quic-events, recovery metrics"
_SENDING = {"client": "uplink", "server": "downlink"}
_SCHEMA = {"flow": pl.String, "direction": pl.String, "value": pl.Float64}
_NOTHING = pl.DataFrame(schema=_SCHEMA)


def _each(value: Callable[[Endpoint], float | None]) -> Compute:
    """Return the function of a metric with one value for each endpoint."""

    def compute(traffic: Traffic) -> pl.DataFrame:
        if not traffic.qlog:
            return _NOTHING
        rows = [
            {
                "flow": end.name,
                "direction": _SENDING.get(end.vantage, ""),
                "value": value(end),
            }
            for end in traffic.qlog
        ]
        return pl.DataFrame(rows, schema=_SCHEMA).drop_nulls("value")

    return of_each_run(compute)


def _updates(column: str, divisor: float) -> Compute:
    def samples(traffic: Traffic) -> pl.DataFrame:
        schema = {"flow": pl.String, "direction": pl.String, "sample": pl.Float64}
        parts = [
            end.updates.select(
                flow=pl.lit(end.name),
                direction=pl.lit(_SENDING.get(end.vantage, "")),
                sample=pl.col(column) / divisor,
            )
            for end in traffic.qlog
        ]
        return pl.concat(parts) if parts else pl.DataFrame(schema=schema)

    return of_each_run(samples)


metric(
    "quic_packets_sent",
    "packets",
    "endpoint",
    "Events packet_sent of the endpoint.",
    group=GROUP,
    source=SOURCE,
)(_each(lambda end: float(end.packets_sent)))
metric(
    "quic_packets_lost",
    "packets",
    "endpoint",
    "Events packet_lost: packets that the endpoint declared lost, rightly or not.",
    group=GROUP,
    source=SOURCE,
    better="lower",
    headline=True,
)(_each(lambda end: float(end.packets_lost)))


def _mean_window(end: Endpoint) -> float | None:
    """Weight each congestion window by how long it held, until the last event."""
    steps = end.updates.drop_nulls("congestion_window").with_columns(
        held=pl.col("time_ns").shift(-1).fill_null(end.end_ns) - pl.col("time_ns")
    )
    held = float(steps["held"].to_numpy().sum())
    if not held:
        return None
    return float((steps["congestion_window"] * steps["held"]).to_numpy().sum()) / held


metric(
    "quic_cwnd_time_mean",
    "B",
    "endpoint",
    """The mean congestion window, each value weighted by how long it held, from the first event
    that tells one to the last event of the file.""",
    group=GROUP,
    source=SOURCE,
)(_each(_mean_window))
statistics_of(
    "quic_cwnd",
    "B",
    "endpoint",
    "the congestion windows that the endpoint logged.",
    _updates("congestion_window", 1.0),
    (LEAST, MEDIAN, GREATEST),
    group=GROUP,
    source=SOURCE,
)
statistics_of(
    "quic_bytes_in_flight",
    "B",
    "endpoint",
    "the bytes in flight that the endpoint logged.",
    _updates("bytes_in_flight", 1.0),
    (GREATEST,),
    group=GROUP,
    source=SOURCE,
)
statistics_of(
    "quic_rtt",
    "s",
    "endpoint",
    "the samples latest_rtt that the endpoint logged.",
    _updates("latest_rtt_ns", SECOND_NS),
    (LEAST, MEAN, MEDIAN, P95, GREATEST),
    group=GROUP,
    source=SOURCE,
    better="lower",
    headline="median",
)
