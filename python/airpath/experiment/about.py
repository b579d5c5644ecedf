# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Record of an experiment on a run, beside the engine's: its set, cell and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath.files import REPLICATION, read_text, told
from airpath.jsontext import parse_json
from airpath.shape import NUMBER, SCALAR, TIME, Each, Object, fitting

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RECORD = REPLICATION

_FIELDS = {
    "set_name": str,
    "cell": str,
    "replication": TIME,
    "network": str,
    "workload": str,
    "clock": str,
    "seed": int,
    "attempt": TIME,
    "status": str,
    "verdict": str,
    "message": str,
    "wall_s": NUMBER,
    "size_bytes": TIME,
    "ended_unix_s": NUMBER,
    "metrics": Each(NUMBER),
    "parameters": Each(SCALAR),
    "tags": [str],
}
_SHAPE = Object(
    {**_FIELDS, "digest": str, "measured": [str]}, needed=("set_name", "cell", "replication")
)


class RecordError(ValueError):
    """A run has no record that can be read; the message names the file and says why."""


def read_record(folder: Path) -> dict[str, Any]:
    """Return an experiment's whole record of a run.

    Raises:
        RecordError: there is none, or it is damaged.

    """
    wrong: list[str] = []
    found = _read(folder, wrong)
    wrong += [f"it has no {key} that can be read" for key in _FIELDS if key not in found]
    if wrong:
        message = f"{folder / RECORD}: {wrong[0]}"
        raise RecordError(message)
    return found


def _read(folder: Path, wrong: list[str]) -> dict[str, Any]:
    path = folder / RECORD
    try:
        found: dict[str, Any] = fitting(parse_json(read_text(path)), _SHAPE, wrong)
    except OSError as error:
        raise RecordError(told(error)) from error
    except ValueError as error:
        message = f"{path}: {'; '.join([*wrong, str(error)])}"
        raise RecordError(message) from error
    return found


def read_about(folder: Path) -> dict[str, Any]:
    """Return an experiment's record of a run; nothing if it is not of one, or unreadable."""
    try:
        return _read(folder, [])
    except RecordError:
        return {}


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
