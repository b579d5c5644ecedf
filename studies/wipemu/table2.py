# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Table II of Alfredsson et al. 2006 from the runs of table2.toml.

Throughput at the receiver from the arrival of the first data to that of the last, with headers and
the empty rest of each packet's last frame added, beside what the frames of the radio can carry; and
the slots in which nothing was sent.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from airpath.analysis.traffic import Traffic
from airpath.run import Run, load_run

RUNS = "runs/*/*/*/replication.json"
SLOTS_PER_SECOND, SYMBOLS = 1500, 108
MODES = ("bpsk", "4-qam", "8-qam", "16-qam", "32-qam", "64-qam", "128-qam", "256-qam")
"""Modes of 1 to 8 bits a symbol."""
PAPER_BPS = (161971, 323943, 485890, 647878, 809852, 971780, 1133793, 1295765)
"""Column 6 of the table in the paper, of the same modes."""
WARM_UP_S = 3
"""Time after the first data within which an idle slot is one of slow start."""


@dataclass(frozen=True)
class Row:
    """Figures of one run."""

    bits_per_symbol: int
    clock: str
    verdict: str
    measured_bps: float
    header_bps: float
    truncated_bps: float
    slots: int
    """Slots from the arrival of the first data to that of the last."""
    idle_in_slow_start: int
    """Slots without a frame within WARM_UP_S of the arrival of the first data."""
    idle_later: int
    """Those between them and the arrival of the last data."""

    @property
    def theoretical_bps(self) -> int:
        """Column 2."""
        return SLOTS_PER_SECOND * SYMBOLS * self.bits_per_symbol

    @property
    def total_bps(self) -> float:
        """Column 6."""
        return self.measured_bps + self.header_bps + self.truncated_bps

    @property
    def total(self) -> float:
        """Column 6 to column 2."""
        return self.total_bps / self.theoretical_bps

    @property
    def after_slow_start(self) -> float:
        """Share of the slots behind those in which slow start left the radio idle that are used."""
        return 1 - self.idle_later / (self.slots - self.idle_in_slow_start)


def row(run: Run, bits_per_symbol: int) -> Row:
    """Return the figures of a run."""
    arrived = Traffic(run).arrivals.filter(pl.col("direction") == "downlink")
    # Not the two bytes with which a server says that it is ready.
    data_ns = arrived.filter(pl.col("payload") > 100)["arrived_ns"]
    first_ns, last_ns = data_ns.min(), data_ns.max()
    assert isinstance(first_ns, int)
    assert isinstance(last_ns, int)
    # What came at the first instant had been sent before it.
    within = (pl.col("arrived_ns") > first_ns) & (pl.col("arrived_ns") <= last_ns)
    counted = arrived.filter(within)
    frame_bits = SYMBOLS * bits_per_symbol
    bits = 8 * counted["bytes"]
    total, payload = int(bits.sum()), int(8 * counted["payload"].sum())
    truncated = int(((-bits) % frame_bits).sum())
    per_s = 1e9 / (last_ns - first_ns)
    frames = run.events.filter(
        (pl.col("direction") == "downlink")
        & (pl.col("hop") == "radio")
        & (pl.col("kind") == "frame_started")
        & pl.col("time_ns").is_between(first_ns, last_ns, closed="left")
    )
    begun = (frames["time_ns"] * SLOTS_PER_SECOND + 999_999_999) // 1_000_000_000
    before = -(-first_ns * SLOTS_PER_SECOND // 1_000_000_000) - 1
    # The slots in which a frame began, after that in which the first data arrived.
    slots = pl.concat([pl.Series([before], dtype=pl.Int64), begun.unique().sort()])
    gaps = slots.diff().fill_null(1) - 1
    early = (slots - before) < WARM_UP_S * SLOTS_PER_SECOND
    return Row(
        bits_per_symbol=bits_per_symbol,
        clock=run.clock,
        verdict=run.verdict,
        measured_bps=payload * per_s,
        header_bps=(total - payload) * per_s,
        truncated_bps=truncated * per_s,
        slots=int(slots[-1]) - before,
        idle_in_slow_start=int(gaps.filter(early).sum()),
        idle_later=int(gaps.filter(~early).sum()),
    )


def rows(*roots: Path) -> list[Row]:
    """Return the figures of all runs of one or more folders of results."""
    found = []
    for about in sorted(file for root in roots for file in root.glob(RUNS)):
        told: dict[str, Any] = json.loads(about.read_text())
        mode = told["parameters"]["network.media.ofdm.adaptation.mode"]
        found.append(row(load_run(about.parent), MODES.index(mode) + 1))
    return sorted(found, key=lambda one: (one.clock, one.bits_per_symbol))


def table(found: list[Row]) -> list[str]:
    """Return the lines of the table."""
    names = ["bits", "theoretical", "paper", "clock", "measured", "header", "trunc", "total"]
    names += [
        "total to theoretical",
        "idle slots in slow start",
        "later",
        "after slow start",
        "verdict",
    ]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| {one.bits_per_symbol} | {one.theoretical_bps} "
        f"| {PAPER_BPS[one.bits_per_symbol - 1] / one.theoretical_bps:.2%} | {one.clock} "
        f"| {one.measured_bps:.0f} | {one.header_bps:.0f} | {one.truncated_bps:.0f} "
        f"| {one.total_bps:.0f} | {one.total:.2%} | {one.idle_in_slow_start} | {one.idle_later} "
        f"| {one.after_slow_start:.2%} | {one.verdict} |"
        for one in found
    ]
    return lines


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    folders = [Path("results/wipemu-table2")]
    parser.add_argument("folders", type=Path, nargs="*", default=folders)
    print("\n".join(table(rows(*parser.parse_args(words).folders))))


if __name__ == "__main__":
    main()
