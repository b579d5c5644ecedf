# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of the link: what it did to packets, by direction, user and flow, and its queues."""

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
    Figures,
    Scope,
    Statistic,
    metric,
    seconds,
    statistics_of,
)
from airpath.analysis.traffic import RUN, reordering_extent
from airpath.facts import CAUSE_CLASSES, NEVER_INSIDE, causes_of
from airpath.run import queue_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.analysis.traffic import Traffic

SECOND_NS = 1e9

DROPS = {
    f"drops_{group}": (meaning, causes_of(group))
    for group, meaning in CAUSE_CLASSES.items()
    if group != NEVER_INSIDE
}
"""Metric, words, and the causes in the event log that it counts."""


# ---- The run ------------------------------------------------------------------------------------


@metric(
    "elapsed_time",
    "s",
    "run",
    "Time from the first packet that an end offered to the link to the last that left it.",
    group="Run",
    source="Kojo et al. 2001, section 5.2",
    better="lower",
    headline=True,
)
def _elapsed_time(traffic: Traffic) -> pl.DataFrame:
    spans = traffic.spans_ns
    values = {"value": [(last - first) / SECOND_NS for first, last in spans.values()]}
    return pl.DataFrame(({RUN: list(spans)} if traffic.by else {}) | values)


# ---- Packets, by direction, by user and by flow -------------------------------------------------


_GROUPS: dict[Scope, str] = {
    "direction": "Packets of a direction",
    "user": "Packets of a user",
    "flow": "Packets of a flow",
}
_PREFIXES: dict[Scope, str] = {"direction": "", "user": "user_", "flow": "flow_"}


def _of(scope: Scope, packets: pl.DataFrame) -> pl.DataFrame:
    """Return the packets that have the keys of a scope, with no other keys."""
    if scope == "direction":
        return packets.drop("flow")
    if scope == "user":
        packets = packets.with_columns(flow=pl.col("user"))
    return packets.drop_nulls("flow")


def _keys(traffic: Traffic, scope: Scope) -> list[str]:
    of = ["direction"] if scope == "direction" else ["flow", "direction"]
    return [*traffic.by, *of]


