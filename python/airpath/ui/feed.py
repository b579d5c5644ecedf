# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Curves of a run from its events, as they come: of an active run and of a finished one alike.

Each look at new rows gives points to add to curves. A curve is named by what it shows and where:
``throughput/downlink``, ``delay/uplink``, ``queue/radio/downlink``, ``lateness``. In a cell, each
user has curves of its own, ``delay/uplink@alice``; those of throughput without a name are the sums
of all users. Points are pairs
of lists, times in seconds and values in the curve's unit (``UNITS``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

import polars as pl

BIN_NS = 100_000_000
"""Time over which throughput is averaged."""

MOST_OPEN = 2_000_000
"""Maximum number of packets in the link that are remembered for their delay."""

MOST_MARKS = 5_000
"""Maximum number of drops, and of changes, that an update marks."""

CHANGES = ["state_changed", "parameter_set", "link_reset"]
"""Kinds of events that change a link."""

UNITS = {
    "throughput": "Mbit/s",
    "offered": "Mbit/s",
    "delay": "ms",
    "queue": "packets",
    "lateness": "ms",
    "cwnd": "kB",
    "rtt": "ms",
}
"""Units of curves, by the first part of their names."""


class Mark(TypedDict):
    """Something that happened at one time: a drop, a change of state, a changed parameter."""

    t: float
    kind: str
    text: str
    direction: str


class Update(TypedDict):
    """Points and marks that new rows add."""

    t: float
    """End of what is known, in seconds."""
    curves: dict[str, tuple[list[float], list[float]]]
    marks: list[Mark]
    drops: dict[str, int]
    """Packets dropped so far, by cause."""
    counts: dict[str, int]
    """Packets so far: offered, delivered, dropped, of each direction."""


@dataclass
class Feed:
    """Curves of a run, and what is needed to go on with them."""

    _open: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(
            schema={
                "pdu": pl.UInt64,
                "direction": pl.String,
                "user": pl.String,
                "offered_ns": pl.Int64,
            }
        )
    )
    _bins: dict[str, dict[int, int]] = field(default_factory=dict)
    _drops: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _last_ns: int = 0

    def add(self, events: pl.DataFrame, *, last: bool = False) -> Update:
        """Return what new events add to the curves.

        Args:
            events: rows of ``events.arrow``, in order.
            last: True if no more come, so that the last bin of throughput is complete.

        """
        curves: dict[str, tuple[list[float], list[float]]] = {}
        marks: list[Mark] = []
        if events.height:
            rows = events.with_columns(
                pl.col("time_ns").cast(pl.Int64),
                *(
                    pl.col(name).cast(pl.String)
                    for name in ("hop", "direction", "stage", "kind", "cause", "state")
                ),
                user=pl.col("user").cast(pl.String).fill_null("")
                if "user" in events.columns
                else pl.lit(""),
            )
            self._last_ns = max(self._last_ns, int(rows["time_ns"].max() or 0))  # type: ignore[arg-type]
            self._add_delays(rows, curves)
            self._add_queues(rows, curves)
            # Many drops must not leave changes of the link out.
            parts = (rows.filter(pl.col("kind").is_in(kinds)) for kinds in (["dropped"], CHANGES))
            marks = marks_of(pl.concat(part.tail(MOST_MARKS) for part in parts))
            self._count(rows)
        self._close_bins(curves, last=last)
        return Update(
            t=self._last_ns / 1e9,
            curves=curves,
            marks=marks,
            drops=dict(self._drops),
            counts=dict(self._counts),
        )

    def _add_delays(self, rows: pl.DataFrame, curves: dict[str, Any]) -> None:
        offered = rows.filter((pl.col("kind") == "offered") & (pl.col("stage") == "path"))
        offered = offered.select("pdu", "direction", "user", offered_ns="time_ns")
        known = pl.concat([self._open, offered.cast(dict(self._open.schema))])  # type: ignore[arg-type]
        left = rows.filter(pl.col("kind") == "delivered")
        dropped = rows.filter(pl.col("kind") == "dropped")
        packet = ["pdu", "direction", "user"]
        delivered = left.join(known, on=packet, how="inner", maintain_order="left")
        ways = delivered.group_by(["direction", "user"], maintain_order=True)
        for (direction, user), some in ways:
            delay_ms = (some["time_ns"] - some["offered_ns"]) / 1e6
            curves[_of(f"delay/{direction}", user)] = _points(some["time_ns"], delay_ms, 4)
        if "emitted_ns" in left.columns:
            real = left.filter(pl.col("emitted_ns").is_not_null())
            if real.height:
                late_ms = (real["emitted_ns"].cast(pl.Int64) - real["time_ns"]) / 1e6
                curves["lateness"] = _points(real["time_ns"], late_ms, 4)
        gone = pl.concat([left.select(packet), dropped.select(packet)])
        self._open = known.join(gone, on=packet, how="anti").tail(MOST_OPEN)

    def _add_queues(self, rows: pl.DataFrame, curves: dict[str, Any]) -> None:
        changed = rows.filter(
            (pl.col("stage") == "queue") & pl.col("kind").is_in(["enqueued", "dequeued", "dropped"])
        )
        queues = changed.group_by(["hop", "direction", "user"], maintain_order=True)
        for (hop, direction, user), some in queues:
            name = _of(f"queue/{hop}/{direction}", user)
            curves[name] = _points(some["time_ns"], some["queue_packets"].cast(pl.Float64), 0)

    def _count(self, rows: pl.DataFrame) -> None:
        for cause, number in (
            rows.filter(pl.col("kind") == "dropped")["cause"].value_counts().rows()
        ):
            self._drops[cause] = self._drops.get(cause, 0) + number
        path = rows.filter(
            ((pl.col("kind") == "offered") & (pl.col("stage") == "path"))
            | pl.col("kind").is_in(["delivered", "dropped"])
        )
        for kind, direction, number in path.group_by("kind", "direction").len().rows():
            name = f"{kind}/{direction}"
            self._counts[name] = self._counts.get(name, 0) + number
        moved = path.filter(pl.col("kind") != "dropped").with_columns(
            bin=pl.col("time_ns") // BIN_NS
        )
        sums = moved.group_by("kind", "direction", "user", "bin").agg(pl.col("bits").sum())
        for kind, direction, user, number, bits in sums.rows():
            curve = f"{'throughput' if kind == 'delivered' else 'offered'}/{direction}"
            for name in {curve, _of(curve, user)}:
                bins = self._bins.setdefault(name, {})
                bins[number] = bins.get(number, 0) + bits

    def _close_bins(self, curves: dict[str, Any], *, last: bool) -> None:
        """Give the bins that no later event can reach, and the empty ones between them."""
        open_bin = self._last_ns // BIN_NS
        for curve, bins in self._bins.items():
            complete = sorted(number for number in bins if last or number < open_bin)
            if not complete:
                continue
            first = min(complete)
            # All curves end in the last bin, so that silence at the end is shown however rows come.
            until = open_bin + 1 if last else open_bin
            numbers = range(first, until)
            times = [(number + 0.5) * BIN_NS / 1e9 for number in numbers]
            values = [bins.get(number, 0) / BIN_NS * 1e3 for number in numbers]
            curves[curve] = (times, values)
            for number in complete:
                del bins[number]
            if not last:
                bins.setdefault(open_bin, 0)  # silence is shown as silence


