# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Time-sequence diagrams as files for xplot and jPlot, in the manner of tcptrace.

Times are seconds since the run began, sequence numbers bytes since the stream's first. White arrows
are segments, red ones retransmissions (``R``), the green line is what was acknowledged, purple bars
are SACK blocks (``S``); crosses with a cause are what the link dropped, which tcptrace cannot know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from airpath.files import write_whole
from airpath.plots.style import Span
from airpath.tcp import transfers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airpath.run import Run
    from airpath.tcp import Transfer


def save(run: Run, directory: Path, prefix: str = "", span: Span | None = None) -> list[Path]:
    """Write a file for each TCP transfer of a run into a folder that exists; return the paths.

    Of each only what is within the span is written; transfers without a segment in it are left out.
    """
    paths = []
    for number, whole in enumerate(transfers(run), 1):
        transfer = within(whole, *(span or Span()).limits_ns())
        if transfer.segments.is_empty():
            continue
        path = directory / f"{prefix}time-sequence-{number}-{transfer.direction}.xpl"
        write_whole(path, text(transfer))
        paths.append(path)
    return paths


def within(transfer: Transfer, begin_ns: float, end_ns: float) -> Transfer:
    """Return a transfer with only what happened from one time to another, both included."""
    inside = pl.col("time_ns").is_between(begin_ns, end_ns)
    return replace(
        transfer,
        segments=transfer.segments.filter(inside),
        acknowledgements=transfer.acknowledgements.filter(inside),
        selective=transfer.selective.filter(inside),
        lost_acknowledgements=transfer.lost_acknowledgements.filter(inside),
    )


def text(transfer: Transfer) -> str:
    """Return a transfer as the commands of xplot."""
    return "\n".join(_commands(transfer)) + "\n"


def _commands(transfer: Transfer) -> Iterator[str]:
    yield "timeval unsigned"
    yield "title"
    yield f"{transfer.source}_==>_{transfer.destination} (time sequence graph)"
    yield from ("xlabel", "time", "ylabel", "sequence number (bytes)")
    rows = transfer.segments.select(
        "time_ns", "first", "end", "retransmission", "cause", "damaged"
    ).iter_rows()
    for time_ns, first, end, again, cause, damaged in rows:
        at, colour = _seconds(time_ns), "red" if again else "white"
        yield f"{colour}\nline {at} {first} {at} {end}"
        yield f"darrow {at} {first}\nuarrow {at} {end}"
        if again:
            yield f"atext {at} {end}\nR"
        fate = cause or ("damaged" if damaged else "")
        if fate:
            yield f"yellow\nx {at} {(first + end) // 2}\nrtext {at} {(first + end) // 2}\n{fate}"
    before: tuple[str, int] | None = None
    for time_ns, number in transfer.acknowledgements.select("time_ns", "number").iter_rows():
        at = _seconds(time_ns)
        if before is None:
            yield f"green\ndot {at} {number}"
            before = at, number
            continue
        then, highest = before
        yield f"green\nline {then} {highest} {at} {highest}"
        if number > highest:
            yield f"line {at} {highest} {at} {number}"
        else:
            yield f"dtick {at} {highest}"
        before = at, max(highest, number)
    for time_ns, first, end in transfer.selective.select("time_ns", "first", "end").iter_rows():
        at = _seconds(time_ns)
        yield f"purple\nline {at} {first} {at} {end}\natext {at} {end}\nS"
    yield "go"


def _seconds(time_ns: int) -> str:
    """Return a time as xplot's timeval: seconds and six digits."""
    microseconds = max(time_ns, 0) // 1000
    return f"{microseconds // 1_000_000}.{microseconds % 1_000_000:06}"
