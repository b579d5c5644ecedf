# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of flows that compete: how they share a direction while all of them send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import metric, of_each_run
from airpath.analysis.requests import LEAST_SHARE
from airpath.analysis.streams import STREAM
from airpath.analysis.traffic import RUN
from airpath.headers import PROTOCOL_UDP, PROTOCOL_UDP_LITE

if TYPE_CHECKING:
    from airpath.analysis.traffic import Traffic

SECOND_NS = 1_000_000_000
GROUP = "Fairness"
LEAST_DATAGRAMS = 100
"""Number of datagrams that a flow needs to compete: fewer are questions and answers."""
OVERLAP = """the overlap of all flows that compete in a direction"""
OVERLAP_SPAN = """The overlap is the time in which all of them send: from the first new byte that
    arrives of the flow that begins last to the last new byte of the flow that ends first."""


def arrivals(traffic: Traffic) -> pl.DataFrame:
    """Return flow (index), direction, time_ns and bits of what arrived first of competing flows.

    A flow competes in a direction in which it carried at least LEAST_SHARE of what it carried in
    the other, where another one does, too. One of datagrams has LEAST_DATAGRAMS at least.
    """
    fresh = traffic.tcp.received.filter(pl.col("new") > 0).select(
        *STREAM, "time_ns", bits=8 * pl.col("new")
    )
    fresh = pl.concat([fresh, _datagrams(traffic).cast(fresh.schema)])
    fresh = traffic.with_run(fresh)
    carried = pl.col("bits").sum()
    competing = (
        fresh.group_by(*traffic.by, *STREAM)
        .agg(carried)
        .filter(pl.col("bits") >= LEAST_SHARE * (carried.over("flow") - pl.col("bits")))
        .filter(pl.len().over(*traffic.by, "direction") >= 2)
    )
    return fresh.join(competing.select(STREAM), on=STREAM, how="semi", maintain_order="left")


def _datagrams(traffic: Traffic) -> pl.DataFrame:
    """Return flow, direction, time_ns and bits of the payload of datagrams that arrived."""
    of = pl.col("protocol").is_in([PROTOCOL_UDP, PROTOCOL_UDP_LITE])
    flows = traffic.flows.filter(of).select("flow")
    arrived = traffic.arrivals.drop_nulls("flow").join(flows, on="flow", how="semi")
    arrived = arrived.filter(pl.col("payload") > 0).unique("pdu", keep="first", maintain_order=True)
    arrived = arrived.filter(pl.len().over(STREAM) >= LEAST_DATAGRAMS)
    return arrived.select(*STREAM, time_ns="arrived_ns", bits=8 * pl.col("payload"))


def overlap(competing: pl.DataFrame) -> pl.DataFrame:
    """Return direction, begin_ns and end_ns of the time in which all flows send, if there is one.

    Of several runs, of each.

    Args:
        competing: what ``arrivals`` returns.

    """
    by = _directions(competing)
    each = competing.group_by(*by, "flow").agg(
        first_ns=pl.col("time_ns").min(), last_ns=pl.col("time_ns").max()
    )
    both = each.group_by(by).agg(begin_ns=pl.col("first_ns").max(), end_ns=pl.col("last_ns").min())
    return both.filter(pl.col("end_ns") > pl.col("begin_ns"))


def _directions(competing: pl.DataFrame) -> list[str]:
    """Return the columns that tell directions apart: with the run, where there are several."""
    return [key for key in (RUN, "direction") if key in competing.columns]


def jain(amount: pl.Expr) -> pl.Expr:
    """Return Jain's index over the amounts of a group; null where nobody has anything."""
    squares = pl.len() * (amount.cast(pl.Float64) ** 2).sum()
    index = amount.cast(pl.Float64).sum() ** 2 / squares
    return pl.when(squares > 0).then(index)


def _shared(traffic: Traffic) -> pl.DataFrame:
    """Return the arrivals within the overlap, with begin_ns and end_ns of it."""
    competing = arrivals(traffic)
    within = (pl.col("time_ns") > pl.col("begin_ns")) & (pl.col("time_ns") <= pl.col("end_ns"))
    by = _directions(competing)
    return competing.join(overlap(competing), on=by, maintain_order="left").filter(within)


