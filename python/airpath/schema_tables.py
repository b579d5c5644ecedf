# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of keys in Markdown, made from a JSON Schema.

A page holds a pair of marks for each table, ``<!-- keys: NAME -->`` and ``<!-- end of keys -->``,
and ``renewed`` writes the table of the definition NAME between them. Keys behind the name choose
and order the rows, ``…`` stands for all others, and ``-key`` leaves one out.
``<!-- types: NAME -->`` lists the variants of a tagged union, and ``<!-- keys of types: NAME -->``
the keys of all its variants. A union that has no name of its own is called by the key whose value
it is: ``DEFINITION.KEY``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Node = Mapping[str, Any]

MARKED = re.compile(
    r"<!-- (keys|types|keys of types): ([^>]*?) -->\n.*?<!-- end of keys -->", re.DOTALL
)
HEAD = ("key", "value", "default", "meaning")

REST = "…"
TAGS = ("type", "template")
"""Keys whose value names the variant of a union."""


class UnknownNameError(LookupError):
    """A page asks for a definition or key that the schema does not have."""


@dataclass(frozen=True)
class Words:
    """Words for values whose meaning a schema cannot express."""

    definitions: Mapping[str, str] = field(default_factory=dict)
    """By the name of a definition, such as a quantity with its unit."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """By the name of a key, such as ``file``, or by ``Definition.key``."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Defaults of keys that may be left out, by ``Definition.key``; they precede the schema's."""


class Variant(NamedTuple):
    """A variant of a tagged union."""

    tag: str
    name: str
    node: Node
    """As the union has it."""
    keys: Node
    """The definition to which it refers; empty if it refers to none."""


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
        variants = list(self._variants(self._definition(name)))
        head = variants[0].tag if variants else TAGS[0]
        rows = ((f"`{one.name}`", _text(one.node) or _text(one.keys)) for one in variants)
        return _table((f"`{head}`", "meaning"), rows)

    def keys_of_types(self, name: str, chosen: Sequence[str] = ()) -> str:
        """Return one table of the keys of a tagged union's variants.

        Raises:
            UnknownNameError: the schema has no such definition.

        """
        rows: list[Sequence[str]] = []
        for variant in self._variants(self._definition(name)):
            # A variant of few keys may have them without a definition of its own.
            inner = variant.node.get("$ref", name).rpartition("/")[2]
            keys = variant.keys or variant.node
            known = keys.get("properties", {})
            fitting = [key for key in chosen if key.removeprefix("-") in known]
            fitting += [f"-{variant.tag}"] if variant.tag in known else []
            own = list(self._rows(inner, keys, fitting))
            shown = f"`{variant.name}`"
            rows += ((shown if first else "", *row) for row, first in _with_first(own))
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
        definition, _, key = name.partition(".")
        try:
            found: Node = self.schema["$defs"][definition]
            if key:
                found = found["properties"][key]
                found = found.get("items", found)
        except KeyError as error:
            message = f"the schema has no definition {name}"
            raise UnknownNameError(message) from error
        return found

    def _variants(self, node: Node) -> Iterator[Variant]:
        """Yield the variants of a union that have a tag."""
        for variant in node.get("oneOf", []):
            target: Node = {}
            if (reference := variant.get("$ref")) is not None:
                target = self._definition(reference.rpartition("/")[2])
            known = {**target.get("properties", {}), **variant.get("properties", {})}
            for tag in TAGS:
                if (name := known.get(tag, {}).get("const")) is not None:
                    yield Variant(tag, name, variant, target)

    def _rows(self, name: str, node: Node, chosen: Sequence[str]) -> Iterator[Sequence[str]]:
        properties: Node = node.get("properties", {})
        needed = node.get("required", [])
        for key in _order(name, list(properties), needed, chosen):
            it = properties[key]
            place = f"{name.lstrip('.')}.{key}"
            if key in needed:
                default = "needed"
            else:
                default = self.words.absent.get(place) or self._default(it)
            yield f"`{key}`", self._value(place, it), default, self._meaning(it)

    def _value(self, place: str, node: Node) -> str:
        """Return the words for the values of a key, by its ``Definition.key``."""
        known = self.words.keys
        return known.get(place) or known.get(place.rpartition(".")[2]) or self._kind(node)

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
        value = node.get("default")
        if isinstance(value, Mapping) and "$ref" in node:
            target = self._definition(node["$ref"].rpartition("/")[2])
            value = {
                key: one for key, one in value.items() if one != self._inner(target, key, value)
            }
        empty = value is None or (isinstance(value, str | list | Mapping) and not value)
        return "none" if empty else f"`{_toml(value)}`"

    def _inner(self, target: Node, key: str, value: Node) -> object:
        """Return the default of a key within a table, or something unequal to any value."""
        chosen = [one.keys for one in self._variants(target) if one.name == value.get("type")]
        for table in [target, *chosen]:
            inner = table.get("properties", {}).get(key, {})
            if "default" in inner:
                return inner["default"]
        return _toml


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
    """Return a description as one sentence or more, in Markdown."""
    text = " ".join(str(node.get("description", "")).split()).replace("``", "`")
    return f"{text}." if text and not text.endswith((".", "!", "?")) else text


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
