# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of keys in Markdown, made from a JSON Schema.

A page holds a pair of marks for each table, ``<!-- keys: NAME -->`` and ``<!-- end of keys -->``,
and ``renewed`` writes the table of the definition NAME between them. Keys behind the name choose
and order the rows, ``…`` stands for all others, and ``-key`` leaves one out.
``<!-- types: NAME -->`` lists the variants of a tagged union, and ``<!-- keys of types: NAME -->``
the keys of all its variants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Node = Mapping[str, Any]

MARKED = re.compile(
    r"<!-- (keys|types|keys of types): ([^>]*?) -->\n.*?<!-- end of keys -->", re.DOTALL
)
HEAD = ("key", "value", "default", "meaning")

REST = "…"


class UnknownNameError(LookupError):
    """A page asks for a definition or key that the schema does not have."""


@dataclass(frozen=True)
class Words:
    """Words for values whose meaning a schema cannot express."""

    definitions: Mapping[str, str] = field(default_factory=dict)
    """By the name of a definition, such as a quantity with its unit."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """By the name of a key, such as ``file``."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Defaults of keys that may be left out, by ``Definition.key``."""


@dataclass(frozen=True)
class SchemaTables:
    """Tables of the definitions of one schema; the name ``.`` is the schema itself."""

    schema: Node
    words: Words = Words()

    def keys(self, name: str, chosen: Sequence[str] = ()) -> str:
        """Return the table of an object's keys.

        Raises:
            UnknownNameError: the schema has no such definition or key.

        """
        return _table(HEAD, self._rows(name, self._definition(name), chosen))

    def types(self, name: str) -> str:
        """Return the table of a tagged union's variants.

        Raises:
            UnknownNameError: the schema has no such definition.

        """
        rows = ((f"`{tag}`", _text(variant)) for tag, variant in _variants(self._definition(name)))
        return _table(("`type`", "meaning"), rows)

    def keys_of_types(self, name: str, chosen: Sequence[str] = ()) -> str:
        """Return one table of the keys of a tagged union's variants.

        Raises:
            UnknownNameError: the schema has no such definition.

        """
        rows: list[Sequence[str]] = []
        for tag, variant in _variants(self._definition(name)):
            inner = variant["$ref"].rpartition("/")[2]
            known = self._definition(inner).get("properties", {})
            fitting = [key for key in chosen if key.removeprefix("-") in known]
            own = list(self._rows(inner, self._definition(inner), fitting))
            rows += ((f"`{tag}`" if first else "", *row) for row, first in _with_first(own))
        return _table(("`type`", *HEAD), rows)

    def renewed(self, page: str) -> str:
        """Return a page with every table between marks written anew.

        Raises:
            UnknownNameError: a mark names a definition or key that the schema does not have.

        """
        makers = {"keys": self.keys, "keys of types": self.keys_of_types}

        def table(match: re.Match[str]) -> str:
            name, *chosen = match[2].split()
            made = self.types(name) if match[1] == "types" else makers[match[1]](name, chosen)
            return f"<!-- {match[1]}: {match[2]} -->\n\n{made}\n<!-- end of keys -->"

        return MARKED.sub(table, page)

    def _definition(self, name: str) -> Node:
        if name == ".":
            return self.schema
        try:
            found: Node = self.schema["$defs"][name]
        except KeyError as error:
            message = f"the schema has no definition {name}"
            raise UnknownNameError(message) from error
        return found

    def _rows(self, name: str, node: Node, chosen: Sequence[str]) -> Iterator[Sequence[str]]:
        properties: Node = node.get("properties", {})
        needed = node.get("required", [])
        for key in _order(name, list(properties), needed, chosen):
            it = properties[key]
            if key in needed:
                default = "needed"
            elif "default" in it:
                default = f"`{self._default(it)}`"
            else:
                default = self.words.absent.get(f"{name.lstrip('.')}.{key}", "none")
            yield f"`{key}`", self._value(key, it), default, self._meaning(it)

    def _value(self, key: str, node: Node) -> str:
        """Return what may be written for a key."""
        return self.words.keys.get(key) or self._kind(node)

    def _kind(self, node: Node) -> str:
        if (reference := node.get("$ref")) is not None:
            name = reference.rpartition("/")[2]
            return self.words.definitions.get(name) or self._kind(self._definition(name))
        if choices := _constants(node):
            return ", ".join(f"`{_toml(choice['const'])}`" for choice in choices)
        for alternatives in (node.get("anyOf"), node.get("oneOf")):
            kinds = [self._kind(one) for one in _present(alternatives or [])]
            if kinds:
                return " or ".join(dict.fromkeys(kinds))
        return self._plain(node)

    def _plain(self, node: Node) -> str:
        match node.get("type"):
            case "boolean":
                return "`true`, `false`"
            case "array":
                return f"list of {self._kind(node.get('items', {}))}"
            case "integer" | "number" as kind:
                return _number(node, whole=kind == "integer")
            case "string":
                return "text"
            case _:
                return "table"

    def _meaning(self, node: Node) -> str:
        """Return a key's description, and those of the words that it may have."""
        target = node
        for one in _present(node.get("anyOf", [])):
            target = one
        if (reference := target.get("$ref")) is not None:
            target = self._definition(reference.rpartition("/")[2])
        told = [
            f"`{_toml(choice['const'])}`: {_text(choice).rstrip('.')}"
            for choice in _constants(target)
            if choice.get("description")
        ]
        text = _text(node)
        return f"{text} {'; '.join(told)}." if told else text

    def _default(self, node: Node) -> str:
        value = node["default"]
        if isinstance(value, Mapping) and "$ref" in node:
            target = self._definition(node["$ref"].rpartition("/")[2])
            value = {
                key: one for key, one in value.items() if one != self._inner(target, key, value)
            }
        return _toml(value)

    def _inner(self, target: Node, key: str, value: Node) -> object:
        """Return the default of a key within a table, or something unequal to any value."""
        chosen = [one for tag, one in _variants(target) if tag == value.get("type")]
        named = [self._definition(one["$ref"].rpartition("/")[2]) for one in chosen]
        for table in [target, *named]:
            inner = table.get("properties", {}).get(key, {})
            if "default" in inner:
                return inner["default"]
        return _toml


