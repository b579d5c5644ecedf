# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Series over time in many runs: of each run a value in equal intervals, of sets bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airpath.plots.delay import one_way_delays
from airpath.plots.queue import lasting, summarise
from airpath.run import DIRECTIONS, load_run
from airpath.tcp import SENDING_END, goodput_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from airpath.analysis.folders import Replication
    from airpath.run import Run

COURSE_BINS = 60
"""Intervals of a course."""

LEAST_SHARE = 0.1
"""Of the two directions, one is shown from this share of the other's goodput upwards."""

LEAST_BYTES = 1500
"""Acknowledged bytes from which a socket's window is of interest."""


@dataclass(frozen=True)
class Courses:
    """The courses of one run."""

    set_name: str
    values: dict[tuple[str, str], NDArray[np.float64]]
    """By kind and place (a direction, with its hop where there are several): a value for each
    interval, nan where nothing was seen."""


def end_ns(runs: Iterable[Run]) -> int:
    """Return the length of the longest run, which all courses of a picture last."""
    return max((run.duration_ns for run in runs), default=0)


def read(runs: Sequence[Replication], kinds: Iterable[str]) -> tuple[list[Courses], int]:
    """Return the courses of runs, opened one at a time, and how long they last, in ns."""
    wanted = list(kinds)
    longest_ns = end_ns(load_run(one.directory) for one in runs)
    return [
        courses_of(load_run(one.directory), one.set_name, longest_ns, wanted) for one in runs
    ], longest_ns


def courses_of(run: Run, set_name: str, length_ns: int, kinds: Iterable[str]) -> Courses:
    """Return the courses of a run.

    Args:
        run: the run.
        set_name: the set that it belongs to.
        length_ns: how long the courses last, at least the run's length.
        kinds: of ``kinds.COURSES``.

    Raises:
        RunError: a log could not be read.

    """
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    if length_ns > 0:
        for kind in kinds:
            values = _READERS[kind](run, length_ns)
            found |= {(kind, place): course for place, course in values.items()}
    return Courses(set_name, found)


def bands(
    rows: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return 5 %, median and 95 % over runs; nan where less than half of them have a value."""
    table = np.array(rows)
    enough = 2 * np.isfinite(table).sum(axis=0) >= len(rows)
    result: NDArray[np.float64] = np.full((3, table.shape[1]), np.nan)
    result[:, enough] = np.nanpercentile(table[:, enough], [5, 50, 95], axis=0)
    return result


def places(courses: Sequence[Courses], kind: str) -> list[str]:
    """Return what gets a panel: of goodput the directions that carried something."""
    found = dict.fromkeys(place for one in courses for known, place in one.values if known == kind)
    ordered = sorted(found, key=lambda place: [way in place for way in DIRECTIONS], reverse=True)
    if kind != "goodput":
        return ordered
    most = {
        place: max(
            float(one.values[kind, place].sum()) for one in courses if (kind, place) in one.values
        )
        for place in ordered
    }
    return [place for place in ordered if most[place] >= LEAST_SHARE * max(most.values()) > 0]


def _goodput(run: Run, length_ns: int) -> dict[str, NDArray[np.float64]]:
    """Return bit/s by direction."""
    edges: NDArray[np.float64] = np.linspace(0, length_ns / 1e9, COURSE_BINS + 1)
    found = {}
    for direction in DIRECTIONS:
        events = goodput_events(run, direction)
        if not events.is_empty():
            carried, _ = np.histogram(
                events["time_ns"].to_numpy() / 1e9, edges, weights=events["bytes"].to_numpy()
            )
            found[direction] = carried * 8 / np.diff(edges)
    return found


def _delay(run: Run, length_ns: int) -> dict[str, NDArray[np.float64]]:
    """Return the median delay in seconds of the packets offered in each interval, by direction."""
    delays = one_way_delays(run).drop_nulls("delay_ns")
    middle = (
        delays.filter(pl.col("time_ns").is_between(0, length_ns))
        .group_by(
            pl.col("direction").cast(pl.String),
            (pl.col("time_ns") * COURSE_BINS // length_ns).clip(0, COURSE_BINS - 1).alias("place"),
        )
        .agg(pl.col("delay_ns").median() / 1e9)
    )
    found: dict[str, NDArray[np.float64]] = {}
    for direction, place, delay in middle.iter_rows():
        found.setdefault(direction, np.full(COURSE_BINS, np.nan))[place] = delay
    return found


def _queue(run: Run, length_ns: int) -> dict[str, NDArray[np.float64]]:
    """Return the mean number of packets in each queue that was used, until the run's end."""
    events = run.events.filter(pl.col("stage") == "queue").with_columns(
        run.queue_name(), pl.col("direction").cast(pl.String)
    )
    hops = events["hop"].n_unique()
    found = {}
    for (hop, direction), rows in events.group_by("hop", "direction", maintain_order=True):
        changes = lasting(rows)
        if (changes["queue_packets"] > 0).any():
            place = f"{direction}, {hop}" if hops > 1 else str(direction)
            found[place] = _held(changes, "queue_packets", run.duration_ns, length_ns, before=0.0)
    return found


def _cwnd(run: Run, length_ns: int) -> dict[str, NDArray[np.float64]]:
    """Return the congestion window in bytes of the socket of each end that sent most."""
    rows = run.tcp_state
    found: dict[str, NDArray[np.float64]] = {}
    if rows.is_empty():
        return found
    for direction, end in SENDING_END.items():
        of_end = rows.filter(pl.col("end") == end)
        sent = (
            of_end.group_by("socket")
            .agg(pl.col("bytes_acked").max().fill_null(0))
            .filter(pl.col("bytes_acked") >= LEAST_BYTES)
            .sort(["bytes_acked", "socket"], descending=[True, False])
        )
        if sent.is_empty():
            continue
        told = (
            of_end.filter(pl.col("socket") == sent["socket"][0])
            .with_columns(window=pl.col("cwnd") * pl.col("mss").forward_fill())
            .drop_nulls("window")
        )
        if not told.is_empty():
            last_ns = int(told["time_ns"][-1])
            found[direction] = _held(told, "window", last_ns, length_ns, before=np.nan)
    return found


def _held(
    rows: pl.DataFrame, column: str, last_ns: int, length_ns: int, *, before: float
) -> NDArray[np.float64]:
    """Return means over time of what holds from each row to the next; nan after ``last_ns``."""
    inside = rows.filter(pl.col("time_ns").is_between(0, length_ns, closed="left"))
    first_ns = inside["time_ns"][0] if inside.height else length_ns
    times = np.concatenate([[0], inside["time_ns"].to_numpy(), [length_ns]]).astype(np.float64)
    values = np.concatenate([[0], inside[column].to_numpy(), [0]]).astype(np.float64)
    values[-1] = values[-2]
    mean = summarise(times, values, COURSE_BINS).mean
    begins = np.arange(COURSE_BINS) * length_ns / COURSE_BINS
    mean[begins >= last_ns] = np.nan
    if np.isnan(before):
        mean[begins < first_ns] = np.nan
    return mean


_READERS: dict[str, Any] = {
    "goodput": _goodput,
    "delay": _delay,
    "queue": _queue,
    "cwnd": _cwnd,
}
