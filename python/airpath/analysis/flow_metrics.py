# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of transports: TCP connections from both ends' captures, and fairness over flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import (
    GREATEST,
    LEAST,
    MEAN,
    MEDIAN,
    P95,
    P99,
    Better,
    Compute,
    Figures,
    metric,
    seconds,
    statistics_of,
)
from airpath.analysis.requests import LEAST_SHARE
from airpath.analysis.streams import (
    DUPLICATES_FOR_FAST_RETRANSMIT,
    LEAST_TIMEOUT_NS,
    STREAM,
    TRIGGER_NS,
)

if TYPE_CHECKING:
    from airpath.analysis.traffic import Traffic

SECOND_NS = 1e9
GROUP = "TCP"

SENT = Figures(lambda traffic: traffic.tcp.sent)
"""Over the segments as they were sent."""
RECEIVED = Figures(lambda traffic: traffic.tcp.received)
"""Over the segments as they arrived."""
HEARD = Figures(lambda traffic: traffic.tcp.acknowledgements)
"""Over the acknowledgements as they reached the sender."""


def _declare(
    figures: Figures,
    name: str,
    unit: str,
    text: str,
    value: pl.Expr,
    *,
    source: str = "",
    better: Better = "",
    headline: bool = False,
) -> None:
    """Declare a metric over one of the tables of streams."""
    metric(
        name,
        unit,
        "flow",
        text,
        group=GROUP,
        source=source,
        better=better,
        headline=headline,
    )(figures.add(name, value))


# ---- Times --------------------------------------------------------------------------------------


def _timed(traffic: Traffic, last: pl.DataFrame) -> pl.DataFrame:
    """Return the time from each connection's first packet to ``last_ns`` of its streams."""
    begun = traffic.flows.select("flow", "first_ns")
    joined = last.drop_nulls("last_ns").join(begun, on="flow")
    return traffic.label(
        joined.select(*STREAM, value=seconds(pl.col("last_ns") - pl.col("first_ns")))
    )


@metric(
    "flow_elapsed_time",
    "s",
    "flow",
    """Time from the first packet of the connection, as its sender gave it to the link, to the last
    packet sent or received at either end. The same for both directions.""",
    group=GROUP,
    source="Kojo et al. 2001, section 5.2",
    better="lower",
)
def _flow_elapsed_time(traffic: Traffic) -> pl.DataFrame:
    streams = traffic.tcp.sent.select(STREAM).unique()
    last = streams.join(traffic.flows.select("flow", last_ns="last_ns"), on="flow")
    return _timed(traffic, last)


@metric(
    "transfer_time",
    "s",
    "flow",
    """Time from the first packet of the connection (the first SYN) to the arrival, at the sender,
    of the first acknowledgement of the last byte of data. Nothing if that never came.""",
    group=GROUP,
    source="Kojo et al. 2001, section 7",
    better="lower",
    headline=True,
)
def _transfer_time(traffic: Traffic) -> pl.DataFrame:
    size = traffic.tcp.sent.group_by(STREAM).agg(size=pl.col("end").max())
    done = traffic.tcp.acknowledgements.join(size, on=STREAM).filter(
        pl.col("number") >= pl.col("size")
    )
    return _timed(traffic, done.group_by(STREAM).agg(last_ns=pl.col("time_ns").min()))


@metric(
    "connection_setup_time",
    "s",
    "flow",
    """Time from the first SYN of the connection to the arrival of the answer to it (SYN and ACK) at
    the same end.""",
    group=GROUP,
    source="RFC 9293, section 3.5",
    better="lower",
)
def _connection_setup_time(traffic: Traffic) -> pl.DataFrame:
    opened = traffic.tcp.openings.drop_nulls("setup_ns")
    return traffic.label(opened.select("flow", value=seconds(pl.col("setup_ns"))))


@metric(
    "syn_retransmissions",
    "packets",
    "flow",
    "SYN packets sent beyond the first of each end.",
    group=GROUP,
    better="lower",
)
def _syn_retransmissions(traffic: Traffic) -> pl.DataFrame:
    opened = traffic.tcp.openings.drop_nulls("syn_retransmissions")
    return traffic.label(
        opened.select("flow", value=pl.col("syn_retransmissions").cast(pl.Float64))
    )


@metric(
    "time_to_first_byte",
    "s",
    "flow",
    """Time from the first packet of the connection to the arrival of the first segment with data at
    its receiver.""",
    group=GROUP,
    better="lower",
)
def _time_to_first_byte(traffic: Traffic) -> pl.DataFrame:
    first = traffic.tcp.received.group_by(STREAM).agg(last_ns=pl.col("time_ns").min())
    return _timed(traffic, first)


