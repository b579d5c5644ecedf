# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Active runs: which there are, their state and verdict, their control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath import control
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from pathlib import Path


def active() -> list[dict[str, Any]]:
    """Return the active runs of this user."""
    return [
        {
            "run": one.run,
            "folder": str(_whole(one.folder)) if one.folder else "",
            "logs": str(one.folder) if one.folder else "",
            "command": list(one.command),
            "seed": one.seed,
            "hops": list(one.hops),
            "states": list(one.states),
            "state": one.state,
            "t": one.time_ns / 1e9,
            "users": [
                {"name": user.name, "states": list(user.states), "state": user.state}
                for user in _with_link(one)
            ],
        }
        for one in control.runs()
    ]


def _with_link(run: control.Description) -> list[control.User]:
    """Return the users of a cell, but for those whose links are lost."""
    return [user for user in run.users if user.state is not None]


def _whole(part: Path) -> Path:
    """Return the folder of a run, of which a hop on another host makes this one a part."""
    return part.parent.parent if part.parent.name == "hosts" else part


def command(number: int, ask: dict[str, Any]) -> dict[str, Any]:
    """Carry out a command on an active run: set parameters, enter a state, get values.

    Args:
        number: the run's number.
        ask: ``set`` (parameters and values), ``state`` (a name) or ``get`` (a list of parameters).

    Raises:
        UiError: the run refuses, or has ended.

    """
    try:
        with control.Run.of_number(number) as run:
            if "set" in ask:
                effect = run.set(dict(ask["set"]))
            elif "state" in ask:
                effect = run.state(str(ask["state"]))
            elif "get" in ask:
                return {"values": {str(name): run.get(str(name)) for name in ask["get"]}}
            else:
                raise UiError("a command is `set`, `state` or `get`")
    except control.ControlError as error:
        status = 410 if error.kind in ("ended", "run") else 422
        raise UiError(str(error), status) from error
    return {"t": effect.time_ns / 1e9, "state": effect.state, "users": dict(effect.user_states)}


def alive(number: int) -> bool:
    """Return whether a run still answers."""
    try:
        control.Run.of_number(number).close()
    except control.ControlError:
        return False
    return True


def state(number: int) -> dict[str, Any]:
    """Return the state in force and the verdict so far."""
    try:
        with control.Run.of_number(number) as run:
            about = run.describe()
            verdict = run.verdict()
    except control.ControlError as error:
        return {"gone": error.kind}
    return {
        "t": about.time_ns / 1e9,
        "state": about.state,
        "users": {user.name: user.state for user in _with_link(about)},
        "verdict": verdict.grade,
        "reasons": list(verdict.reasons),
    }
