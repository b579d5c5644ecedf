# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The figures of one run that tables and distributions show.

From the manifest, where the engine has written its results, so that a run counts alike everywhere;
goodput is the analysis's, or for QUIC from the reports of virtual workloads.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.requests import LEAST_SHARE
from airpath.facts import NEVER_INSIDE, causes_of
from airpath.run import DIRECTIONS, RunError

if TYPE_CHECKING:
    from airpath.run import Run


LEAST_PART = 0.01
"""A flow that carried less than this of the greatest flow is no transfer to be told of."""


@dataclass(frozen=True)
class Way:
    """One direction of a run."""

    goodput_bps: float | None
    """As the analysis has it; of several transfers the median; none if unknown."""
    delivered: int
    drops: dict[str, int]
    """Packets of the endpoints by the cause of their drop."""
    delay_p50_ns: int | None
    delay_p99_ns: int | None


@dataclass(frozen=True)
class Facts:
    """One run."""

    duration_ns: int
    ways: dict[str, Way]
    lateness_p99_ns: int | None
    lateness_max_ns: int | None

    @property
    def drops(self) -> dict[str, int]:
        """Packets dropped in both directions, by cause."""
        total: dict[str, int] = {}
        for way in self.ways.values():
            for cause, number in way.drops.items():
                total[cause] = total.get(cause, 0) + number
        return total


def facts_of(run: Run, values: pl.DataFrame) -> Facts:
    """Return the figures of a run; what it did not record is none, or nothing.

    Args:
        run: the run.
        values: what the analysis measured of it.

    """
    timings = run.results.get("timings")
    timings = timings if isinstance(timings, dict) else {}
    lateness = _timing(timings, "lateness")
    try:
        duration_ns = run.duration_ns
    except RunError as error:
        run.notes.append(str(error))
        duration_ns = 0
    return Facts(
        duration_ns=duration_ns,
        ways={direction: _way(run, values, timings, direction) for direction in DIRECTIONS},
        lateness_p99_ns=lateness.get("p99_ns"),
        lateness_max_ns=lateness.get("max_ns"),
    )


def _timing(timings: dict[str, Any], name: str) -> dict[str, int]:
    """Return one of the manifest's summaries; empty if it counts nothing."""
    found = timings.get(name)
    return found if isinstance(found, dict) and found.get("count") else {}


def _way(run: Run, values: pl.DataFrame, timings: dict[str, Any], direction: str) -> Way:
    delay = _timing(timings, f"{direction}_delay")
    return Way(
        goodput_bps=_goodput(run, values, direction),
        delivered=_counted(run, direction, "kinds").get("delivered", 0),
        drops=_drops(run, direction),
        delay_p50_ns=delay.get("p50_ns"),
        delay_p99_ns=delay.get("p99_ns"),
    )


def _counted(run: Run, direction: str, what: str, *, hops: bool = False) -> dict[str, int]:
    """Return the manifest's counts of the endpoints' packets, of the path alone or with its hops.

    What the path itself dropped, outside the model, is counted there.
    """
    total: dict[str, int] = {}
    rows = run.results.get("counters")
    for row in rows if isinstance(rows, list) else []:
        is_ours = row.get("direction") == direction and row.get("origin", "user") == "user"
        if not is_ours or (row.get("hop") != "path" and not hops):
            continue
        for name, entry in row.get(what, {}).items():
            total[name] = total.get(name, 0) + int(entry.get("count", 0))
    return total


def _drops(run: Run, direction: str) -> dict[str, int]:
    if isinstance(run.results.get("counters"), list):
        every = _counted(run, direction, "causes", hops=True)
        outside = causes_of(NEVER_INSIDE)
        found = {cause: number for cause, number in every.items() if cause not in outside}
    else:  # a run that was killed counts by its events
        rows = run.drops().filter(run.drops()["direction"] == direction)
        found = dict(rows.group_by("cause").len().iter_rows())
    return dict(sorted(((str(cause), number) for cause, number in found.items())))


def _goodput(run: Run, flows: pl.DataFrame, direction: str) -> float | None:
    """Return the goodput of a TCP flow, the median where there are several transfers."""
    most: dict[str, float] = {}
    carried: dict[str, float] = {}
    rates_of: dict[str, float] = {}
    columns = (flows[name].to_list() for name in ("metric", "flow", "direction", "value"))
    for metric, flow, way, value in zip(*columns, strict=True):
        if metric == "received_bytes":
            most[flow] = max(value, most.get(flow, value))
            if way == direction:
                carried[flow] = value
        elif metric == "goodput" and way == direction:
            rates_of[flow] = value
    # What went the other way of a transfer is requests, and a flow beside far greater ones is
    # another program's, or the control connection of a measurement.
    greatest = max(carried.values(), default=0.0)
    rates_of_flows = [
        rate
        for flow, rate in rates_of.items()
        if flow in carried and carried[flow] >= max(LEAST_SHARE * most[flow], LEAST_PART * greatest)
    ]
    if rates_of_flows:
        return float(statistics.median(rates_of_flows))
    rates = [
        way.get("goodput_bits_per_second")
        for workload in _reports(run)
        for way in [workload.get(direction)]
        if isinstance(way, dict)
    ]
    numbers = [float(rate) for rate in rates if isinstance(rate, int | float)]
    return statistics.median(numbers) if numbers else None


def _reports(run: Run) -> list[dict[str, Any]]:
    workloads = run.manifest.get("workloads")
    reports = [
        each.get("report")
        for each in (workloads if isinstance(workloads, list) else [])
        if isinstance(each, dict)
    ]
    return [report for report in reports if isinstance(report, dict)]