@metric(
    "longest_stall",
    "s",
    "flow",
    "The longest time between two arrivals, one after the other, of data that was new.",
    group=GROUP,
    better="lower",
)
def _longest_stall(traffic: Traffic) -> pl.DataFrame:
    fresh = traffic.tcp.received.filter(pl.col("new") > 0)
    gaps = fresh.group_by(STREAM).agg(gap_ns=pl.col("time_ns").diff().max()).drop_nulls("gap_ns")
    return traffic.label(gaps.select(*STREAM, value=seconds(pl.col("gap_ns"))))


# ---- Amounts ------------------------------------------------------------------------------------


def _goodput(traffic: Traffic) -> pl.DataFrame:
    return traffic.once(_goodput_of_streams, _goodput_of_streams)


def _goodput_of_streams(traffic: Traffic) -> pl.DataFrame:
    fresh = traffic.tcp.received.filter(pl.col("new") > 0)
    got = fresh.group_by(STREAM).agg(bits=8 * pl.col("new").sum(), last_ns=pl.col("time_ns").max())
    timed = got.join(traffic.flows.select("flow", "first_ns"), on="flow").with_columns(
        span=pl.col("last_ns") - pl.col("first_ns")
    )
    return timed.filter(pl.col("span") > 0).select(
        *STREAM, "bits", value=pl.col("bits") * SECOND_NS / pl.col("span")
    )


@metric(
    "goodput",
    "bit/s",
    "flow",
    """Bits of payload that reached the receiver undamaged, each byte of the stream counted once,
    over the time from the connection's first packet to the arrival of the last byte that was
    new.""",
    group=GROUP,
    source="RFC 2647, section 3.17, for one connection",
    better="higher",
    headline=True,
)
def _goodput_of_flows(traffic: Traffic) -> pl.DataFrame:
    return traffic.label(_goodput(traffic)).drop("bits")


_LENGTH = pl.col("end") - pl.col("first")
_declare(
    SENT, "segments", "segments", "Segments with data that the sender gave to the link.", pl.len()
)
_declare(
    SENT,
    "sent_bytes",
    "B",
    "Payload of all segments sent, repeated bytes included.",
    _LENGTH.sum(),
)
_declare(
    SENT,
    "unique_bytes",
    "B",
    "Bytes of the stream that were sent at least once.",
    pl.col("new").sum(),
    source="tcptrace: unique bytes sent",
)
_declare(
    RECEIVED,
    "received_bytes",
    "B",
    "Bytes of the stream that reached the receiver undamaged at least once.",
    pl.col("new").sum(),
    better="higher",
)
_declare(
    SENT,
    "retransmitted_segments",
    "segments",
    "Segments of which at least one byte had been sent before.",
    pl.col("retransmission").sum(),
    source="tcptrace: rexmt data pkts; Kojo et al. 2001, Table 2",
    better="lower",
    headline=True,
)
_declare(
    SENT,
    "retransmitted_bytes",
    "B",
    "Bytes of payload that had been sent before.",
    (_LENGTH - pl.col("new")).sum(),
    source="tcptrace: rexmt data bytes",
    better="lower",
)
_AT_EDGE = "Such a segment contains the first byte that was not acknowledged"
_declare(
    SENT,
    "fast_retransmissions",
    "segments",
    f"""Retransmitted segments that began a recovery because of duplicate acknowledgements.
    {_AT_EDGE}, and is the first one since acknowledgements last advanced. Since then at least
    {DUPLICATES_FOR_FAST_RETRANSMIT} duplicate acknowledgements had arrived. One is enough where a
    timeout (see timeouts) is impossible, because recovery by RACK needs no more.""",
    (pl.col("kind") == "fast").sum(),
    source="RFC 5681, section 3.2; RFC 8985",
    better="lower",
)
_declare(
    SENT,
    "timeouts",
    "segments",
    f"""Retransmitted segments sent by the retransmission timer. {_AT_EDGE}, and is not a fast
    retransmission. That byte was last sent, and acknowledgements last advanced, at least
    {LEAST_TIMEOUT_NS / 1e6:.0f} ms before (the least timeout of Linux). No acknowledgement that
    might have triggered it arrived within {TRIGGER_NS / 1e6:.0f} ms before it. A tail loss probe
    that repeats the only outstanding segment looks the same and is counted.""",
    (pl.col("kind") == "timeout").sum(),
    source="RFC 6298, section 5",
    better="lower",
    headline=True,
)
_declare(
    SENT,
    "other_retransmissions",
    "segments",
    """Retransmitted segments that are neither: further repairs within a recovery, go-back-N after a
    timeout, probes.""",
    (pl.col("kind") == "other").sum(),
    better="lower",
)
_declare(
    SENT,
    "spurious_retransmissions",
    "segments",
    """Retransmitted segments that were not needed: every byte was also in an earlier segment that
    arrived undamaged, before or after the retransmission was sent. Both captures are compared
    packet by packet; the sender could not know.""",
    pl.col("spurious").sum(),
    source="RFC 3522 (the idea)",
    better="lower",
    headline=True,
)
_declare(
    SENT,
    "spurious_retransmissions_late",
    "segments",
    """Spurious retransmissions sent while at least one of the earlier segments was still in the
    link. The sender was too early; it did not miss an acknowledgement.""",
    pl.col("late").sum(),
    better="lower",
)
_declare(
    SENT,
    "spurious_timeouts",
    "segments",
    "Timeouts (as above) whose segment is a spurious retransmission (as above).",
    (pl.col("spurious") & (pl.col("kind") == "timeout")).sum(),
    source="RFC 3522, section 1",
    better="lower",
)
_declare(
    SENT,
    "flight_bytes_max",
    "B",
    """The most bytes in flight after a segment was sent: the highest byte sent minus the highest
    byte acknowledged.""",
    pl.col("flight").max(),
)
_declare(
    RECEIVED,
    "out_of_order_segments",
    "segments",
    """Segments that arrived with new bytes and began below the highest byte that had arrived:
    other segments overtook them, or they repaired losses.""",
    pl.col("late").sum(),
    source="tcptrace: outoforder pkts, at the receiver",
    better="lower",
)
_declare(
    RECEIVED,
    "duplicate_segments",
    "segments",
    "Segments that arrived without new bytes.",
    (pl.col("new") == 0).sum(),
    better="lower",
)
_declare(
    HEARD,
    "acknowledgements",
    "packets",
    "Packets with an acknowledgement of the stream that reached its sender.",
    pl.len(),
)
_declare(
    HEARD,
    "duplicate_acknowledgements",
    "packets",
    """Acknowledgements that reached the sender without data, SYN or FIN, and repeat the highest
    acknowledged number while more data had been sent. They have SACK blocks, or the same window as
    the acknowledgement before.""",
    pl.col("duplicate").sum(),
    source="RFC 5681, section 2; RFC 6675, section 2",
    better="lower",
)
_declare(
    HEARD,
    "dsack_reports",
    "packets",
    """Acknowledgements that reached the sender and report a duplicate: their first SACK block is
    below the acknowledged number, or within the second block.""",
    pl.col("dsack").sum(),
    source="RFC 2883, section 4",
    better="lower",
)


