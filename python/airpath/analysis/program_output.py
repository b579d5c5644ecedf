# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading what programs, and workloads of virtual time, tell of themselves.

An experiment keeps what became of programs in ``workload.json`` and what they printed in
``programs/NAME.stdout``; a run in virtual time has the reports of its workloads in ``run.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath.files import read_text
from airpath.jsontext import parse_json
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATAGRAM_KINDS = ("cbr", "poisson", "on-off", "saturate", "media", "adaptive-media")
"""Kinds of workloads of virtual time whose packets are sent once each."""

SENDS = {"client": "uplink", "server": "downlink"}
"""Direction in which an end sends."""

DATAGRAM_TIMES = {
    "jitter_ns": "program_jitter",
    "mean_delay_ns": "program_delay_mean",
    "longest_delay_ns": "program_delay_max",
}
"""Times of datagrams in the report of a workload, and their metrics."""

MEDIA_FRAMES = (
    "frames_sent",
    "frames_on_time",
    "frames_late",
    "frames_lost",
    "frames_damaged",
    "frames_decodable",
)
"""Numbers of frames in the report of a media workload."""

Figures = dict[str, dict[str, float]]
"""Metric, then program: the figure."""


def figures(folder: Path, manifest: dict[str, Any]) -> Figures:
    """Return what the programs and workloads of a run tell of themselves.

    Args:
        folder: the run's.
        manifest: its ``run.json``.

    """
    found: Figures = {}

    def add(name: str, of: str, value: float) -> None:
        found.setdefault(name, {})[of] = float(value)

    for report in reports_of(manifest):
        _of_workload(report, add)
    for record in waited_for(folder):
        if isinstance(record.get("elapsed_ns"), int):
            add("program_elapsed", record["name"], record["elapsed_ns"] / 1e9)
        try:
            told = _read(read_text(folder / "programs" / f"{record['name']}.stdout"))
        # Programs print what they like: also what looks like one of these forms, and is none.
        except (OSError, ValueError, TypeError, KeyError):
            continue
        for name, value in told.items():
            add(name, record["name"], value)
    return found


def reports_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports of the workloads of a run in virtual time."""
    return [one["report"] for one in manifest.get("workloads") or [] if one.get("report")]


def waited_for(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the programs that are no services."""
    try:
        records = parse_json(read_text(folder / "workload.json"))["programs"]
        return [
            record
            for record in records
            if not record["service"] and isinstance(record["name"], str)
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _of_workload(report: dict[str, Any], add: Callable[[str, str, float], None]) -> None:
    name, elapsed_ns = report["name"], report.get("elapsed_ns")
    ways = [report.get(direction) or {} for direction in DIRECTIONS]
    if isinstance(elapsed_ns, int):
        add("program_elapsed", name, elapsed_ns / 1e9)
    delivered_bytes = sum(way.get("delivered_bytes") or 0 for way in ways)
    if elapsed_ns and delivered_bytes:
        add("program_goodput", name, delivered_bytes * 8e9 / elapsed_ns)
    _of_datagrams(report, add)
    sent_again = [way.get("packets_retransmitted") for way in ways]
    if any(isinstance(number, int) for number in sent_again):
        add("program_retransmissions", name, sum(number or 0 for number in sent_again))


def _of_datagrams(report: dict[str, Any], add: Callable[[str, str, float], None]) -> None:
    """Add what the receiver of datagrams tells: of workloads whose sender repeats nothing."""
    workload = report.get("workload") or {}
    sender = workload.get("from")
    if workload.get("kind") not in DATAGRAM_KINDS or sender not in SENDS:
        return
    name, way = report["name"], report.get(SENDS[sender]) or {}
    if way.get("packets_sent"):
        add("program_loss_ratio", name, way["packets_lost"] / way["packets_sent"])
    for key, metric in DATAGRAM_TIMES.items():
        if isinstance(way.get(key), int):
            add(metric, name, way[key] / 1e9)
    media = report.get("media") or {}
    for key in MEDIA_FRAMES:
        if isinstance(media.get(key), int):
            add(f"program_{key}", name, media[key])
    if media.get("frames_sent"):
        add("program_frames_on_time_ratio", name, media["frames_on_time"] / media["frames_sent"])


def _read(text: str) -> dict[str, float]:
    if not text:
        return {}
    # Here, as most runs have nothing that a template printed, and shall not wait for its keys.
    from airpath.experiment.templates import figures_of

    return figures_of(text)