def _arrivals(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the arrivals of packets of which it is known when they were offered."""
    return _of(scope, traffic.arrivals.drop_nulls("offered_ns"))


def _delays(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    delay = seconds(pl.col("arrived_ns") - pl.col("offered_ns"))
    return _of(scope, traffic.packets).select(*_keys(traffic, scope), sample=delay)


def _interarrival_jitter(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the running estimate of jitter after each packet, in seconds."""
    keys = _keys(traffic, scope)
    transit = pl.col("arrived_ns") - pl.col("offered_ns")
    step = transit.diff().over(keys).abs().cast(pl.Float64)
    # The estimate before the first difference is 0: so the filter starts from a row of 0.
    return (
        _arrivals(traffic, scope)
        .select(*keys, step=step.fill_null(0.0))
        .with_columns(
            sample=seconds(pl.col("step").ewm_mean(alpha=1 / 16, adjust=False).over(keys)),
            place=pl.int_range(pl.len()).over(keys),
        )
        .filter(pl.col("place") > 0)
    )


def _variation(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    keys = _keys(traffic, scope)
    delay = pl.col("arrived_ns") - pl.col("offered_ns")
    return _of(scope, traffic.packets).select(*keys, sample=seconds(delay.diff().over(keys).abs()))


def _reordering(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the extent of each first copy that arrived; 0 for those in order."""
    keys = _keys(traffic, scope)
    first = _arrivals(traffic, scope)
    first = first.unique([*keys, "pdu"], keep="first", maintain_order=True)
    parts = [
        part.select(*keys, extent=pl.Series(reordering_extent(part["number"].to_numpy())))
        for part in first.partition_by(keys, maintain_order=True)
    ]
    return pl.concat(parts) if parts else first.select(*keys, extent=pl.lit(0, pl.Int64))


def _loss_runs(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the length of each run of packets that were lost one after the other."""
    keys = _keys(traffic, scope)
    packets = _of(scope, traffic.packets).with_columns(block=pl.col("lost").rle_id().over(keys))
    return packets.filter("lost").group_by(*keys, "block").agg(sample=pl.len())


def _declare_for(scope: Scope) -> None:
    """Declare the metrics of packets, of directions, of users or of flows."""
    group, prefix = _GROUPS[scope], _PREFIXES[scope]
    shown = scope == "direction"
    packets = Figures(lambda traffic: _of(scope, traffic.packets))
    arrivals = Figures(lambda traffic: _arrivals(traffic, scope))
    jitter = Figures(lambda traffic: _interarrival_jitter(traffic, scope))
    reordering = Figures(lambda traffic: _reordering(traffic, scope))

    def figure(
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
        metric(
            prefix + name,
            unit,
            scope,
            text,
            group=group,
            source=source,
            better=better,
            headline=headline and shown,
        )(figures.add(name, value))

    def statistics(
        name: str,
        unit: str,
        text: str,
        samples: Callable[[Traffic, Scope], pl.DataFrame],
        which: tuple[Statistic, ...],
        *,
        source: str,
        headline: str = "",
    ) -> None:
        statistics_of(
            prefix + name,
            unit,
            scope,
            text,
            lambda traffic: samples(traffic, scope),
            which,
            group=group,
            source=source,
            better="lower",
            headline=headline if shown else "",
        )

    figure(
        packets,
        "packets_offered",
        "packets",
        "Packets that the sending end gave to the link.",
        pl.len(),
    )
    figure(
        packets,
        "packets_delivered",
        "packets",
        "Packets of which at least one copy left the link.",
        (pl.col("copies") > 0).sum(),
        better="higher",
    )
    figure(
        packets,
        "packets_lost",
        "packets",
        """Offered packets of which no copy left the link and which the link dropped (in a run
        without events: no copy of which was seen at the other end). What is still inside at the end
        of the run is neither delivered nor lost.""",
        pl.col("lost").sum(),
        better="lower",
    )
    figure(
        packets,
        "loss_ratio",
        "1",
        "Lost packets to offered ones.",
        pl.col("lost").mean(),
        source="RFC 7680",
        better="lower",
        headline=True,
    )
    figure(
        packets,
        "duplicates",
        "packets",
        "Copies that left the link beyond the first of each packet.",
        (pl.col("copies") - 1).clip(0).sum(),
        source="RFC 5560",
        better="lower",
    )
    statistics(
        "one_way_delay",
        "s",
        """the one-way delays of the packets delivered, from the offer to the exit of the first
        copy, by one clock.""",
        _delays,
        (LEAST, MEAN, MEDIAN, P95, P99, GREATEST),
        source="RFC 7679",
        headline="median",
    )
    figure(
        jitter,
        "interarrival_jitter",
        "s",
        """The running estimate of interarrival jitter after the last packet: J += (|D| - J) / 16
        for the difference D of the transit times of one arrival (copies included) and the next,
        from J = 0.""",
        pl.col("sample").last(),
        source="RFC 3550, section 6.4.1",
        better="lower",
    )
    statistics(
        "interarrival_jitter",
        "s",
        "the running estimate of interarrival jitter (see above) over all arrivals but the first.",
        _interarrival_jitter,
        (MEAN, GREATEST),
        source="RFC 3550, section 6.4.1",
        headline="mean",
    )
    statistics(
        "delay_variation",
        "s",
        """the absolute difference of the one-way delays of two packets offered one after the
        other, both delivered.""",
        _variation,
        (MEAN, MEDIAN, P95, GREATEST),
        source="RFC 3393; selection function: consecutive packets",
    )
    figure(
        reordering,
        "reordered",
        "packets",
        "Packets whose first copy arrived after that of a packet offered later.",
        (pl.col("extent") > 0).sum(),
        source="RFC 4737, section 3",
        better="lower",
    )
    figure(
        reordering,
        "reordered_ratio",
        "1",
        "Reordered packets to delivered ones.",
        (pl.col("extent") > 0).mean(),
        source="RFC 4737, section 4.1",
        better="lower",
    )
    figure(
        reordering,
        "reordering_extent_max",
        "packets",
        """The greatest number of arrivals by which a packet came after the first that had been
        offered later.""",
        pl.col("extent").max(),
        source="RFC 4737, section 4.2",
        better="lower",
    )
    statistics(
        "loss_run",
        "packets",
        "the lengths of runs of packets lost one after the other, in the order of offering.",
        _loss_runs,
        (MEAN, MEDIAN, GREATEST),
        source="RFC 3357, section 5 (loss period lengths)",
    )
    # Without any time between them there is no rate.
    span = pl.col("arrived_ns").max() - pl.col("offered_ns").min()
    figure(
        arrivals,
        "throughput",
        "bit/s",
        """Bits of the IP packets that left the link (headers, copies and retransmissions
        included), over the time from the first offer of one that got through to the last exit.""",
        pl.when(span > 0).then(8 * pl.col("bytes").sum() * SECOND_NS / span),
        source="Kojo et al. 2001, section 5.2",
        better="higher",
        headline=True,
    )


for _scope in _GROUPS:
    _declare_for(_scope)


# ---- Drops --------------------------------------------------------------------------------------


_EVENT_COLUMNS = ("direction", "kind", "cause")


def _counted_events(traffic: Traffic) -> pl.DataFrame:
    """Return drops and marks of endpoints' packets, a row a packet.

    Where packets were offered and there is a log, no such event is a figure too: so every direction
    in use has a row without an event.
    """
    events = traffic.events
    by = [*traffic.by, "direction"]
    columns = [*traffic.by, *(pl.col(name).cast(pl.String) for name in _EVENT_COLUMNS)]
    if events.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(_EVENT_COLUMNS, pl.String))
    told = pl.col("kind").cast(pl.String).is_in(["dropped", "marked"])
    rows = events.filter(told & (pl.col("origin") == "user")).select(columns)
    used = traffic.packets.select(*traffic.by, pl.col("direction").cast(pl.String)).unique()
    return pl.concat([rows.join(used, on=by, how="semi"), used], how="diagonal")


_EVENTS = Figures(_counted_events)
_DROPPED = pl.col("kind") == "dropped"

metric(
    "drops",
    "packets",
    "direction",
    "Drop events of endpoints' packets, whatever the cause; a dropped copy counts too.",
    group="Drops",
    source="Kojo et al. 2001, Table 2",
    better="lower",
    headline=True,
)(_EVENTS.add("drops", _DROPPED.sum()))
for _name, (_words, _causes) in DROPS.items():
    metric(
        _name,
        "packets",
        "direction",
        f"Drops by {_words} (in the event log: {', '.join(_causes)}).",
        group="Drops",
        better="lower",
        headline=_name in ("drops_congestion", "drops_error"),
    )(_EVENTS.add(_name, (_DROPPED & pl.col("cause").is_in(list(_causes))).sum()))


metric(
    "marks",
    "packets",
    "direction",
    "Packets on which queue management set congestion experienced (CE).",
    group="Drops",
    source="RFC 3168",
)(_EVENTS.add("marks", (pl.col("kind") == "marked").sum()))


# ---- Queues and the medium ----------------------------------------------------------------------

_QUEUE_KEYS = ["direction", "hop"]


def _hop(traffic: Traffic) -> pl.Expr:
    """Return the name of the hop of an event; with that of the user where there are several."""
    return queue_name(of_users=traffic.tells_users, has_bearers=False)


def _durations(traffic: Traffic) -> pl.Expr:
    """Return the duration of each row's run."""
    of_runs = [run.duration_ns for run in traffic.runs]
    if not traffic.by:
        return pl.lit(of_runs[0], pl.Int64)
    return pl.lit(pl.Series(of_runs, dtype=pl.Int64)).gather(pl.col(RUN))


def _occupancy(traffic: Traffic, column: str) -> pl.DataFrame:
    """Return each length that a queue had, and how long, until the end of the run."""
    rows = traffic.events.filter(pl.col("stage") == "queue").select(
        *traffic.by,
        pl.col("direction").cast(pl.String),
        traffic.queue_name(),
        "time_ns",
        length=pl.col(column),
    )
    last = pl.col("time_ns").max()
    ends = pl.max_horizontal(_durations(traffic), last.over(RUN) if traffic.by else last)
    following = pl.col("time_ns").shift(-1).over(*traffic.by, *_QUEUE_KEYS)
    following = pl.coalesce(following, ends)
    return rows.with_columns(held=following - pl.col("time_ns")).filter(pl.col("held") > 0)


def _queue_quantile(share: float) -> pl.Expr:
    """Return the least length that, with those below it, held for at least that share of time."""
    so_far = pl.col("held").sort_by("length").cum_sum()
    enough = so_far >= share * pl.col("held").sum()
    return pl.col("length").sort_by("length").filter(enough).first()


_QUEUE_FIGURES = {
    "mean": (
        "The mean length over time",
        (pl.col("length") * pl.col("held")).sum() / pl.col("held").sum(),
    ),
    "median": (
        "The length that the queue did not exceed for half of the time",
        _queue_quantile(0.5),
    ),
    "p95": (
        "The length that the queue did not exceed for 95 % of the time",
        _queue_quantile(0.95),
    ),
    "p99": (
        "The length that the queue did not exceed for 99 % of the time",
        _queue_quantile(0.99),
    ),
    "max": (
        "The greatest length that lasted for any time",
        pl.col("length").max().cast(pl.Float64),
    ),
}


def _declare_lengths(column: str, unit: str) -> None:
    """Declare the metrics of a queue's length in one unit."""
    lengths = Figures(lambda traffic: _occupancy(traffic, column))
    for suffix, (text, value) in _QUEUE_FIGURES.items():
        metric(
            f"{column}_{suffix}",
            unit,
            "queue",
            f"""{text}, from the queue's first event to the end of the run, including virtual
            packets of background loads.""",
            group="Queues and the medium",
            better="lower",
            headline=(column, suffix) == ("queue_packets", "mean"),
        )(lengths.add(suffix, value))


_declare_lengths("queue_packets", "packets")
_declare_lengths("queue_bytes", "B")


@metric(
    "idle_time",
    "s",
    "queue",
    """Time between the first offer and the last exit of a packet of the direction in which the
    hop's medium transmitted nothing in that direction. A medium without a rate is always idle.""",
    group="Queues and the medium",
    better="lower",
)
def _idle_time(traffic: Traffic) -> pl.DataFrame:
    keys = [*traffic.by, *_QUEUE_KEYS]
    frames = traffic.events.filter(
        pl.col("kind").cast(pl.String).is_in(["frame_started", "frame_sent"])
    ).select(
        *traffic.by,
        pl.col("direction").cast(pl.String),
        _hop(traffic),
        "time_ns",
        change=pl.when(pl.col("kind") == "frame_started").then(1).otherwise(-1),
    )
    busy = (
        frames.with_columns(
            active=pl.col("change").cum_sum().over(keys),
            length=pl.col("time_ns").shift(-1).over(keys) - pl.col("time_ns"),
        )
        .group_by(keys)
        .agg(busy=pl.col("length").filter(pl.col("active") > 0).sum())
    )
    span = traffic.arrivals.group_by(*traffic.by, pl.col("direction").cast(pl.String)).agg(
        span=pl.col("arrived_ns").max() - pl.col("offered_ns").min()
    )
    return busy.join(span, on=[*traffic.by, "direction"]).select(
        *keys, value=seconds((pl.col("span") - pl.col("busy")).clip(0))
    )