# ---- Round trips --------------------------------------------------------------------------------


def _round_trips(column: str) -> Compute:
    def samples(traffic: Traffic) -> pl.DataFrame:
        return traffic.tcp.acknowledgements.select(*STREAM, sample=seconds(pl.col(column)))

    return samples


statistics_of(
    "rtt",
    "s",
    "flow",
    """the round trip times at the sender. A sample is the time from a segment that was sent once to
    the first acknowledgement of its end. Samples with a retransmission in between are left out,
    because they are ambiguous.""",
    _round_trips("rtt_ns"),
    (LEAST, MEAN, MEDIAN, P95, P99, GREATEST),
    group=GROUP,
    source="Karn and Partridge 1987; tcptrace: RTT",
    better="lower",
    headline="median",
)
_declare(
    HEARD,
    "rtt_samples",
    "packets",
    "Acknowledgements that gave a round trip time (see rtt_min).",
    pl.col("rtt_ns").count(),
)
statistics_of(
    "rtt_timestamps",
    "s",
    "flow",
    """the round trip times by TCP timestamps. A sample is the time to an acknowledgement with a new
    number from the first segment with data that has the echoed timestamp. Samples have the
    resolution of the sender's timestamps (1 ms on Linux), and include delayed acknowledgements.""",
    _round_trips("rtt_timestamp_ns"),
    (LEAST, MEAN, MEDIAN, P95, P99, GREATEST),
    group=GROUP,
    source="RFC 7323, section 4.1",
    better="lower",
)


# ---- Fairness -----------------------------------------------------------------------------------


@metric(
    "jain_fairness",
    "1",
    "direction",
    """Jain's index over the goodput x of n TCP flows in the direction: the square of the sum of x
    over n times the sum of x squared. 1 if all are equal, 1/n if one has everything. Flows count
    that carried at least a tenth as much in this direction as in the other, so that requests do
    not. Only if n is at least 2.""",
    group="Fairness",
    source="Jain, Chiu and Hawe 1984",
    better="higher",
    headline=True,
)
def _jain_fairness(traffic: Traffic) -> pl.DataFrame:
    goodput = pl.col("value")
    both_ways = pl.col("bits").sum().over("flow")
    return (
        traffic.with_run(_goodput(traffic))
        .filter(pl.col("bits") >= LEAST_SHARE * (both_ways - pl.col("bits")))
        .group_by(*traffic.by, "direction")
        .agg(n=pl.len(), value=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum()))
        .filter(pl.col("n") >= 2)
        .drop("n")
    )
