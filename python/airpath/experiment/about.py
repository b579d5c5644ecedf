"""What an experiment wrote of a run, beside what the engine did: its set, cell and parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def is_swept(name: str) -> bool:
    """Say whether a name of ``parameters_of`` is one that a sweep varied."""
    from airpath.experiment.load import SWEPT_SETTINGS  # here, as reading files takes pydantic

    return "." in name or name in SWEPT_SETTINGS
