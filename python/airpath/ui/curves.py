# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of links before they carry anything: thumbnails of profiles, and rates of traces.

A thumbnail shows what gets through a profile over time, and how long that takes. It is a run of
some seconds in virtual time, with more load than the link carries, computed once and kept in the
user's cache.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from airpath.arrow import ArrowLogError, read_arrow_log
from airpath.ui import engine
from airpath.ui.errors import UiError, not_found
from airpath.ui.feed import BIN_NS, Feed
from airpath.ui.version import installed

SECONDS = 20
POINTS = 100
"""Number of points of a thumbnail."""
TRACE_POINTS = 600
"""Number of points of a trace's picture at most."""
MEAN_S = 1.0
"""Time over which the throughput of a thumbnail is averaged: the packets of a slow link come one by
one, and each of them alone is more than its rate."""
_FORM = 2
"""Form of what is kept; another number makes what was kept before void."""


def thumbnail(name: str) -> dict[str, Any]:
    """Return the curves of a profile by direction: throughput in Mbit/s and delay in ms.

    Raises:
        UiError: there is no such profile, or the run fails.

    """
    if not re.fullmatch(r"[A-Za-z0-9+._-]{1,80}", name):
        raise not_found(f"there is no profile {name!r}")
    kept = _cache() / f"{name}.json"
    try:
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        pass
    made = _measured(name)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_name(f".{name}.{os.getpid()}.new")
        fresh.write_text(json.dumps(made), encoding="utf-8")
        fresh.replace(kept)
    except OSError:
        pass  # measured again the next time
    return made


def trace(path: Path) -> dict[str, Any]:
    """Return the duration of a trace in seconds, and its rates in bit/s with their times.

    Of a long trace, each stretch of time has its least and its greatest rate, so that no outage is
    missed, and its last one, which holds on.

    Raises:
        UiError: the file is no trace of rates.

    """
    found = engine.ask_json(["trace", "show", str(path), "--json", "--points"])
    if "rates" not in found:
        raise UiError(f"{path.name} is no trace of rates")
    rates = pl.DataFrame(found["rates"], schema={"t": pl.Float64, "v": pl.Float64}, orient="row")
    if rates.height > TRACE_POINTS:
        width = max(found["duration_ns"] / (TRACE_POINTS // 3), 1.0)
        stretches = rates.group_by((pl.col("t") / width).floor().alias("bin"))
        rate = pl.col("v")
        shown = (pl.all().get(rate.arg_min()), pl.all().get(rate.arg_max()), pl.all().last())
        points = pl.concat([stretches.agg(point) for point in shown])
        rates = points.select("t", "v").unique().sort("t")
    return {
        "duration_s": found["duration_ns"] / 1e9,
        "repeats": found["repeats"],
        "mean_bps": found["mean_bps"],
        "rates": [(rates["t"] / 1e9).to_list(), rates["v"].to_list()],
    }


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "airpath" / "thumbnails" / f"{installed()}-{_FORM}"


def _measured(name: str) -> dict[str, Any]:
    profiles = {each["name"]: each for each in engine.ask_json(["profiles", "--json"])}
    if name not in profiles:
        raise not_found(f"there is no profile {name!r}")
    with tempfile.TemporaryDirectory(prefix="airpath-ui-") as scratch:
        out = Path(scratch) / "run"
        words = ["sim", "--profile", name, "--seed", "1", "--out", str(out), "--log", "events"]
        words += ["--duration", f"{SECONDS} s", "--quiet"]
        for sender in ("client", "server"):
            words += ["--workload", f"tcp duration={SECONDS}s from={sender} cc=cubic"]
        done = engine.ask(words)
        if done.returncode not in (0, 1):
            raise UiError(done.stderr.strip(), 500)
        try:
            update = Feed().add(read_arrow_log(out / "events.arrow").frame, last=True)
        except (ArrowLogError, OSError) as error:
            raise UiError(str(error), 500) from error
    return {
        direction: {
            "throughput": _thinned(times, _averaged(rates)),
            "delay": _thinned(*update["curves"].get(f"delay/{direction}", ([], []))),
        }
        for direction in ("uplink", "downlink")
        for times, rates in [update["curves"].get(f"throughput/{direction}", ([], []))]
    }


def _averaged(rates: list[float]) -> list[float]:
    """Return the means of a second each, of the throughput in bins."""
    bins = round(MEAN_S * 1e9 / BIN_NS)
    return pl.Series(rates, dtype=pl.Float64).rolling_mean(bins, min_samples=1).to_list()


def _thinned(times: list[float], values: list[float]) -> list[list[float]]:
    """Return medians of as many stretches of time as a thumbnail has points."""
    if not times:
        return [[], []]
    width = SECONDS / POINTS
    frame = pl.DataFrame({"t": times, "v": values}).with_columns(bin=(pl.col("t") / width).floor())
    some = frame.group_by("bin").agg(pl.col("v").median()).sort("bin")
    return [(some["bin"] * width).round(3).to_list(), some["v"].round(4).to_list()]
