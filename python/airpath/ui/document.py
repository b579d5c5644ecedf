# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios as the page edits them: text in TOML, and single changes that keep comments."""

from __future__ import annotations

import difflib
import itertools
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, TypedDict

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table

from airpath.ui import engine
from airpath.ui.errors import UiError
from airpath.ui.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_DEPTH = 12
"""Maximum length of the path to a value."""

_HEADING = re.compile(r"\s*\[{1,2}[^\[\],]+\]{1,2}\s*(#.*)?")
"""Line that begins a table."""

_LONE_FEED = re.compile(r"(?<!\r)\n")
"""Line feed without a carriage return."""

MOST_CHANGED_LINES = 500
"""Number of changed lines up to which tables get empty lines; to compare more takes too long."""


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
    scratch = Scratch.write(text, folder)
    try:
        done = engine.ask(["check", "--json", str(scratch.path)])
        try:
            answer = json.loads(done.stdout.splitlines()[0])
        except (ValueError, IndexError) as error:
            raise UiError(done.stderr.strip() or "the engine's answer is not readable") from error
    finally:
        scratch.remove()
    problems = [
        {
            key: problem.get(key)
            for key in ("line", "column", "key", "message", "suggestion", "valid")
        }
        for problem in answer.get("problems", [])
    ]
    return Checked(valid=bool(answer["valid"]), problems=problems, tree=_plain(tree))


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
    return _spaced(text, changed)


def _spaced(text: str, changed: str) -> str:
    """Return a changed text with an empty line before each table that is new, or behind one."""
    feeds = text.count("\n")
    empty = "\r" if feeds and text.count("\r\n") == feeds else ""
    if empty:
        changed = _LONE_FEED.sub("\r\n", changed)  # new lines end as the others do
    # A line feed alone ends a line of TOML; splitlines() splits at other characters, too.
    old, lines = text.split("\n"), changed.split("\n")
    changes = _changes(old, lines)
    if changes is None:
        return changed
    _put_before_comments(old, lines, changes)
    changes = _changes(old, lines) or []
    equal = [range(begin, end) for tag, _, _, begin, end in changes if tag == "equal"]
    kept = set(itertools.chain.from_iterable(equal))
    kept.add(len(lines) - 1)  # behind the last line feed
    spaced: list[str] = []
    for number, line in enumerate(lines):
        if _HEADING.fullmatch(line):
            begin = _begin_of_comments(lines, number)
            new = number not in kept or begin - 1 not in kept
            if new and begin > 0 and lines[begin - 1].strip():
                spaced.insert(len(spaced) - (number - begin), empty)
        if line.strip() or number in kept or (spaced and spaced[-1].strip()):
            spaced.append(line)
    found = "\n".join(spaced)
    # A line of a text over several lines may look like a table's.
    try:
        same = tomllib.loads(found) == tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        return changed
    return found if same else changed


def _changes(old: list[str], lines: list[str]) -> list[tuple[str, int, int, int, int]] | None:
    """Return how old lines became others, as difflib does; None if too many of them changed."""
    least = min(len(old), len(lines))
    # The end comes first: a new table may begin as the one behind it does.
    tail = next((place for place in range(least) if old[-1 - place] != lines[-1 - place]), least)
    most = least - tail
    head = next((place for place in range(most) if old[place] != lines[place]), most)
    old_end, end = len(old) - tail, len(lines) - tail
    if max(old_end, end) - head > MOST_CHANGED_LINES:
        return None
    middle = difflib.SequenceMatcher(None, old[head:old_end], lines[head:end], autojunk=False)
    return [
        ("equal", 0, head, 0, head),
        *(
            (tag, head + since, head + until, head + begin, head + finish)
            for tag, since, until, begin, finish in middle.get_opcodes()
        ),
        ("equal", old_end, len(old), end, len(lines)),
    ]


def _put_before_comments(
    old: list[str], lines: list[str], changes: list[tuple[str, int, int, int, int]]
) -> None:
    """Move new tables that stand between a table and its comments before the comments."""
    for _, place, _, begin, end in [one for one in changes if one[0] == "insert"]:
        if place == len(old) or not _HEADING.fullmatch(old[place]):
            continue
        comments = _begin_of_comments(lines, begin)
        lines[comments:end] = lines[begin:end] + lines[comments:begin]


def _begin_of_comments(lines: list[str], number: int) -> int:
    """Return the number of the first of the comments that stand right before a line."""
    while number > 0 and lines[number - 1].lstrip().startswith("#"):
        number -= 1
    return number


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
