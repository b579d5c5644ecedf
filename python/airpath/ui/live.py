# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Active runs as the page follows them: new rows of their logs, their verdict, their control."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from airpath import control
from airpath.facts import FILES
from airpath.ui.errors import UiError
from airpath.ui.feed import Feed, tcp_curves
from airpath.ui.tail import NoTailError, Tail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

LOOK_EVERY_S = 0.1
"""Time between two looks at a log."""
VERDICT_EVERY = 10
"""Number of looks from one question for the verdict to the next."""
LOOKS_AFTER_END = 60
"""Number of looks at the log of a run that answers no more until it counts as killed: a run that
ends answers no more before its log has its end mark."""
WAIT_FOR_LOG_S = 20.0
"""Maximum time until a run has begun its log."""


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


async def follow(
    folder: Path, number: int | None, extra: Callable[[], dict[str, Any]] = dict
) -> AsyncIterator[bytes]:
    """Give what is new in a run, a line of JSON at a time, until it ends.

    Args:
        folder: the run's folder.
        number: its number, for its verdict; None for a run that cannot be asked.
        extra: what else to tell at each look, where it changes.

    """
    events = await _opened(folder / FILES["events"], WAIT_FOR_LOG_S)
    if events is None:
        yield _line({"error": f"{folder.name}: the run has no log of events; start it with --out"})
        return
    tcp: Tail | None = None
    feed = Feed()
    looks, silent, alive = 0, 0, number is not None
    told: dict[str, Any] = {}
    try:
        while True:
            ask = looks % VERDICT_EVERY == 0
            if ask and number is not None:
                alive = await asyncio.to_thread(_alive, number)
            try:
                rows = await asyncio.to_thread(events.new_rows)
                silent = 0 if alive or rows.height else silent + 1
                last = events.ended or silent > LOOKS_AFTER_END
                update: dict[str, Any] = {}
                if rows.height or last or ask:
                    update = dict(await asyncio.to_thread(feed.add, rows, last=last))
                if tcp is None and ask:
                    tcp = await _opened(folder / FILES["tcp_state"], 0)
                if tcp is not None and not tcp.ended:
                    more = tcp_curves(await asyncio.to_thread(tcp.new_rows))
                    update.setdefault("curves", {}).update(more)
            except NoTailError as error:
                yield _line({"error": str(error)})
                return
            if ask and alive and number is not None:
                update["live"] = await asyncio.to_thread(_state, number)
            now = extra()
            if now != told:
                told = now
                update.update(now)
            if update:
                yield _line(update)
            if last:
                # A killed run never marks the end of its log.
                yield _line({"ended": True, "killed": not events.ended})
                return
            looks += 1
            await asyncio.sleep(0 if events.behind else LOOK_EVERY_S)
    finally:
        events.close()
        if tcp is not None:
            tcp.close()


async def _opened(path: Path, patience_s: float) -> Tail | None:
    waited = 0.0
    while True:
        try:
            tail = Tail.open(path)
        except NoTailError:
            return None
        except OSError:
            if waited >= patience_s:
                return None
        else:
            return tail
        await asyncio.sleep(LOOK_EVERY_S)
        waited += LOOK_EVERY_S


def _alive(number: int) -> bool:
    try:
        control.Run.of_number(number).close()
    except control.ControlError:
        return False
    return True


def _state(number: int) -> dict[str, Any]:
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


def _line(update: dict[str, Any]) -> bytes:
    return json.dumps(update, separators=(",", ":"), allow_nan=False).encode() + b"\n"
