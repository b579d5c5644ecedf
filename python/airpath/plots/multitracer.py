# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The layers of a run as text, in the manner of the tools of Singh (2000), section 3.

The thesis names the tools and what is in their files, and shows no file: *socket-dump* writes one
log with time stamps and byte numbers, *RLP-dump* what the link protocol did, and *MultiTracer*
turns both into what Matlab and xgraph read. Columns and their order are therefore those of this
module.
Times are seconds since the run began; ``-`` is what a record does not have (``NaN`` for Matlab).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.files import write_whole
from airpath.layers import SOCKET_COLUMNS, layers_of, sockets
from airpath.plots.style import DIRECTION_TEXTS, Span
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from airpath.layers import Layers
    from airpath.run import Run

SOCKET_DUMP = ("time_s", "end", "event", "flow", "first", "last", "pdu")
RLP_DUMP = (
    *("time_s", "end", "event", "frame", "role", "p_f", "n_s", "n_r", "v_s", "v_a", "v_r"),
    *("outstanding", "attempts", "timer_s", "pdu"),
)
"""Columns of the files, named in their first line."""


def save(run: Run, directory: Path, span: Span | None = None) -> list[Path]:
    """Write the files of a run into a folder that exists; return their paths.

    Only what is within the span is written; files without a row are left out.
    """
    low, high = (span or Span()).limits_ns()
    kept = pl.col("time_ns").is_between(low, high)
    paths: list[Path] = []

    def write(name: str, text: str) -> None:
        if text:
            paths.append(directory / name)
            write_whole(paths[-1], text)

    parts = [sockets(run, direction) for direction in DIRECTIONS]
    of_sockets = pl.concat([part.select(list(SOCKET_COLUMNS)) for part in parts])
    rows = of_sockets.filter(kept).sort("time_ns", maintain_order=True)
    write("socket-dump.txt", socket_dump(rows))
    link = run.link.filter(kept).with_columns(run.queue_name())
    for hop in run.link.select(run.queue_name())["hop"].unique(maintain_order=True):
        of_hop = link.filter(pl.col("hop") == hop)
        write(f"rlp-dump-{hop}.txt", rlp_dump(of_hop))
    for layers in layers_of(run):
        name = f"multitracer-{layers.hop}-{layers.direction}"
        series = {
            key: rows.filter(kept) for key, rows in series_of(layers).items() if not rows.is_empty()
        }
        write(f"{name}.xg", xgraph(f"{run.name}, {DIRECTION_TEXTS[layers.direction]}", series))
        write(f"{name}.dat", matlab(series))
    return paths


def socket_dump(rows: pl.DataFrame) -> str:
    """Return the log of the sockets: a line for each packet that left or reached one."""
    flow = pl.col("flow").str.replace_all(" → ", ">", literal=True).str.replace(" ", ":")
    return _lines(
        SOCKET_DUMP,
        rows.with_columns(flow=flow).select(list(SOCKET_COLUMNS)).iter_rows(),
        (_seconds, str, str, str, str, str, str),
    )


def rlp_dump(rows: pl.DataFrame) -> str:
    """Return the log of a link's entities: a line for each frame at each end, and each reset."""
    words = [pl.col(name).cast(pl.String) for name in ("end", "event", "frame", "role")]
    bare = [name.removesuffix("_s") + "_ns" if name in _TIMES else name for name in RLP_DUMP]
    shown = rows.with_columns(*words, pl.col("p_f").cast(pl.Int8)).select(bare)
    makers = [_seconds if name in _TIMES else _word for name in RLP_DUMP]
    return _lines(RLP_DUMP, shown.iter_rows(), makers)


_TIMES = ("time_s", "timer_s")


def series_of(layers: Layers) -> dict[str, pl.DataFrame]:
    """Return the curves of one direction by name: ``time_ns`` and ``value`` of each."""
    sent, arrived = layers.frames.sent, layers.frames.arrived
    numbered = pl.col("number").is_not_null()
    curves = {
        f"socket {event} (byte)": (layers.sockets.filter(pl.col("event") == event), "last")
        for event in ("sent", "received")
    }
    for name, rows, event in (
        ("frame sent", sent, "sent"),
        ("frame repeated", sent, "repeated"),
        ("frame received", arrived, "received"),
        ("frame damaged", arrived, "damaged"),
    ):
        curves[f"{name} (number)"] = (rows.filter(numbered & (pl.col("event") == event)), "number")
    curves["V(A) (number)"] = (sent.drop_nulls("acknowledged"), "acknowledged")
    curves["V(R) (number)"] = (arrived.drop_nulls("delivered"), "delivered")
    curves["outstanding (frames)"] = (sent.drop_nulls("outstanding"), "outstanding")
    curves["queue (packets)"] = (layers.queue.drop_nulls(), "queue_packets")
    found = {
        name: rows.select("time_ns", value=pl.col(column).cast(pl.Int64))
        for name, (rows, column) in curves.items()
    }
    # A variable holds until it changes: its changes and its last value say everything.
    changed = pl.col("value").ne_missing(pl.col("value").shift(1))
    last = pl.int_range(pl.len()) == pl.len() - 1
    for name in ("V(A) (number)", "V(R) (number)", "outstanding (frames)", "queue (packets)"):
        found[name] = found[name].filter(changed | last)
    return found


def xgraph(title: str, series: dict[str, pl.DataFrame]) -> str:
    """Return curves as xgraph reads them: data sets with a name, an empty line between them."""
    parts = [
        "\n".join([f'"{name}"', *(f"{_seconds(t)} {v}" for t, v in rows.iter_rows())])
        for name, rows in series.items()
        if not rows.is_empty()
    ]
    if not parts:
        return ""
    return "\n".join([f"TitleText: {title}", "XUnitText: s", "\n\n".join(parts)]) + "\n"


def matlab(series: dict[str, pl.DataFrame]) -> str:
    """Return curves as a matrix that Matlab loads: a time in each line, a curve in each column."""
    names = [name for name, rows in series.items() if not rows.is_empty()]
    if not names:
        return ""
    header = [f"% {number}: {name}" for number, name in enumerate(["time (s)", *names], 1)]
    at = [
        (time, column, value)
        for column, name in enumerate(names)
        for time, value in series[name].iter_rows()
    ]
    lines = []
    for time, column, value in sorted(at, key=lambda row: row[:2]):
        cells = ["NaN"] * len(names)
        cells[column] = str(value)
        lines.append(" ".join([_seconds(time), *cells]))
    return "\n".join([*header, *lines]) + "\n"


def _lines(
    columns: Iterable[str],
    rows: Iterable[tuple[Any, ...]],
    makers: Iterable[Callable[[Any], str]],
) -> str:
    makers = list(makers)
    made = [" ".join(make(value) for make, value in zip(makers, row, strict=True)) for row in rows]
    return "\n".join(["# " + " ".join(columns), *made]) + "\n" if made else ""


def _word(value: object) -> str:
    return "-" if value is None or value == "" else str(value)


def _seconds(time_ns: int | None) -> str:
    if time_ns is None:
        return "-"
    sign, time_ns = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    return f"{sign}{time_ns // 1_000_000_000}.{time_ns % 1_000_000_000:09}"