def _variants(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the variants of a tagged union with their tags."""
    for variant in node.get("oneOf", []):
        tag = variant.get("properties", {}).get("type", {}).get("const")
        if tag is not None:
            yield tag, variant


def _order(name: str, known: list[str], needed: list[str], chosen: Sequence[str]) -> list[str]:
    """Return which keys a table has: those chosen, or all without those left out."""
    without = {key[1:] for key in chosen if key.startswith("-")}
    named = [key for key in chosen if not key.startswith("-") and key != REST]
    if unknown := (without | set(named)) - set(known):
        message = f"{name} has no key {', '.join(sorted(unknown))}"
        raise UnknownNameError(message)
    if named and REST not in chosen:
        return named
    others = [*needed, *(key for key in known if key not in needed)]
    return [*named, *(key for key in others if key not in without and key not in named)]


def _present(alternatives: Iterable[Node]) -> list[Node]:
    """Return the alternatives that say something: none of them stands for absence."""
    return [
        one
        for one in alternatives
        if one.get("type") != "null" and one.get("const") != "none" and "not" not in one
    ]


def _constants(node: Node) -> list[Node]:
    alternatives = node.get("oneOf", [])
    if alternatives and all("const" in one for one in alternatives):
        return list(alternatives)
    if "enum" in node:
        return [{"const": value} for value in node["enum"]]
    return []


def _number(node: Node, *, whole: bool) -> str:
    least, most = node.get("minimum"), node.get("maximum")
    kind = "whole number" if whole else "number"
    if least is not None and most is not None:
        return f"{least} … {most}"
    if least is not None and (least or not whole):
        return f"{least} or more"
    above = node.get("exclusiveMinimum")
    return f"{kind} above {above}" if above is not None else kind


def _text(node: Node) -> str:
    return " ".join(str(node.get("description", "")).split())


def _toml(value: object) -> str:
    """Return a value as a scenario or experiment would have it."""
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: key != "type")
        return (
            "{ " + ", ".join(f"{key} = {_toml(value[key])}" for key in keys) + " }"
            if keys
            else "{}"
        )
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _with_first(rows: Sequence[Sequence[str]]) -> Iterator[tuple[Sequence[str], bool]]:
    for number, row in enumerate(rows):
        yield row, number == 0


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    lines += [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([*lines, ""])
