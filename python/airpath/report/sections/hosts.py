# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Hosts of paths that were on several: clocks, delays between them, lateness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from airpath.report.material import Material

_MILLISECOND_NS = 1e6


def build(material: Material) -> Section | None:
    """Return a table of the hosts of each run; nothing where all hops were on one."""
    rows = [
        (entry, _row(host))
        for entry in material.entries
        for host in entry.run.manifest.get("hosts", [])
    ]
    return Section("hosts", "Hosts", fill("hosts", rows=rows)) if rows else None


def _median(delay: dict[str, Any]) -> str:
    """Return the median of delays; a way on which no packet came has none."""
    return "-" if delay.get("count") == 0 else _ms(delay["p50_ns"])


def _row(host: dict[str, Any]) -> dict[str, str]:
    clock, delays = host.get("clock") or {}, host.get("network_delay") or {}
    offset = "-"
    if clock:
        offset = f"{_ms(clock['offset_ns'])} ± {_ms(clock['bound_ns'])}"
    lateness = host.get("lateness") or {}
    return {
        "host": host["name"],
        "hops": ", ".join(host.get("hops", [])),
        "offset": offset,
        "drift": _drift(clock),
        "there": _median(delays["to_host"]) if delays else "-",
        "back": _median(delays["from_host"]) if delays else "-",
        "lateness": _ms(lateness["max_ns"]) if lateness else "-",
        "failure": host.get("failure", ""),
    }


def _drift(clock: dict[str, Any]) -> str:
    if not clock:
        return "-"
    return " to ".join(f"{bound:+.1f}" for bound in clock["drift_interval_ppm"]) or "-"


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / _MILLISECOND_NS:.3f}"