def marks_of(events: pl.DataFrame) -> list[Mark]:
    """Return the marks of drops and changes, in the order of their times."""
    return [
        Mark(
            t=row["time_ns"] / 1e9,
            kind=row["kind"],
            text=_words_of(row),
            direction=row["direction"],
        )
        for row in events.sort("time_ns", maintain_order=True)
        .select("time_ns", "kind", "cause", "state", "hop", "direction")
        .to_dicts()
    ]


def _words_of(row: dict[str, Any]) -> str:
    """Return the words of a mark: the cause of a drop, a state that begins, the hop of a change."""
    key = {"dropped": "cause", "state_changed": "state"}.get(row["kind"], "hop")
    return row[key] or ""


def _of(curve: str, user: object) -> str:
    """Return the name of a user's curve; that of all where users have no names."""
    return f"{curve}@{user}" if user else curve


def tcp_curves(rows: pl.DataFrame) -> dict[str, tuple[list[float], list[float]]]:
    """Return congestion windows and smoothed round trips from rows of ``tcp.arrow``."""
    curves: dict[str, tuple[list[float], list[float]]] = {}
    if not rows.height:
        return curves
    rows = rows.with_columns(pl.col("time_ns").cast(pl.Int64))
    ends = ["end", "local_port", "remote_port"]
    rows = rows.with_columns(pl.col("end").cast(pl.String))
    for (end, local, remote), some in rows.group_by(ends, maintain_order=True):
        name = f"{end} {local}-{remote}"
        window = some["cwnd"].cast(pl.Float64) * some["mss"].cast(pl.Float64) / 1e3
        curves[f"cwnd/{name}"] = _points(some["time_ns"], window, 3)
        curves[f"rtt/{name}"] = _points(some["time_ns"], some["srtt_ns"].cast(pl.Float64) / 1e6, 3)
    return curves


def _points(times_ns: pl.Series, values: pl.Series, digits: int) -> tuple[list[float], list[float]]:
    return ((times_ns / 1e9).round(6).to_list(), values.round(digits).to_list())
