"""Metrics of the link: what it did to packets, by direction and by flow, and its queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.analysis.metric import (
    GREATEST,
    LEAST,
    MEAN,
    MEDIAN,
    P95,
    P99,
    Compute,
    Scope,
    metric,
    statistics_of,
)
from airpath.analysis.traffic import reordering_extent

if TYPE_CHECKING:
    from airpath.analysis.traffic import Traffic

SECOND_NS = 1e9

DROPS = {
    "drops_congestion": (
        "congestion: the queue was full (packets, bytes, age) or its management dropped",
        ("queue_packets", "queue_bytes", "queue_age", "queue_management"),
    ),
    "drops_error": ("transmission errors of the channel", ("channel_error",)),
    "drops_blackout": ("a blackout", ("blackout",)),
    "drops_receive_buffer": ("a full receive buffer of the link", ("receive_buffer",)),
    "drops_outside": ("what lies outside the model: a full socket buffer", ("outside",)),
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
    span = traffic.span_ns
    return pl.DataFrame({"value": [] if span is None else [(span[1] - span[0]) / SECOND_NS]})


# ---- Packets, by direction and by flow ----------------------------------------------------------


def _by(traffic: Traffic, scope: Scope, packets: pl.DataFrame) -> pl.DataFrame:
    """Give packets the key of their scope."""
    if scope == "direction":
        return packets.drop("flow")
    return traffic.label(packets.drop_nulls("flow"))


def _keys(scope: Scope) -> list[str]:
    return ["direction"] if scope == "direction" else ["flow", "direction"]


def _count(name: str, unit: str, text: str, value: pl.Expr, **options: object) -> None:
    """Declare a count over offered packets, for directions and for flows."""
    for scope, prefix in _SCOPES:

        def compute(traffic: Traffic, scope: Scope = scope) -> pl.DataFrame:
            return (
                _by(traffic, scope, traffic.packets)
                .group_by(_keys(scope))
                .agg(value=value.cast(pl.Float64))
            )

        _declare(name, unit, scope, prefix, text, compute, options)


_SCOPES: tuple[tuple[Scope, str], ...] = (("direction", ""), ("flow", "flow_"))


def _declare(
    name: str,
    unit: str,
    scope: Scope,
    prefix: str,
    text: str,
    compute: Compute,
    options: dict[str, object],
) -> None:
    headline = bool(options.get("headline")) and scope == "direction"
    metric(
        prefix + name,
        unit,
        scope,
        text,
        group="Packets of a direction" if scope == "direction" else "Packets of a flow",
        source=str(options.get("source", "")),
        better=options.get("better", ""),  # type: ignore[arg-type]
        headline=headline,
    )(compute)


_count("packets_offered", "packets", "Packets that the sending end gave to the link.", pl.len())
_count(
    "packets_delivered",
    "packets",
    "Packets of which at least one copy left the link.",
    (pl.col("copies") > 0).sum(),
    better="higher",
)
_count(
    "packets_lost",
    "packets",
    """Offered packets of which no copy left the link and which the link dropped (in a run without
    events: no copy of which was seen at the other end). What is still inside at the end of the run
    is neither delivered nor lost.""",
    pl.col("lost").sum(),
    better="lower",
)
_count(
    "loss_ratio",
    "1",
    "Lost packets to offered ones.",
    pl.col("lost").mean(),
    source="RFC 7680",
    better="lower",
    headline=True,
)
_count(
    "duplicates",
    "packets",
    "Copies that left the link beyond the first of each packet.",
    (pl.col("copies") - 1).clip(0).sum(),
    source="RFC 5560",
    better="lower",
)


def _delays(scope: Scope) -> Compute:
    def samples(traffic: Traffic) -> pl.DataFrame:
        delay = (pl.col("arrived_ns") - pl.col("offered_ns")) / SECOND_NS
        return _by(traffic, scope, traffic.packets).select(*_keys(scope), sample=delay)

    return samples


for _scope, _prefix in _SCOPES:
    statistics_of(
        f"{_prefix}one_way_delay",
        "s",
        _scope,
        """the one-way delays of the packets delivered, from the offer to the exit of the first
        copy, by one clock.""",
        _delays(_scope),
        (LEAST, MEAN, MEDIAN, P95, P99, GREATEST),
        group="Packets of a direction" if _scope == "direction" else "Packets of a flow",
        source="RFC 7679",
        better="lower",
        headline="median" if _scope == "direction" else "",
    )


def _interarrival_jitter(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the running estimate of jitter after each packet, in seconds."""
    keys = _keys(scope)
    arrived = _by(traffic, scope, traffic.arrivals.drop_nulls("offered_ns"))
    transit = pl.col("arrived_ns") - pl.col("offered_ns")
    step = transit.diff().over(keys).abs().cast(pl.Float64)
    # The estimate before the first difference is 0: so the filter starts from a row of 0.
    return (
        arrived.select(*keys, step=step.fill_null(0.0))
        .with_columns(
            sample=pl.col("step").ewm_mean(alpha=1 / 16, adjust=False).over(keys) / SECOND_NS,
            place=pl.int_range(pl.len()).over(keys),
        )
        .filter(pl.col("place") > 0)
    )


