# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Errors of the validator as problems of a file, in the words of these files."""

from __future__ import annotations

import json
import re
import types
from typing import TYPE_CHECKING, Any, get_args

from airpath.experiment.keys import NAME_PATTERN, Table
from airpath.experiment.model import Workload
from airpath.experiment.positions import line_of
from airpath.experiment.problem import Problem
from airpath.nearest import nearest

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from airpath.experiment.positions import Path as KeyPath


def problems_of(
    error: ValidationError, file: str, lines: dict[KeyPath, int], base: KeyPath, root: type[Table]
) -> list[Problem]:
    """Return what the validator says of a table of a file.

    Args:
        error: the validator's.
        file: its name.
        lines: the line of each key.
        base: the table's path in the file.
        root: the table's class.

    """
    found: dict[tuple[int | None, str], Problem] = {}
    placed = [(*_key_of(one["loc"], base, root), one) for one in error.errors()]
    # Of a number or a text that was a text, that it is no number says nothing.
    told = {whole for whole, _, one in placed if one["type"] == "value_error"}
    # A value that is neither text nor number nor truth value has an error of each.
    text, truth = (
        {whole for whole, _, one in placed if one["type"] == kind}
        for kind in ("string_type", "bool_type")
    )
    for whole, holders, one in placed:
        if whole in told and one["type"].endswith(("_type", "_parsing")):
            continue
        shown = ".".join(str(part) for part in whole)
        key = str(whole[-1]) if whole else ""
        if whole in text & truth and one["type"] in _OF_SCALARS:
            what = f"{shown}: {_no_scalar(one['input'])}"
        elif one["type"] == "extra_forbidden":
            known = list(dict.fromkeys(k for t in holders for k in t.model_fields))
            what = f"{shown}: unknown key{nearest(key, known)}"
        elif one["type"] == "missing":
            what = f"{shown}: must be given"
        elif one["type"] == "union_tag_invalid":
            tags = [_tag(table) for table in _tables_of_programs()]
            given = one["input"].get("template") if isinstance(one["input"], dict) else ""
            templates = [tag for tag in tags if tag != "program"]
            what = f"{shown}: there is no template `{given}`{nearest(str(given), templates)}"
        elif one["type"] == "literal_error":
            known = re.findall(r"'([^']*)'", str(one.get("ctx", {}).get("expected", "")))
            given = str(one["input"])
            what = f"{shown}: `{given}` is none of the values{nearest(given, known)}"
        elif one["type"] == "string_pattern_mismatch" and one["ctx"]["pattern"] == NAME_PATTERN:
            what = f"{shown}: a name has letters, digits and . _ + - only, and begins with neither"
        else:
            what = f"{shown}: {plain(one)}"
        problem = Problem(file, line_of(lines, whole), what, whole)
        found.setdefault((problem.line, what), problem)
    return list(found.values())


_OF_SCALARS = ("string_type", "int_type", "float_type", "bool_type")


def _no_scalar(value: object) -> str:
    """Say what to write instead of a value that is neither text nor number nor truth value."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {json.dumps(of)}" for key, of in value.items())
        return f"a table is written as text here: '{{ {inner} }}'"
    return "must be a text, a number, or true or false"


_PLAIN = {
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "string_too_long": "must have {max_length} characters or fewer",
    "string_pattern_mismatch": "`{given}` does not match {pattern}",
}
"""The validator's messages in the words of these files."""


def plain(error: ErrorDetails) -> str:
    """Return what a validator's error says, in plain words."""
    words = _PLAIN.get(error["type"])
    if words is None:
        return error["msg"].removeprefix("Value error, ")
    return words.format(given=error["input"], **error.get("ctx", {}))


def _key_of(
    loc: tuple[int | str, ...], base: KeyPath, root: type[Table]
) -> tuple[KeyPath, list[type[Table]]]:
    """Return where an error stands in the file, and the tables that could hold its key."""
    path, holders = _place(loc, root)
    whole: KeyPath = (*base, *path)
    # A union of simple types adds its members' names behind the key.
    members = ("list[", "str", "int", "float", "bool", "function-after[")
    while whole and isinstance(whole[-1], str) and whole[-1].startswith(members):
        whole = whole[:-1]
    return whole, holders


def _place(location: tuple[int | str, ...], root: type[Table]) -> tuple[KeyPath, list[type[Table]]]:
    """Follow a validator's location: the key's path in the file, and the table that holds it."""
    path: KeyPath = ()
    holders: list[type[Table]] = [root]
    inner = holders
    for step in location:
        if isinstance(step, str):
            tagged = [table for table in inner if _tag(table) == step]
            if path and path[-2:-1] == ("programs",) and isinstance(path[-1], int) and tagged:
                inner = tagged
                continue
            holders = inner
            fields = [t.model_fields[step] for t in inner if step in t.model_fields]
            if fields:
                inner = [table for f in fields for table in _tables(f.annotation)]
                if any(f.annotation in (str, int) for f in fields):
                    inner = []
        path = (*path, step)
    return path, holders


def _tables(annotation: Any) -> list[type[Table]]:
    """Return the tables that an annotation speaks of."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, Table) else []
    return [table for inner in get_args(annotation) for table in _tables(inner)]


def _tag(table: type[Table]) -> str:
    template = table.model_fields.get("template")
    return str(get_args(template.annotation)[0]) if template else "program"


def _tables_of_programs() -> list[type[Table]]:
    return _tables(Workload.model_fields["programs"].annotation)
