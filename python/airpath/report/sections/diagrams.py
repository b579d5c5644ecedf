# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Time-sequence diagrams that the reader can zoom, move and ask, one for each TCP transfer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.colors import to_hex

from airpath.plots.style import drop_styles
from airpath.report import choice
from airpath.report.page import Section, data, fill
from airpath.run import RunError, contradictions_named
from airpath.tcp import SENDING_END, transfers

if TYPE_CHECKING:
    from pathlib import Path

    from markupsafe import Markup

    from airpath.report.entry import Entry
    from airpath.report.facts import Facts
    from airpath.report.material import Material
    from airpath.report.opener import Opener
    from airpath.run import Run
    from airpath.tcp import Transfer

MOST_TRANSFERS = 4
"""Diagrams of a run at most: its largest transfers."""

MOST_RUNS = 100
"""Runs with diagrams on the page."""

MOST_ELEMENTS = 400_000
"""Segments, acknowledgements and the like on the page at most, of some 15 bytes each."""

MOST_IN_DIAGRAM = 30_000
LEAST_IN_DIAGRAM = 1_000
KINDS = 6
"""Kinds of elements that share a diagram's number: segments, losses, ACKs, SACKs, cwnd, RTO."""

RETRANSMISSION = 1
DAMAGED = 2
CAUSE = 4
"""A segment's mark: bits, and above them the number of its drop's cause, from 1; 0 for none."""


@dataclass
class Diagram:
    """One diagram on the page."""

    identity: str
    label: str
    content: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def data(self) -> Markup:
        """Its content for the script."""
        return data(self.content)


@dataclass(frozen=True)
class Task:
    """Diagram of one run."""

    directory: Path
    number: int
    label: str
    facts: Facts
    most: int
    """Elements of all its diagrams together."""
    opener: Opener


@dataclass
class Drawn:
    """The diagrams of one run."""

    diagrams: list[Diagram]
    total: int
    """Its transfers; the largest are drawn."""
    notes: list[str]


def build(material: Material) -> Section | None:
    """Return the diagrams of runs with captures: those an experiment names, or some of each set."""
    named = material.presentation.captions
    chosen = material.with_diagrams if named else choice.first_of_sets(material.entries, MOST_RUNS)
    most = MOST_ELEMENTS // max(len(chosen), 1)
    tasks = [
        Task(entry.run.directory, entry.number, entry.label, entry.facts, most, entry.opener)
        for entry in chosen
    ]

    def tell(done: int, total: int) -> None:
        material.progress("diagrams", done, total)

    groups = []
    for entry, drawn in zip(chosen, material.crew.each(draw_run, tasks, tell), strict=True):
        entry.run.notes += [note for note in drawn.notes if note not in entry.run.notes]
        if drawn.diagrams:
            groups.append((entry, drawn.diagrams, drawn.total))
    if not groups:
        return None
    body = fill(
        "diagrams",
        groups=groups,
        captions=named,
        left_out=len(material.entries) - len(chosen),
        most=MOST_RUNS,
    )
    return Section("diagrams", "Time-sequence diagrams", body)


def draw_run(task: Task) -> Drawn:
    """Return the diagrams of a run."""
    from airpath.report.entry import Entry

    run = task.opener.open(task.directory)
    entry = Entry(task.number, task.label, run)
    entry.facts = task.facts
    try:
        with contradictions_named(run.directory):
            every = transfers(run)
    except RunError as error:
        return Drawn([], 0, [*run.notes, str(error)])
    shown = every[:MOST_TRANSFERS]
    share = task.most // max(len(shown), 1)
    most = int(np.clip(share, LEAST_IN_DIAGRAM, MOST_IN_DIAGRAM)) // KINDS
    diagrams = [
        diagram(entry, transfer, f"diagram-{task.number}-{index}", most)
        for index, transfer in enumerate(shown, 1)
    ]
    return Drawn(diagrams, len(every), run.notes)


