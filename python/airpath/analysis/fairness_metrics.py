# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of flows that compete: how they share a direction while all of them send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.metric import metric, of_each_run
from airpath.analysis.program_output import SENDS, reports_of
from airpath.analysis.requests import LEAST_SHARE
from airpath.analysis.streams import STREAM
from airpath.analysis.traffic import RUN
from airpath.experiment.quantities import QuantityError, time_ns
from airpath.facts import FIRST_PORTS
from airpath.headers import PROTOCOL_UDP, PROTOCOL_UDP_LITE

if TYPE_CHECKING:
    from airpath.analysis.traffic import Traffic

SECOND_NS = 1_000_000_000
GROUP = "Fairness"
LEAST_DATAGRAMS = 100
"""Number of datagrams that a flow needs to compete: fewer are questions and answers."""
OVERLAP = """the overlap of all flows that compete in a direction"""
OVERLAP_SPAN = """The overlap is the time in which all of them send: from the first new byte that
    arrives of the flow that begins last to the last new byte of the flow that ends first, without
    the pauses that workloads of virtual time have by their own keys."""


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


def pauses(traffic: Traffic) -> pl.DataFrame:
    """Return flow (index), direction, begin_ns and end_ns of pauses that workloads declare.

    A pause begins when the last packet before it arrives, and ends when the first one after it
    does. What a workload does not declare is none: a flow that others starve looks the same.
    """
    declared = [
        {RUN: place, "number": report["flow"], "direction": way, "from_ns": since, "to_ns": until}
        for place, run in enumerate(traffic.runs)
        for report in reports_of(run.manifest)
        for way, since, until in _declared(report)
    ]
    schema = {name: traffic.arrivals.schema[name] for name in STREAM}
    schema |= {"begin_ns": pl.Int64(), "end_ns": pl.Int64()}
    found: list[dict[str, Any]] = []
    for one in declared:
        of_run = pl.col(RUN) == one[RUN] if traffic.by else pl.lit(value=True)
        first = FIRST_PORTS.items()
        ports = [pl.col(f"{end}_port") == port + one["number"] for end, port in first]
        for flow in traffic.flows.filter(of_run, *ports)["flow"]:
            packets = traffic.arrivals.filter(
                pl.col("flow") == flow,
                pl.col("direction").cast(pl.String) == one["direction"],
                pl.col("payload") > 0,
            )
            silent = _silence(packets["offered_ns"], one["from_ns"], one["to_ns"])
            if silent is None:
                continue
            before = packets.filter(pl.col("offered_ns") <= silent[0])["arrived_ns"].max()
            after = packets.filter(pl.col("offered_ns") >= silent[1])["arrived_ns"].min()
            named = {"flow": flow, "direction": one["direction"]}
            found.append(named | {"begin_ns": before, "end_ns": after})
    table = pl.DataFrame(found, schema=schema).filter(pl.col("end_ns") > pl.col("begin_ns"))
    return traffic.with_run(table)


def _declared(report: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Return the direction, the beginning and the end of the pause that a workload declares."""
    workload, start_ns = report.get("workload") or {}, report.get("start_ns")
    sends = SENDS.get(str(workload.get("from")))
    if sends is None or not isinstance(start_ns, int):
        return []
    if not isinstance(workload.get("pause"), str) or not isinstance(workload.get("resume"), str):
        return []
    try:
        since, until = (start_ns + time_ns(workload[key]) for key in ("pause", "resume"))
    except QuantityError:
        return []
    return [(sends, since, until)]


def _silence(offered_ns: pl.Series, from_ns: int, to_ns: int) -> tuple[int, int] | None:
    """Return the longest time without a packet that meets a span, if packets are around it."""
    times = offered_ns.sort()
    gaps = pl.DataFrame({"since": times, "until": times.shift(-1)}).drop_nulls()
    gaps = gaps.filter(pl.col("since") < to_ns, pl.col("until") > from_ns)
    if gaps.is_empty():
        return None
    since, until = gaps.sort(pl.col("until") - pl.col("since")).row(-1)
    return since, until


def overlap(competing: pl.DataFrame, paused: pl.DataFrame) -> pl.DataFrame:
    """Return direction, begin_ns and end_ns of the spans in which all flows send, if there are any.

    Of several runs, of each.

    Args:
        competing: what ``arrivals`` returns.
        paused: what ``pauses`` returns.

    """
    by = _directions(competing)
    each = competing.group_by(*by, "flow").agg(
        first_ns=pl.col("time_ns").min(), last_ns=pl.col("time_ns").max()
    )
    both = each.group_by(by).agg(begin_ns=pl.col("first_ns").max(), end_ns=pl.col("last_ns").min())
    both = both.filter(pl.col("end_ns") > pl.col("begin_ns"))
    paused = paused.join(competing.select(*by, "flow").unique(), on=[*by, "flow"], how="semi")
    if paused.is_empty():
        return both
    spans = []
    for row in both.iter_rows(named=True):
        same = (pl.col(key) == row[key] for key in by)
        cuts = paused.filter(*same).select("begin_ns", "end_ns").sort("begin_ns", "end_ns")
        since = row["begin_ns"]
        for begin, end in [*cuts.iter_rows(), (row["end_ns"], row["end_ns"])]:
            until = min(begin, row["end_ns"])
            if until > since:
                spans.append(row | {"begin_ns": since, "end_ns": until})
            since = max(since, end)
    return pl.DataFrame(spans, schema=both.schema)


def _directions(competing: pl.DataFrame) -> list[str]:
    """Return the columns that tell directions apart: with the run, where there are several."""
    return [key for key in (RUN, "direction") if key in competing.columns]


def jain(amount: pl.Expr) -> pl.Expr:
    """Return Jain's index over the amounts of a group; null where nobody has anything."""
    squares = pl.len() * (amount.cast(pl.Float64) ** 2).sum()
    index = amount.cast(pl.Float64).sum() ** 2 / squares
    return pl.when(squares > 0).then(index)


def _shared(traffic: Traffic) -> pl.DataFrame:
    """Return the arrivals within the overlap, with begin_ns and end_ns of their span of it."""
    competing = arrivals(traffic)
    within = (pl.col("time_ns") > pl.col("begin_ns")) & (pl.col("time_ns") <= pl.col("end_ns"))
    by = _directions(competing)
    spans = overlap(competing, traffic.once("pauses", pauses))
    return competing.join(spans, on=by, maintain_order="left").filter(within)


def _all_flows(traffic: Traffic) -> pl.DataFrame:
    """Return flow, direction, bits within the overlap, 0 for one that got nothing, and span_ns."""
    competing = arrivals(traffic)
    length = (pl.col("end_ns") - pl.col("begin_ns")).sum()
    spans = overlap(competing, traffic.once("pauses", pauses))
    spans = spans.group_by(_directions(competing)).agg(span_ns=length)
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
    rate = pl.col("bits") * SECOND_NS / pl.col("span_ns")
    found = _all_flows(traffic).select(*traffic.by, *STREAM, value=rate)
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
    second_of = ["begin_ns", "second"]
    amounts = in_seconds.group_by(*STREAM, *second_of).agg(pl.col("bits").sum())
    # A flow of which nothing came in a second is one with 0.
    by = [*traffic.by, "direction"]
    seconds = traffic.with_run(amounts).select(*by, *second_of).unique()
    flows = _all_flows(traffic).select(*traffic.by, *STREAM)
    every = seconds.join(flows, on=by).join(amounts, on=[*STREAM, *second_of], how="left")
    indices = (
        every.with_columns(pl.col("bits").fill_null(0))
        .group_by(*by, *second_of)
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