def _all_flows(traffic: Traffic) -> pl.DataFrame:
    """Return flow, direction and bits within the overlap, 0 for one that got nothing there."""
    competing = arrivals(traffic)
    spans = overlap(competing)
    got = _shared(traffic).group_by(STREAM).agg(pl.col("bits").sum())
    return (
        competing.select(*traffic.by, *STREAM)
        .unique()
        .join(spans, on=_directions(competing))
        .join(got, on=STREAM, how="left")
        .with_columns(pl.col("bits").fill_null(0))
    )


@metric(
    "goodput_overlap",
    "bit/s",
    "flow",
    f"""Bits of payload that reached the receiver, each byte of the stream counted once, in
    {OVERLAP}, over the length of the overlap. {OVERLAP_SPAN} Only where two or more flows of
    TCP or of 100 datagrams compete (see jain_fairness).""",
    group=GROUP,
    better="higher",
)
def _goodput_overlap(traffic: Traffic) -> pl.DataFrame:
    span = pl.col("end_ns") - pl.col("begin_ns")
    found = _all_flows(traffic).select(
        *traffic.by, *STREAM, value=pl.col("bits") * SECOND_NS / span
    )
    return traffic.label(found.sort(STREAM))


@metric(
    "jain_fairness_overlap",
    "1",
    "direction",
    f"""Jain's index (see jain_fairness) over the goodput of each flow in {OVERLAP}
    (see goodput_overlap). Unlike jain_fairness it leaves out the time in which a flow was
    alone.""",
    group=GROUP,
    source="Jain, Chiu and Hawe 1984",
    better="higher",
)
def _jain_fairness_overlap(traffic: Traffic) -> pl.DataFrame:
    indices = _all_flows(traffic).group_by(*traffic.by, "direction").agg(value=jain(pl.col("bits")))
    return indices.drop_nulls("value")


@metric(
    "jain_fairness_overlap_1s",
    "1",
    "direction",
    f"""The mean of Jain's index (see jain_fairness) over each whole second of {OVERLAP}
    (see goodput_overlap). It says how equal shares are in the short term. Seconds in which nothing
    arrived do not count.""",
    group=GROUP,
    source="Jain, Chiu and Hawe 1984",
    better="higher",
)
def _jain_fairness_overlap_1s(traffic: Traffic) -> pl.DataFrame:
    second = (pl.col("time_ns") - pl.col("begin_ns") - 1) // SECOND_NS
    whole = (pl.col("end_ns") - pl.col("begin_ns")) // SECOND_NS
    in_seconds = _shared(traffic).with_columns(second=second).filter(pl.col("second") < whole)
    amounts = in_seconds.group_by(*STREAM, "second").agg(pl.col("bits").sum())
    # A flow of which nothing came in a second is one with 0.
    by = [*traffic.by, "direction"]
    seconds = traffic.with_run(amounts).select(*by, "second").unique()
    flows = _all_flows(traffic).select(*traffic.by, *STREAM)
    every = seconds.join(flows, on=by).join(amounts, on=[*STREAM, "second"], how="left")
    indices = (
        every.with_columns(pl.col("bits").fill_null(0))
        .group_by(*by, "second")
        .agg(value=jain(pl.col("bits")))
    )
    return indices.group_by(by).agg(pl.col("value").mean())


@metric(
    "jain_fairness_users",
    "1",
    "direction",
    """Jain's index (see jain_fairness) over the bits of the IP packets of each user that left the
    link in the whole run, from the events; a user of whom nothing left has 0. Only in runs of
    several users, measured together.""",
    group=GROUP,
    source="Jain, Chiu and Hawe 1984",
    better="higher",
    headline=True,
)
@of_each_run
def _jain_fairness_users(traffic: Traffic) -> pl.DataFrame:
    run = traffic.run
    names = run.users if run.user is None else []
    if not names:
        return pl.DataFrame(schema={"direction": pl.String, "value": pl.Float64})
    left = run.path_events("delivered").filter(pl.col("origin") == "user")
    carried = left.group_by(
        pl.col("direction").cast(pl.String), pl.col("user").cast(pl.String)
    ).agg(pl.col("bits").sum())
    every = (
        carried.select("direction")
        .unique()
        .join(pl.DataFrame({"user": names}, schema={"user": pl.String}), how="cross")
    )
    every = every.join(carried, on=["direction", "user"], how="left")
    indices = every.group_by("direction").agg(value=jain(pl.col("bits").fill_null(0)))
    return indices.drop_nulls("value")
