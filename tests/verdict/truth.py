# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The true course of a run, measured at the ends by one clock.

Both ends live on one host, so that CLOCK_MONOTONIC stamps of the sender's and the receiver's
programs can be compared: how long a datagram was under way, less what the scenario's link has to
take, is what anything but the model did to it. A datagram that a link without loss did not deliver
was lost to something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LATE_NS = 2_000_000
"""Twice the usual bound of 1 ms: what a program needs to read a datagram is no distortion."""
LATE_SHARE = 0.02
"""Share of late datagrams beyond which the run is distorted."""
FEW = 50
"""Number of datagrams below which a single very late one is enough."""


@dataclass(frozen=True)
class Truth:
    """Deviation of a run from its scenario."""

    what: str
    """In words, with the numbers."""
    distorted: bool
    """True if that is beyond what a trusted run may show."""


def of_datagrams(sent: Path, received: Path, transit_ns: int, wanted: int) -> Truth:
    """Return the truth of numbered datagrams over a link that takes exactly `transit_ns`."""
    departures = {row[0]: row[1:] for row in _rows(sent)}
    arrivals = {number: (began, came) for number, began, came in reversed(_rows(received))}
    if not departures and not arrivals:
        return Truth("no datagram was sent", False)
    excess = sorted(came - began - transit_ns for began, came in arrivals.values())
    total = len(departures) or wanted
    lost = max(0, total - len(arrivals))
    late = sum(one > LATE_NS for one in excess)
    slip = max((began - due for due, began in departures.values()), default=0)
    words = []
    if excess:
        middle, most = excess[len(excess) // 2], excess[-1]
        words.append(f"late by {middle / 1e6:.2f} ms (median), {most / 1e6:.1f} ms at most")
        words.append(f"{late} of {len(excess)} beyond {LATE_NS / 1e6:.0f} ms")
    words.append(f"{lost} of {total} lost")
    if slip > 5 * LATE_NS:
        words.append(f"sent up to {slip / 1e6:.0f} ms after it was due")
    few = len(excess) < FEW and excess[-1:] > [10 * LATE_NS]
    many = late > max(1.0, LATE_SHARE * len(excess))
    distorted = lost > 0 or few or many or slip > 10 * LATE_NS
    return Truth("; ".join(words), distorted)


def of_rounds(path: Path, round_ns: int) -> Truth:
    """Return the truth of round trips over a link that takes `round_ns` there and back."""
    excess = sorted(ended - begun - round_ns for _, begun, ended in _rows(path))
    if not excess:
        return Truth("no round trip was made", False)
    total_ms = sum(excess) / 1e6
    share = sum(excess) / (round_ns * len(excess))
    late = sum(one > LATE_NS for one in excess)
    what = (
        f"{len(excess)} round trips took {total_ms:.0f} ms ({share:.0%}) too long, "
        f"one {excess[-1] / 1e6:.1f} ms at most"
    )
    return Truth(what, late > max(1.0, LATE_SHARE * len(excess)))


def _rows(path: Path) -> list[tuple[int, ...]]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return []
    rows = [tuple(map(int, line.split())) for line in lines]
    return [row for row in rows if len(row) == 3]