for _scope, _prefix in _SCOPES:

    def _last_jitter(traffic: Traffic, scope: Scope = _scope) -> pl.DataFrame:
        return (
            _interarrival_jitter(traffic, scope)
            .group_by(_keys(scope))
            .agg(value=pl.col("sample").last())
        )

    _declare(
        "interarrival_jitter",
        "s",
        _scope,
        _prefix,
        """The running estimate of interarrival jitter after the last packet: J += (|D| - J) / 16
        for the difference D of the transit times of one arrival (copies included) and the next,
        from J = 0.""",
        _last_jitter,
        {"source": "RFC 3550, section 6.4.1", "better": "lower"},
    )

    def _jitter_samples(traffic: Traffic, scope: Scope = _scope) -> pl.DataFrame:
        return _interarrival_jitter(traffic, scope)

    statistics_of(
        f"{_prefix}interarrival_jitter",
        "s",
        _scope,
        "the running estimate of interarrival jitter (see above) over all arrivals but the first.",
        _jitter_samples,
        (MEAN, GREATEST),
        group="Packets of a direction" if _scope == "direction" else "Packets of a flow",
        source="RFC 3550, section 6.4.1",
        better="lower",
        headline="mean" if _scope == "direction" else "",
    )

    def _variation(traffic: Traffic, scope: Scope = _scope) -> pl.DataFrame:
        keys = _keys(scope)
        delay = pl.col("arrived_ns") - pl.col("offered_ns")
        return _by(traffic, scope, traffic.packets).select(
            *keys, sample=delay.diff().over(keys).abs() / SECOND_NS
        )

    statistics_of(
        f"{_prefix}delay_variation",
        "s",
        _scope,
        """the absolute difference of the one-way delays of two packets offered one after the
        other, both delivered.""",
        _variation,
        (MEAN, MEDIAN, P95, GREATEST),
        group="Packets of a direction" if _scope == "direction" else "Packets of a flow",
        source="RFC 3393; selection function: consecutive packets",
        better="lower",
    )


