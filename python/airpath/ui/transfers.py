# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""TCP transfers of a run as the page draws them: the part in view, down to single packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.run import RunError
from airpath.tcp import Transfer, transfers
from airpath.ui.errors import UiError, not_found

if TYPE_CHECKING:
    from airpath.run import Run

MOST_TRANSFERS = 50
"""Maximum number of transfers in a list, the largest first."""
MOST_MARKS = 1_500
"""Maximum number of marks of one kind in a view; more are joined, those of a stretch of time."""
STRETCHES = 500
"""Number of stretches of time into which a crowded view is divided."""
_KEPT = 4

_read: dict[int, tuple[Run, list[Transfer]]] = {}


def _of(run: Run) -> list[Transfer]:
    """Return the transfers of a run; those of the last runs are kept."""
    known = _read.get(id(run))
    if known is not None and known[0] is run:
        return known[1]
    try:
        found = transfers(run)[:MOST_TRANSFERS]
    except RunError as error:
        raise UiError(str(error), 422) from error
    while len(_read) >= _KEPT:
        _read.pop(next(iter(_read)))
    _read[id(run)] = run, found
    return found


def listed(run: Run) -> list[dict[str, Any]]:
    """Return the TCP transfers of a run, the largest first.

    Raises:
        UiError: its captures cannot be read.

    """
    return [
        {
            "label": one.label,
            "direction": one.direction,
            "vantage": one.vantage,
            "bytes": one.payload_bytes,
            "segments": one.segments.height,
            "retransmissions": int(one.segments["retransmission"].sum()),
        }
        for one in _of(run)
    ]


def shown(
    run: Run, number: int, begin_s: float, end_s: float, low: float | None, high: float | None
) -> dict[str, Any]:
    """Return what a view of a transfer shows.

    Args:
        run: the run.
        number: the transfer's place in the list.
        begin_s: begin of the view, in seconds.
        end_s: its end.
        low: least sequence number of the view in bytes; None for that of its segments.
        high: greatest sequence number, likewise.

    Raises:
        UiError: there is no such transfer.

    """
    found = _of(run)
    if not 0 <= number < len(found):
        raise not_found(f"{run.directory.name} has no TCP transfer {number}")
    one = found[number]
    begin, end = int(begin_s * 1e9), int(min(end_s, 1e9) * 1e9)
    segments = _between(one.segments, begin, end)
    answers = one.acknowledgements.with_columns(number=pl.col("number").cum_max())
    before = answers.filter(pl.col("time_ns") < begin).tail(1)
    answers = _between(answers, begin, end)
    if low is None or high is None:
        numbers = pl.concat([segments["first"], segments["end"], answers["number"]])
        low = float(numbers.min() or 0)  # type: ignore[arg-type]
        high = float(numbers.max() or 1)  # type: ignore[arg-type]
    inside = (pl.col("end") >= low) & (pl.col("first") <= high)
    segments = segments.filter(inside)
    blocks = _between(one.selective, begin, end).filter(inside)
    lost = _between(one.lost_acknowledgements, begin, end)
    marks = _joined(segments, begin, end)
    return {
        "low": low,
        "high": high,
        "total": segments.height,
        "joined": marks.height < segments.height,
        "segments": _seconds(marks),
        "acknowledgements": _seconds(pl.concat([before, _last(answers, begin, end)])),
        "blocks": _seconds(blocks[:: -(-blocks.height // MOST_MARKS) or 1]),
        "lost": _seconds(lost[:: -(-lost.height // MOST_MARKS) or 1]),
    }


def _between(rows: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    return rows.filter(pl.col("time_ns").is_between(begin, end))


def _stretch(begin: int, end: int) -> pl.Expr:
    return (pl.col("time_ns") - begin) * STRETCHES // max(end - begin, 1)


def _joined(segments: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    """Return segments one by one, or those of one kind and stretch of time as one."""
    if segments.height <= MOST_MARKS:
        return segments.with_columns(count=pl.lit(1))
    last = int(segments["time_ns"][-1])
    kind = ["retransmission", "cause", "damaged", "stretch"]
    return (
        segments.with_columns(stretch=_stretch(begin, min(end, last)))
        .group_by(kind, maintain_order=True)
        .agg(
            pl.col("time_ns").first(),
            pl.col("first").min(),
            pl.col("end").max(),
            pl.col("pdu").first(),
            count=pl.len(),
        )
        .drop("stretch")
        .head(4 * MOST_MARKS)
    )


def _last(answers: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    """Return acknowledgements one by one, or the last one of each stretch of time."""
    if answers.height <= MOST_MARKS:
        return answers
    last = int(answers["time_ns"][-1])
    return (
        answers.with_columns(stretch=_stretch(begin, min(end, last)))
        .group_by("stretch", maintain_order=True)
        .last()
        .select(answers.columns)
    )


def _seconds(rows: pl.DataFrame) -> list[dict[str, Any]]:
    return rows.with_columns(t=pl.col("time_ns") / 1e9).drop("time_ns").to_dicts()
