# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs that have been made: where they are, what came out, their curves, and single packets."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.facts import FILES, raw
from airpath.run import RunError, load_run
from airpath.ui import engine
from airpath.ui.errors import UiError, not_found
from airpath.ui.feed import BIN_NS, CHANGES, Feed, marks_of, tcp_curves

if TYPE_CHECKING:
    from airpath.run import Run
    from airpath.ui.workspace import Workspace

MOST_RUNS = 2_000
"""Maximum number of runs in a list."""
MOST_PACKETS = 2_000
"""Maximum number of packets in one answer."""
MOST_POINTS = 4_000
"""Maximum number of points of one curve in one answer."""


def runs_of(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the runs of a workspace, the latest first."""
    found: list[tuple[float, Path]] = []
    for directory, folders, names in os.walk(workspace.folder):
        if "run.json" in names or "events.arrow" in names:
            here = Path(directory)
            folders.clear()
            try:
                found.append(
                    (
                        (here / ("run.json" if "run.json" in names else "events.arrow"))
                        .stat()
                        .st_mtime,
                        here,
                    )
                )
            except OSError:
                continue
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _OTHER]
        if len(found) >= MOST_RUNS:
            break
    return [_row(workspace, at, path) for at, path in sorted(found, reverse=True)]


_OTHER = frozenset({"node_modules", "target", ".venv", "files"})


def _row(workspace: Workspace, at: float, path: Path) -> dict[str, Any]:
    try:
        run = _load(path, at)
    except UiError as error:
        return {"name": workspace.name_of(path), "changed": at, "error": str(error)}
    return {
        "name": workspace.name_of(path),
        "changed": at,
        "scenario": run.name,
        "clock": run.clock,
        "seed": run.manifest.get("seed"),
        "duration_s": run.results.get("duration_ns", 0) / 1e9,
        "verdict": run.verdict,
        "status": run.manifest.get("status", "unknown"),
    }


@lru_cache(maxsize=4_000)
def _load(path: Path, _changed: float) -> Run:
    try:
        return load_run(path)
    except RunError as error:
        raise not_found(str(error)) from error


def opened(workspace: Workspace, name: str) -> Run:
    """Open a run by its name in the workspace.

    Raises:
        UiError: there is no such run.

    """
    path = workspace.inside(name)
    part = path / "hosts" / "local"
    events = FILES["events"]
    if not (path / events).exists() and (part / events).exists():
        # A run over several hosts that was killed before their parts were joined.
        path = part
    return _opened(path, tuple(_stamp(path / file["name"]) for file in raw()["files"]))


@lru_cache(maxsize=4)
def _opened(path: Path, _stamps: tuple[object, ...]) -> Run:
    """Return a run, with all that was read of it, while its files stay as they are."""
    try:
        return load_run(path)
    except RunError as error:
        raise not_found(str(error)) from error


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


_PART = (
    "the run ended before the parts of its hosts were joined: this is the part of this host; the "
    "others are beside it, in the folder hosts"
)


def about(run: Run) -> dict[str, Any]:
    """Return what the page shows of a run beside its curves."""
    results = run.results
    return {
        "scenario": run.name,
        "clock": run.clock,
        "seed": run.manifest.get("seed"),
        "duration_s": results.get("duration_ns", 0) / 1e9,
        "verdict": run.verdict,
        "reasons": list(run.verdict_reasons),
        "notes": [*run.notes, *([_PART] if run.directory.parent.name == "hosts" else [])],
        "status": run.manifest.get("status", "unknown"),
        "toml": run.manifest.get("scenario_toml", ""),
        "commands": run.manifest.get("commands", []),
        "version": run.manifest.get("airpath_version", ""),
    }


def curves(run: Run, begin_s: float, end_s: float) -> dict[str, Any]:
    """Return the curves of a part of a run, each thinned to its extremes where it is long.

    Raises:
        UiError: the logs cannot be read.

    """
    events = _events(run)
    update = Feed().add(events, last=True)
    found = {**update["curves"], **tcp_curves(run.tcp_state)}
    # An update has the last changes of the run alone.
    changes = events.filter(
        pl.col("kind").cast(pl.String).is_in(CHANGES),
        (pl.col("time_ns") / 1e9).is_between(begin_s, end_s),
    )
    return {
        "t": update["t"],
        "curves": {
            name: _part(*both, begin_s, end_s, _pad_s(name)) for name, both in found.items()
        },
        "marks": marks_of(changes.head(MOST_POINTS)),
        "drops": update["drops"],
        "counts": update["counts"],
    }


def _pad_s(name: str) -> float:
    """Return the time beyond a part for which points are given, so that lines reach its ends."""
    return 2 * BIN_NS / 1e9 if name.startswith(("throughput", "offered")) else 0.02


def _part(
    times: list[float], values: list[float], begin_s: float, end_s: float, pad_s: float
) -> list[list[float]]:
    near = pl.col("t").is_between(begin_s - pad_s, end_s + pad_s)
    frame = pl.DataFrame({"t": times, "v": values}).filter(near)
    if frame.height > MOST_POINTS:
        stretch = frame.height * 2 // MOST_POINTS + 1
        parts = frame.with_row_index().with_columns(bin=pl.col("index") // stretch)
        extremes = parts.group_by("bin", maintain_order=True).agg(
            index=pl.concat_list(
                pl.col("index").get(pl.col("v").arg_min()),
                pl.col("index").get(pl.col("v").arg_max()),
            )
        )
        kept = extremes["index"].explode().unique().sort()
        frame = frame[kept]
    return [frame["t"].to_list(), frame["v"].to_list()]


def _events(run: Run) -> pl.DataFrame:
    events = run.events
    if not events.height:
        why = "; ".join(run.notes) or "its log level kept no events"
        raise not_found(f"{run.directory.name} has no events: {why}")
    return events


def packets(
    run: Run, begin_s: float, end_s: float, direction: str, what: str, offset: int
) -> dict[str, Any]:
    """Return packets that entered the link in a part of a run, each with its fate.

    Args:
        run: the run.
        begin_s: begin of the part, in seconds.
        end_s: its end.
        direction: ``uplink``, ``downlink`` or empty for both.
        what: ``dropped`` for these alone, or empty for all.
        offset: number of packets to leave out.

    Raises:
        UiError: the logs cannot be read.

    """
    events = _events(run)
    words = [
        pl.col(name).cast(pl.String) for name in ("hop", "direction", "stage", "kind", "cause")
    ]
    rows = events.filter(pl.col("pdu") > 0).with_columns(words)
    offered = rows.filter((pl.col("kind") == "offered") & (pl.col("stage") == "path"))
    offered = offered.filter(
        pl.col("time_ns").is_between(int(begin_s * 1e9), int(min(end_s, 1e9) * 1e9))
    )
    if direction:
        offered = offered.filter(pl.col("direction") == direction)
    ends = (
        rows.filter(pl.col("kind").is_in(["delivered", "dropped"]))
        .group_by("pdu")
        .agg(
            fate=pl.col("kind").first(),
            cause=pl.col("cause").first(),
            left_ns=pl.col("time_ns").first(),
            at=pl.col("hop").first(),
        )
    )
    joined = offered.select("pdu", "time_ns", "direction", "bits", "flow").join(
        ends, on="pdu", how="left", maintain_order="left"
    )
    if what == "dropped":
        joined = joined.filter(pl.col("fate") == "dropped")
    part = joined.slice(offset, MOST_PACKETS)
    return {"total": joined.height, "packets": part.to_dicts()}


def packet(run: Run, pdu: int) -> dict[str, Any]:
    """Return the way of one packet: its events in order, and its bytes at either end.

    Raises:
        UiError: the run has no such packet.

    """
    rows = _events(run).filter(pl.col("pdu") == pdu)
    if not rows.height:
        raise not_found(f"{run.directory.name} has no packet {pdu}")
    shown = ["time_ns", "hop", "direction", "stage", "kind", "cause", "bits"]
    shown += ["queue_packets", "queue_bytes", "state", "emitted_ns"]
    way = rows.select(
        pl.col(name).cast(pl.String) if rows[name].dtype == pl.Categorical() else pl.col(name)
        for name in shown
    ).to_dicts()
    return {"pdu": pdu, "way": way, **_seen(run, pdu)}


def _seen(run: Run, pdu: int) -> dict[str, Any]:
    """Return the bytes and headers of a packet at each end that captured it.

    Beside them is what the command says of captures that are damaged or not there.
    """
    done = engine.ask(["log", str(run.directory), "--pdu", str(pdu), "--headers", "--json"])
    said = [line.removeprefix("airpath: ") for line in done.stderr.splitlines()]
    return {"seen": [json.loads(line) for line in done.stdout.splitlines()], "said": said}
