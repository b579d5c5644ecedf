"""What an experiment wrote of a run, beside what the engine did: its set, cell and parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RECORD = "replication.json"


def read_about(folder: Path) -> dict[str, Any]:
    """Return an experiment's record of a run; nothing if it is not of one, or unreadable."""
    try:
        about = json.loads((folder / RECORD).read_text())
    except (OSError, ValueError):
        return {}
    known = isinstance(about, dict) and {"set_name", "cell", "replication"} <= about.keys()
    return about if known else {}


def name_of_set(about: dict[str, Any]) -> str:
    """Return the name of the set of replications that a run is of: SET/CELL."""
    return f"{about['set_name']}/{about['cell']}"


def parameters_of(about: dict[str, Any]) -> dict[str, Any]:
    """Return what distinguishes a cell from others: set, network, workload, what was swept."""
    return {
        "set": about["set_name"],
        "network": about.get("network"),
        "workload": about.get("workload"),
        **(about.get("parameters") or {}),
    }


def parameters_of_sets(runs: Iterable[tuple[str, Path]]) -> dict[str, dict[str, Any]]:
    """Return by set what distinguishes it from others; nothing of one that is no experiment's.

    Args:
        runs: the set and the folder of each.

    """
    found: dict[str, dict[str, Any]] = {}
    for name, folder in runs:
        if name not in found:
            about = read_about(folder)
            found[name] = parameters_of(about) if about else {}
    return found