def _reordering(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the extent of each first copy that arrived; 0 for those in order."""
    keys = _keys(scope)
    first = _by(traffic, scope, traffic.arrivals.drop_nulls("number"))
    first = first.unique([*keys, "pdu"], keep="first", maintain_order=True)
    parts = [
        part.select(*keys, extent=pl.Series(reordering_extent(part["number"].to_numpy())))
        for part in first.partition_by(keys, maintain_order=True)
    ]
    return pl.concat(parts) if parts else first.select(*keys, extent=pl.lit(0, pl.Int64))


for _scope, _prefix in _SCOPES:
    for _name, _unit, _text, _value, _section in (
        (
            "reordered",
            "packets",
            "Packets whose first copy arrived after that of a packet offered later.",
            (pl.col("extent") > 0).sum().cast(pl.Float64),
            "3",
        ),
        (
            "reordered_ratio",
            "1",
            "Reordered packets to delivered ones.",
            (pl.col("extent") > 0).mean(),
            "4.1",
        ),
        (
            "reordering_extent_max",
            "packets",
            """The greatest number of arrivals by which a packet came after the first that had been
            offered later.""",
            pl.col("extent").max().cast(pl.Float64),
            "4.2",
        ),
    ):

        def _reordered(
            traffic: Traffic, scope: Scope = _scope, value: pl.Expr = _value
        ) -> pl.DataFrame:
            return _reordering(traffic, scope).group_by(_keys(scope)).agg(value=value)

        _declare(
            _name,
            _unit,
            _scope,
            _prefix,
            _text,
            _reordered,
            {"source": f"RFC 4737, section {_section}", "better": "lower"},
        )


def _loss_runs(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    """Return the length of each run of packets that were lost one after the other."""
    keys = _keys(scope)
    packets = _by(traffic, scope, traffic.packets).with_columns(
        block=pl.col("lost").rle_id().over(keys)
    )
    return packets.filter("lost").group_by(*keys, "block").agg(sample=pl.len())


for _scope, _prefix in _SCOPES:

    def _runs(traffic: Traffic, scope: Scope = _scope) -> pl.DataFrame:
        return _loss_runs(traffic, scope)

    statistics_of(
        f"{_prefix}loss_run",
        "packets",
        _scope,
        "the lengths of runs of packets lost one after the other, in the order of offering.",
        _runs,
        (MEAN, MEDIAN, GREATEST),
        group="Packets of a direction" if _scope == "direction" else "Packets of a flow",
        source="RFC 3357, section 5 (loss period lengths)",
        better="lower",
    )


def _throughput(traffic: Traffic, scope: Scope) -> pl.DataFrame:
    keys = _keys(scope)
    arrived = _by(traffic, scope, traffic.arrivals.drop_nulls("bytes"))
    span = pl.col("arrived_ns").max() - pl.col("offered_ns").min()
    return (
        arrived.group_by(keys)
        .agg(bits=8 * pl.col("bytes").sum(), span=span)
        .filter(pl.col("span") > 0)
        .select(*keys, value=pl.col("bits") * SECOND_NS / pl.col("span"))
    )


for _scope, _prefix in _SCOPES:

    def _rate(traffic: Traffic, scope: Scope = _scope) -> pl.DataFrame:
        return _throughput(traffic, scope)

    _declare(
        "throughput",
        "bit/s",
        _scope,
        _prefix,
        """Bits of the IP packets that left the link (headers, copies and retransmissions
        included), over the time from the first offer of one that got through to the last exit.""",
        _rate,
        {"source": "Kojo et al. 2001, section 5.2", "better": "higher", "headline": True},
    )


# ---- Drops --------------------------------------------------------------------------------------


def _drops(causes: tuple[str, ...] | None) -> Compute:
    def compute(traffic: Traffic) -> pl.DataFrame:
        # Where packets were offered and the log tells of drops, none is a figure too.
        if traffic.run.events.is_empty():
            return pl.DataFrame(schema={"direction": pl.String, "value": pl.Float64})
        rows = traffic.run.drops().with_columns(
            pl.col("direction").cast(pl.String), pl.col("cause").cast(pl.String)
        )
        if causes is not None:
            rows = rows.filter(pl.col("cause").is_in(list(causes)))
        counted = rows.group_by("direction").agg(value=pl.len().cast(pl.Float64))
        used = traffic.packets.select(pl.col("direction").cast(pl.String)).unique()
        return used.join(counted, on="direction", how="left").with_columns(
            pl.col("value").fill_null(0.0)
        )

    return compute


metric(
    "drops",
    "packets",
    "direction",
    "Drop events of endpoints' packets, whatever the cause; a dropped copy counts too.",
    group="Drops",
    source="Kojo et al. 2001, Table 2",
    better="lower",
    headline=True,
)(_drops(None))
for _name, (_words, _causes) in DROPS.items():
    metric(
        _name,
        "packets",
        "direction",
        f"Drops by {_words} (in the event log: {', '.join(_causes)}).",
        group="Drops",
        better="lower",
        headline=_name in ("drops_congestion", "drops_error"),
    )(_drops(_causes))


@metric(
    "marks",
    "packets",
    "direction",
    "Packets on which queue management set congestion experienced (CE).",
    group="Drops",
    source="RFC 3168",
)
def _marks(traffic: Traffic) -> pl.DataFrame:
    events = traffic.run.events
    if events.is_empty():
        return pl.DataFrame(schema={"direction": pl.String, "value": pl.Float64})
    rows = events.filter((pl.col("kind") == "marked") & (pl.col("origin") == "user"))
    counted = rows.group_by(pl.col("direction").cast(pl.String)).agg(
        value=pl.len().cast(pl.Float64)
    )
    used = traffic.packets.select(pl.col("direction").cast(pl.String)).unique()
    return used.join(counted, on="direction", how="left").with_columns(
        pl.col("value").fill_null(0.0)
    )


# ---- Queues and the medium ----------------------------------------------------------------------

_QUEUE_KEYS = ["direction", "hop"]


def _occupancy(traffic: Traffic, column: str) -> pl.DataFrame:
    """Return each length that a queue had, and how long, until the end of the run."""
    rows = traffic.run.events.filter(pl.col("stage") == "queue").select(
        pl.col("direction").cast(pl.String),
        pl.col("hop").cast(pl.String),
        "time_ns",
        length=pl.col(column),
    )
    end = max(traffic.run.duration_ns, rows["time_ns"].max() or 0)
    following = pl.col("time_ns").shift(-1).over(_QUEUE_KEYS).fill_null(end)
    return rows.with_columns(held=following - pl.col("time_ns")).filter(pl.col("held") > 0)


def _weighted_quantile(values: pl.Series, weights: pl.Series, share: float) -> float:
    """Return the least length that, with those below it, held for at least that share of time."""
    order = np.argsort(values.to_numpy(), kind="stable")
    total = np.cumsum(weights.to_numpy()[order])
    place = int(np.searchsorted(total, share * total[-1]))
    return float(values.to_numpy()[order][min(place, len(order) - 1)])


def _queue_quantile(share: float) -> pl.Expr:
    return pl.map_groups(
        [pl.col("length"), pl.col("held")],
        lambda series: pl.Series([_weighted_quantile(series[0], series[1], share)]),
        return_dtype=pl.Float64,
        returns_scalar=True,
    )


_QUEUE_FIGURES = {
    "mean": (
        "The mean length, each length weighted by how long it held",
        (pl.col("length") * pl.col("held")).sum() / pl.col("held").sum(),
    ),
    "median": (
        "The least length at or below which the queue was for half of the time",
        _queue_quantile(0.5),
    ),
    "p95": (
        "The least length at or below which the queue was for 95 % of the time",
        _queue_quantile(0.95),
    ),
    "p99": (
        "The least length at or below which the queue was for 99 % of the time",
        _queue_quantile(0.99),
    ),
    "max": (
        "The greatest length that held for any time",
        pl.col("length").max().cast(pl.Float64),
    ),
}

for _column, _unit in (("queue_packets", "packets"), ("queue_bytes", "B")):
    for _suffix, (_text, _value) in _QUEUE_FIGURES.items():

        def _queue(
            traffic: Traffic, column: str = _column, value: pl.Expr = _value
        ) -> pl.DataFrame:
            return _occupancy(traffic, column).group_by(_QUEUE_KEYS).agg(value=value)

        metric(
            f"{_column}_{_suffix}",
            _unit,
            "queue",
            f"""{_text}, from the queue's first event to the end of the run; virtual packets of
            background loads are among it.""",
            group="Queues and the medium",
            better="lower",
            headline=(_column, _suffix) == ("queue_packets", "mean"),
        )(_queue)


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
    frames = traffic.run.events.filter(
        pl.col("kind").cast(pl.String).is_in(["frame_started", "frame_sent"])
    ).select(
        pl.col("direction").cast(pl.String),
        pl.col("hop").cast(pl.String),
        "time_ns",
        change=pl.when(pl.col("kind") == "frame_started").then(1).otherwise(-1),
    )
    busy = (
        frames.with_columns(
            active=pl.col("change").cum_sum().over(_QUEUE_KEYS),
            length=pl.col("time_ns").shift(-1).over(_QUEUE_KEYS) - pl.col("time_ns"),
        )
        .group_by(_QUEUE_KEYS)
        .agg(busy=pl.col("length").filter(pl.col("active") > 0).sum())
    )
    span = traffic.arrivals.group_by(pl.col("direction").cast(pl.String)).agg(
        span=pl.col("arrived_ns").max() - pl.col("offered_ns").min()
    )
    return busy.join(span, on="direction").select(
        *_QUEUE_KEYS, value=(pl.col("span") - pl.col("busy")).clip(0) / SECOND_NS
    )
