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
    sent_again = [way.get("packets_retransmitted") for way in ways]
    if any(isinstance(number, int) for number in sent_again):
        add("program_retransmissions", name, sum(number or 0 for number in sent_again))


def _read(text: str) -> dict[str, float]:
    if not text:
        return {}
    # Here, as most runs have nothing that a template printed, and shall not wait for its keys.
    from airpath.experiment.templates import figures_of

    return figures_of(text)
