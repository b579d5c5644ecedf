# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios as the page edits them: text in TOML, and single changes that keep comments."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table

from airpath.ui import engine
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_DEPTH = 12
"""Maximum length of the path to a value."""


class Edit(TypedDict, total=False):
    """A change of one value."""

    path: list[str | int]
    """Keys and places in lists, from the top of the document."""
    value: Any
    """The new value; without one, the value is taken away."""


class Checked(TypedDict):
    """Judgement of the engine on a scenario."""

    valid: bool
    problems: list[dict[str, Any]]
    tree: dict[str, Any] | None
    """The document as JSON; None if it is no TOML."""


def check(text: str, folder: Path) -> Checked:
    """Return what is wrong in a scenario, and its values.

    Args:
        text: the scenario.
        folder: where the files that it names are looked for.

    Raises:
        UiError: the engine cannot be asked.

    """
    try:
        tree: dict[str, Any] | None = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        tree = None  # the engine says where
    path = written_beside(text, folder)
    try:
        done = engine.ask(["check", "--json", str(path)])
        try:
            answer = json.loads(done.stdout.splitlines()[0])
        except (ValueError, IndexError) as error:
            raise UiError(done.stderr.strip() or "the engine's answer is not readable") from error
    finally:
        path.unlink(missing_ok=True)
    problems = [
        {
            key: problem.get(key)
            for key in ("line", "column", "key", "message", "suggestion", "valid")
        }
        for problem in answer.get("problems", [])
    ]
    return Checked(valid=bool(answer["valid"]), problems=problems, tree=_plain(tree))


def written_beside(text: str, folder: Path) -> Path:
    """Write a scenario into a hidden file of its folder, so that the files that it names are found.

    Raises:
        UiError: it cannot be written.

    """
    place = folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())
    try:
        handle, name = tempfile.mkstemp(suffix=".toml", prefix=".airpath-ui-", dir=place)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UiError(f"{place}: {error.strerror or error}", 507) from error
    return Path(name)


def _plain(tree: Any) -> Any:
    """Return a tree without what JSON does not have: dates, infinities."""
    return json.loads(json.dumps(tree, default=str, allow_nan=False)) if tree is not None else None


def edit(text: str, edits: Sequence[Edit]) -> str:
    """Return a scenario with some values changed; everything else stays, with its comments.

    Raises:
        UiError: the text is no TOML, or a path leads nowhere.

    """
    try:
        document = tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise UiError(f"the text is no TOML: {error}") from error
    for one in edits:
        try:
            _apply(document, one)
        except (TOMLKitError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            where = ".".join(str(step) for step in one.get("path", []))
            raise UiError(f"{where or 'the document'}: cannot be changed: {error}") from error
    changed = tomlkit.dumps(document)
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:  # rather no change than a broken text
        raise UiError(f"this change cannot be written; change the text: {error}") from error
    return changed


def _apply(document: Any, one: Edit) -> None:
    path = one["path"]
    if not 0 < len(path) <= MOST_DEPTH:
        raise ValueError("a path has from 1 to 12 steps")
    place = document
    for step, following in itertools.pairwise(path):
        if isinstance(step, str) and step not in place:
            # Something to put the value into; hops and states are tables of their own.
            place[step] = _empty(place, following)
        place = place[step]
        if isinstance(following, int) and following == len(place):
            place.append(tomlkit.table())
    last = path[-1]
    if "value" not in one:
        del place[last]
        return
    value = one["value"]
    if isinstance(last, int) and last == len(place):
        place.append(_table(value) if isinstance(place, AoT) else value)
    elif isinstance(value, dict) and not isinstance(
        place.get(last) if isinstance(last, str) else None, Table
    ):
        place[last] = _inline(value)
    else:
        place[last] = value


def _empty(place: Any, following: str | int) -> Any:
    if isinstance(following, int):
        return tomlkit.aot()
    inline = not isinstance(place, (Table, tomlkit.TOMLDocument))
    return tomlkit.inline_table() if inline else tomlkit.table()


def _table(value: dict[str, Any]) -> Table:
    table = tomlkit.table()
    for key, each in value.items():
        if isinstance(each, dict) and "type" not in each:
            table[key] = _table(each)
        else:
            table[key] = _inline(each) if isinstance(each, dict) else each
    return table


def _inline(value: dict[str, Any]) -> Any:
    table = tomlkit.inline_table()
    for key, each in value.items():
        table[key] = _inline(each) if isinstance(each, dict) else each
    return table
