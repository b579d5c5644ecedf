# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Definition of a metric, and the registry of all metrics.

A metric is declared once, beside the function that computes it: name, unit, what it is of, a
definition in words with its source. Tables, the command's help and docs/analysis.md come from here.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from airpath.analysis.traffic import RUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.analysis.traffic import Traffic

Scope = Literal["run", "direction", "queue", "user", "flow", "endpoint", "program"]
"""Scope of a value: the whole run, a direction of the link, a hop's queue in a direction, a user of
a cell in a direction, a flow (in the direction of its data), an end of a QUIC connection with a
qlog file, or a program or workload. The name of a user, program or workload stands in the flow's
place."""

Better = Literal["lower", "higher", ""]
"""Direction of improvement, where that is clear."""

KEYS = ("flow", "direction", "hop")
"""Columns that say what a value is of; those that do not apply are empty."""

Compute = Callable[["Traffic"], pl.DataFrame]
"""Returns the columns of ``KEYS`` that apply, and ``value``; of several runs also ``RUN``."""


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str
    unit: str
    """"1" for a ratio."""
    scope: Scope
    text: str
    """The definition, in words."""
    source: str
    """The standard or paper that defines it; "" for a count that needs none."""
    better: Better
    headline: bool
    """True if it is shown when nobody names metrics."""
    group: str
    """The heading under which the documentation lists it."""
    compute: Compute


NANOSECONDS_PER_SECOND = 1e9

GROUPS = (
    "Run",
    "Programs",
    "Packets of a direction",
    "Drops",
    "Queues and the medium",
    "TCP",
    "Fairness",
    "QUIC (from qlog files)",
    "Packets of a user",
    "Packets of a flow",
    "Counted by the engine",
)
"""Headings of the documentation, in order; also the order in which metrics are shown."""

WITHOUT_LOG = ("Programs", "QUIC (from qlog files)", "Counted by the engine")
"""Groups that need no log of packets."""

FROM_PACKETS = ("TCP", "Fairness", "Packets of a flow")
"""Groups that need the captures of ``--log packets``; all others need ``--log events``."""

REGISTRY: dict[str, Metric] = {}
"""All metrics by name, as they were declared; ``in_order`` is how they are shown."""


def in_order() -> list[Metric]:
    """Return all metrics by group, and within a group as they were declared."""
    return sorted(REGISTRY.values(), key=lambda one: GROUPS.index(one.group))


class UnknownMetricError(Exception):
    """A name is no metric's."""


def choose(names: Sequence[str] | None) -> list[Metric]:
    """Return metrics by name.

    Args:
        names: names; a name that ends with ``*`` stands for all that begin so; "all" for all;
            nothing for the headlines.

    Raises:
        UnknownMetricError: there is none of that name; the message names the nearest.

    """
    if not names:
        return [metric for metric in in_order() if metric.headline]
    chosen: dict[str, Metric] = {}
    for name in names:
        if name == "all":
            chosen |= REGISTRY
            continue
        matching = {
            known: metric
            for known, metric in REGISTRY.items()
            if known == name or (name.endswith("*") and known.startswith(name[:-1]))
        }
        if not matching:
            near = difflib.get_close_matches(name, REGISTRY, n=1, cutoff=0.0)
            message = (
                f"no metric is called {name}; the nearest is {near[0]} "
                f"(airpath analyse --list names all)"
            )
            raise UnknownMetricError(message)
        chosen |= matching
    return [metric for metric in in_order() if metric.name in chosen]


def metric(
    name: str,
    unit: str,
    scope: Scope,
    text: str,
    *,
    group: str,
    source: str = "",
    better: Better = "",
    headline: bool = False,
) -> Callable[[Compute], Compute]:
    """Declare a metric; its function follows."""

    def enrol(compute: Compute) -> Compute:
        if name in REGISTRY:
            message = f"the metric {name} is declared twice"
            raise ValueError(message)
        REGISTRY[name] = Metric(
            name, unit, scope, " ".join(text.split()), source, better, headline, group, compute
        )
        return compute

    return enrol


