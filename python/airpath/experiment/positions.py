# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Positions of keys in a TOML file.

tomllib keeps no positions, and neither does any of the usual readers; tree-sitter's grammar does.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import tree_sitter_toml
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from tree_sitter import Node

Path = tuple[str | int, ...]


def key_lines(text: str) -> dict[Path, int]:
    """Return the line, counted from 1, of every key, table and list item of valid TOML."""
    parser = Parser(Language(tree_sitter_toml.language()))
    lines: dict[Path, int] = {(): 1}
    lengths: dict[Path, int] = {}
    for child in parser.parse(text.encode()).root_node.named_children:
        if child.type == "pair":
            _pair(child, (), lines)
        elif child.type in ("table", "table_array_element"):
            header, *pairs = [node for node in child.named_children if node.type != "comment"]
            keys = _keys(header)
            # A list of tables on the way stands for its last one.
            path: Path = ()
            for key in keys[:-1]:
                path = (*path, key)
                if path in lengths:
                    path = (*path, lengths[path] - 1)
            path = (*path, keys[-1])
            if child.type == "table_array_element":
                count = lengths[path] = lengths.get(path, 0) + 1
                lines.setdefault(path, _line(child))
                path = (*path, count - 1)
            lines.setdefault(path, _line(child))
            for pair in pairs:
                _pair(pair, path, lines)
    return lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Return the line of a key, or of the nearest of what holds it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _keys(node: Node) -> list[str]:
    if node.type == "dotted_key":
        return [key for child in node.named_children for key in _keys(child)]
    text = (node.text or b"").decode()
    if node.type == "quoted_key":
        return [str(tomllib.loads(f"x = {text}")["x"])]
    return [text]


def _pair(node: Node, base: Path, lines: dict[Path, int]) -> None:
    key, value = [child for child in node.named_children if child.type != "comment"][:2]
    path = base
    for part in _keys(key):
        path = (*path, part)
        lines.setdefault(path, _line(node))
    _value(value, path, lines)


def _value(node: Node, path: Path, lines: dict[Path, int]) -> None:
    inner = [child for child in node.named_children if child.type != "comment"]
    if node.type == "inline_table":
        for pair in inner:
            _pair(pair, path, lines)
    elif node.type == "array":
        for index, item in enumerate(inner):
            lines.setdefault((*path, index), _line(item))
            _value(item, (*path, index), lines)