def diagram(entry: Entry, transfer: Transfer, identity: str, most: int) -> Diagram:
    """Return a transfer as the script draws it, each kind of element at most ``most`` times."""
    causes = sorted({*transfer.segments["cause"], *transfer.lost_acknowledgements["cause"]} - {""})
    styles = drop_styles(causes)
    notes: list[str] = []
    segments = _segments(transfer.segments, causes, most, notes)
    answers = thin(transfer.acknowledgements, most, "acknowledgements", notes)
    blocks = thin(transfer.selective, most, "SACK blocks", notes)
    lost = thin(transfer.lost_acknowledgements, most, "lost acknowledgements", notes)
    content = {
        "end": entry.facts.duration_ns // 1000,
        "bytes": transfer.payload_bytes,
        "causes": [
            {
                "name": cause,
                "text": styles[cause].text,
                "colour": to_hex(styles[cause].line_colour),
                "shape": styles[cause].shape,
            }
            for cause in causes
        ],
        "segments": segments,
        "acknowledgements": {
            "time": _steps(answers["time_ns"] // 1000),
            "number": _steps(answers["number"].cum_max()),
        },
        "selective": {
            "time": _steps(blocks["time_ns"] // 1000),
            "first": blocks["first"].to_list(),
            "length": (blocks["end"] - blocks["first"]).to_list(),
        },
        "lost": {
            "time": _steps(lost["time_ns"] // 1000),
            "number": lost["number"].to_list(),
            "cause": [causes.index(cause) + 1 if cause else 0 for cause in lost["cause"]],
        },
        "kernel": _kernel(entry.run, transfer, most, notes),
        "states": [
            [time_ns // 1000, state] for time_ns, state in entry.run.state_changes() if time_ns > 0
        ],
    }
    label = f"{transfer.direction}, {transfer.label}, seen at the {transfer.vantage}"
    return Diagram(identity, label, content, notes)


def _kernel(run: Run, transfer: Transfer, most: int, notes: list[str]) -> dict[str, Any]:
    """Return what the sender's kernel knew: cwnd, RTO, and the states of congestion control.

    cwnd in bytes, RTO in ms; each value holds until the next. Nothing without ``tcp.arrow``.
    """
    empty: dict[str, Any] = {"cwnd": {}, "rto": {}, "bands": []}
    if transfer.vantage != SENDING_END[transfer.direction]:
        return empty
    try:
        rows = run.tcp_state
    except RunError as error:
        run.notes.append(str(error))
        return empty
    local = pl.concat_str(["local_address", pl.lit(" "), "local_port"])
    remote = pl.concat_str(["remote_address", pl.lit(" "), "remote_port"])
    rows = rows.filter(
        (pl.col("end").cast(pl.String) == transfer.vantage)
        & (local == _spaced(transfer.source))
        & (remote == _spaced(transfer.destination))
    )
    window = rows.select("time_ns", value=pl.col("cwnd") * pl.col("mss").forward_fill())
    timeout = rows.select("time_ns", value=pl.col("rto_ns") / 1e6)
    states = rows.select("time_ns", state=pl.col("congestion_state").cast(pl.String)).drop_nulls()
    changed = states.filter(
        (pl.col("state") != pl.col("state").shift(1)) | (pl.int_range(pl.len()) == 0)
    )
    end_ns = int(rows["time_ns"][-1]) if rows.height else 0
    bands = [
        [int(time) // 1000, int(until) // 1000, state]
        for time, until, state in changed.with_columns(
            until=pl.col("time_ns").shift(-1).fill_null(end_ns)
        )
        .select("time_ns", "until", "state")
        .iter_rows()
        if state != "open"
    ]
    return {
        "cwnd": _course(window, most, "values of cwnd", notes),
        "rto": _course(timeout, most, "values of RTO", notes),
        "bands": bands[:most],
    }


def _course(rows: pl.DataFrame, most: int, what: str, notes: list[str]) -> dict[str, list[int]]:
    """Return a value where it changes, and its last."""
    told = rows.drop_nulls()
    changes = told.filter(
        (pl.col("value") != pl.col("value").shift(1)).fill_null(value=True)
        | (pl.int_range(pl.len()) == pl.len() - 1)
    )
    shown = thin(changes, most, what, notes)
    return {
        "time": _steps(shown["time_ns"] // 1000),
        "value": shown["value"].round().cast(pl.Int64).to_list(),
    }


def _spaced(end: str) -> str:
    """Return "address port" of a transfer's end."""
    address, _, port = end.rpartition(":")
    return f"{address.strip('[]')} {port}"


def _segments(
    segments: pl.DataFrame, causes: list[str], most: int, notes: list[str]
) -> dict[str, list[int]]:
    """Return segments; of many, those to which nothing befell are joined where they are close."""
    number = {cause: index for index, cause in enumerate(causes, 1)} | {"": 0}
    marked = segments.with_row_index("row").select(
        "row",
        "time_ns",
        "first",
        "end",
        mark=pl.col("retransmission").cast(pl.Int64) * RETRANSMISSION
        + pl.col("damaged").cast(pl.Int64) * DAMAGED
        + pl.col("cause").replace_strict(number, return_dtype=pl.Int64) * CAUSE,
        joined=pl.lit(1, pl.Int64),
    )
    usual = marked.filter(pl.col("mark") == 0)
    special = thin(marked.filter(pl.col("mark") != 0), most, "retransmissions and drops", notes)
    if usual.height > most:
        usual, width_ns = join(usual, most)
        notes.append(
            f"{segments.height:,} segments: those that nothing befell are joined to bars where"
            f" they were sent within {width_ns / 1e6:.3g} ms"
        )
    shown = pl.concat([usual, special]).sort("time_ns", "row")
    return {
        "time": _steps(shown["time_ns"] // 1000),
        "first": _steps(shown["first"]),
        "length": (shown["end"] - shown["first"]).to_list(),
        "mark": shown["mark"].to_list(),
        "joined": shown["joined"].to_list() if (shown["joined"] > 1).any() else [],
    }


def join(segments: pl.DataFrame, most: int) -> tuple[pl.DataFrame, int]:
    """Join segments in equal intervals of time; return the bars and the interval in ns."""
    begin, end = int(segments["time_ns"][0]), int(segments["time_ns"][-1])
    width = max((end - begin) // most + 1, 1)
    bars = (
        segments.group_by((pl.col("time_ns") - begin) // width, maintain_order=True)
        .agg(
            pl.col("row").first(),
            pl.col("time_ns").first().alias("at"),
            pl.col("first").min(),
            pl.col("end").max(),
            pl.col("mark").first(),
            pl.col("joined").sum(),
        )
        .drop("time_ns")
        .rename({"at": "time_ns"})
    )
    return bars.select(segments.columns), width


def thin(rows: pl.DataFrame, most: int, what: str, notes: list[str]) -> pl.DataFrame:
    """Return at most so many rows, evenly chosen, and note it."""
    if rows.height <= most:
        return rows
    notes.append(f"{most:,} of {rows.height:,} {what} are drawn")
    chosen = np.linspace(0, rows.height - 1, most).round().astype(np.int64)
    return rows[chosen]


def _steps(values: pl.Series) -> list[int]:
    """Return the first value and the differences of the others, which are short to write."""
    if values.is_empty():
        return []
    return [int(values[0]), *values.diff()[1:].to_list()]