def seconds(times_ns: pl.Expr) -> pl.Expr:
    """Return times in seconds, each rounded once, so that a value is the same in any table.

    Over a table of more than one row, Polars would multiply by the inverse of a constant divisor.
    """
    return times_ns / (pl.int_range(pl.len()) * 0.0 + NANOSECONDS_PER_SECOND)


class Figures:
    """Figures of the rows of a table, by what they are of.

    All are found together when the first is asked for: looking once over the rows costs little more
    for many figures than for one.
    """

    def __init__(self, rows: Compute) -> None:
        """Take what returns the rows: columns of ``KEYS`` and others; flows may be indices."""
        self._rows = rows
        self._expressions: dict[str, pl.Expr] = {}

    def add(self, name: str, expression: pl.Expr) -> Compute:
        """Add a figure; return what computes it."""
        self._expressions[name] = expression.cast(pl.Float64)

        def compute(traffic: Traffic) -> pl.DataFrame:
            found = traffic.once(self, self._all)
            keys = _keys(found)
            # Taken out by itself: a query would cost more.
            return pl.DataFrame([*(found[key] for key in keys), found[name].alias("value")])

        return compute

    def _all(self, traffic: Traffic) -> pl.DataFrame:
        rows = self._rows(traffic)
        keys = _keys(rows)
        found = rows.group_by(keys).agg(**self._expressions)
        return traffic.label(found) if "flow" in keys else found


def _keys(table: pl.DataFrame) -> list[str]:
    return [key for key in (RUN, *KEYS) if key in table.columns]


def of_each_run(compute: Compute) -> Compute:
    """Return what computes for each run by itself, from its files, what tables do not have."""

    def compute_all(traffic: Traffic) -> pl.DataFrame:
        if not traffic.by:
            return compute(traffic)
        tables = [compute(one) for one in traffic.apart]
        parts = [
            table.with_columns(pl.lit(place, pl.UInt32).alias(RUN))
            for place, table in enumerate(tables)
            if not table.is_empty()
        ]
        nothing = tables[0].clear().with_columns(pl.lit(None, pl.UInt32).alias(RUN))
        return pl.concat(parts) if parts else nothing

    return compute_all


@dataclass(frozen=True)
class Statistic:
    """One figure of many samples."""

    suffix: str
    words: str
    expression: Callable[[pl.Expr], pl.Expr]


def quantile(percent: float) -> Statistic:
    """Return the statistic of a percentile, with linear interpolation."""
    return Statistic(
        f"p{percent:g}",
        f"{percent:g}th percentile",
        lambda sample: sample.quantile(percent / 100, interpolation="linear"),
    )


MEAN = Statistic("mean", "mean", lambda sample: sample.mean())
MEDIAN = Statistic("median", "median", lambda sample: sample.median())
LEAST = Statistic("min", "least", lambda sample: sample.min())
GREATEST = Statistic("max", "greatest", lambda sample: sample.max())
P95 = quantile(95)
P99 = quantile(99)


def statistics_of(
    name: str,
    unit: str,
    scope: Scope,
    text: str,
    samples: Compute,
    statistics: tuple[Statistic, ...],
    *,
    group: str,
    source: str = "",
    better: Better = "",
    headline: str = "",
) -> None:
    """Declare one metric for each statistic of samples.

    Args:
        name: the metrics' common first part.
        unit: their unit.
        scope: what a value is of.
        text: what a sample is.
        samples: returns the keys and ``sample``, a row a sample.
        statistics: which figures.
        group: the heading in the documentation.
        source: where the sample is defined.
        better: which way is better.
        headline: the suffix of the statistic that is shown when nobody names metrics.

    """
    figures = Figures(lambda traffic: samples(traffic).drop_nulls("sample"))
    for statistic in statistics:
        value = statistic.expression(pl.col("sample").cast(pl.Float64))
        metric(
            f"{name}_{statistic.suffix}",
            unit,
            scope,
            f"The {statistic.words} of {text}",
            group=group,
            source=source,
            better=better,
            headline=statistic.suffix == headline,
        )(figures.add(statistic.suffix, value))
