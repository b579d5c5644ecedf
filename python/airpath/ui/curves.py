# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Thumbnails of links: what gets through a profile over time, and how long that takes.

Each is a run of some seconds in virtual time, with more load than the link carries. Computed once
and kept in the user's cache.
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
from airpath.ui.feed import Feed
from airpath.ui.version import installed

SECONDS = 20
POINTS = 100
"""Number of points of a thumbnail."""
_FORM = 1
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
            curve: _thinned(*update["curves"].get(f"{curve}/{direction}", ([], [])))
            for curve in ("throughput", "delay")
        }
        for direction in ("uplink", "downlink")
    }


def _thinned(times: list[float], values: list[float]) -> list[list[float]]:
    """Return medians of as many stretches of time as a thumbnail has points."""
    if not times:
        return [[], []]
    width = SECONDS / POINTS
    frame = pl.DataFrame({"t": times, "v": values}).with_columns(bin=(pl.col("t") / width).floor())
    some = frame.group_by("bin").agg(pl.col("v").median()).sort("bin")
    return [(some["bin"] * width).round(3).to_list(), some["v"].round(4).to_list()]
