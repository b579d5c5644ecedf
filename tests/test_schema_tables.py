# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tables of keys made from a JSON Schema, and those of the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from airpath import experiment_tables, key_tables, scenario_tables
from airpath.schema_tables import MARKED, SchemaTables, UnknownNameError, Words

ROOT = Path(__file__).resolve().parent.parent

SCHEMA = {
    "required": ["name"],
    "properties": {
        "limit": {"$ref": "#/$defs/Limit", "default": "7 packets", "description": "A limit | two."},
        "name": {"type": "string", "description": "A name,\nwrapped."},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "description": "A count."},
        "many": {"type": "array", "items": {"$ref": "#/$defs/Queue"}, "description": "Queues."},
        "queue": {
            "$ref": "#/$defs/Queue",
            "default": {"limit": "1 packet", "type": "tail"},
            "description": "A queue.",
        },
        "order": {
            "anyOf": [{"$ref": "#/$defs/Order"}, {"const": "none"}],
            "description": "An order.",
        },
    },
    "$defs": {
        "Limit": {"type": "string"},
        "Order": {
            "oneOf": [
                {"const": "up", "description": "Ascending."},
                {"const": "down", "description": "Descending."},
            ]
        },
        "Tail": {"properties": {"limit": {"default": "1 packet", "description": "Its limit."}}},
        "Red": {"properties": {"weight": {"type": "number", "default": 0.5, "description": "W."}}},
        "Queue": {
            "oneOf": [
                {
                    "$ref": "#/$defs/Tail",
                    "description": "Drops.",
                    "properties": {"type": {"const": "tail"}},
                },
                {
                    "$ref": "#/$defs/Red",
                    "description": "Marks.",
                    "properties": {"type": {"const": "red"}},
                },
                {"properties": {"limit": {}}},
            ]
        },
    },
}
TABLES = SchemaTables(
    SCHEMA,
    Words(
        definitions={"Limit": "packets", "Queue": "table"},
        keys={"name": "a word"},
        absent={".order": "as written"},
    ),
)


def test_a_row_has_value_default_and_meaning_of_its_key() -> None:
    assert TABLES.keys(".").splitlines() == [
        "| key | value | default | meaning |",
        "|---|---|---|---|",
        "| `name` | a word | needed | A name, wrapped. |",
        '| `limit` | packets | `"7 packets"` | A limit \\| two. |',
        "| `count` | 1 … 9 | none | A count. |",
        "| `many` | list of table | none | Queues. |",
        '| `queue` | table | `{ type = "tail" }` | A queue. |',
        '| `order` | `"up"`, `"down"` | as written | An order. `"up"`: Ascending; `"down"`: '
        "Descending. |",
    ]


def test_keys_are_chosen_ordered_and_left_out() -> None:
    rows = TABLES.keys(".", ["count", "name"]).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == ["count", "name"]
    rows = TABLES.keys(".", ["count", "…", "-many"]).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == ["count", "name", "limit", "queue", "order"]
    rows = TABLES.keys(".", ["-count", "-name"]).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == ["limit", "many", "queue", "order"]


def test_variants_have_their_types_and_keys() -> None:
    assert TABLES.types("Queue").splitlines()[2:] == ["| `tail` | Drops. |", "| `red` | Marks. |"]
    assert TABLES.keys_of_types("Queue").splitlines()[2:] == [
        '| `tail` | `limit` | table | `"1 packet"` | Its limit. |',
        "| `red` | `weight` | number | `0.5` | W. |",
    ]


def test_a_default_may_be_words_or_nothing() -> None:
    schema = {
        "properties": {
            "like": {"type": "string", "default": None, "description": "Absent"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "note": {"type": "string", "default": ""},
            "least": {"type": "integer", "minimum": 1, "default": 0},
            "clock": {"type": "string", "default": "live"},
        }
    }
    tables = SchemaTables(schema, Words(keys={".like": "a name"}, absent={".clock": "the set's"}))
    assert tables.keys(".").splitlines()[2:] == [
        "| `like` | a name | none | Absent. |",
        "| `tags` | list of text | none |  |",
        "| `note` | text | none |  |",
        "| `least` | 1 or more | `0` |  |",
        "| `clock` | text | the set's |  |",
    ]


def test_a_union_within_a_key_has_the_variants_that_its_definitions_name() -> None:
    schema = {
        "$defs": {
            "Work": {
                "properties": {
                    "programs": {
                        "type": "array",
                        "items": {"oneOf": [{"$ref": "#/$defs/Plain"}, {"$ref": "#/$defs/Ping"}]},
                    }
                }
            },
            "Plain": {"properties": {"command": {"type": "string"}}},
            "Ping": {
                "description": "Requests of ``ping``",
                "properties": {"template": {"const": "ping"}},
            },
        }
    }
    assert SchemaTables(schema).types("Work.programs").splitlines() == [
        "| `template` | meaning |",
        "|---|---|",
        "| `ping` | Requests of `ping`. |",
    ]


def test_a_page_is_renewed_between_its_marks_alone() -> None:
    page = "Before.\n\n<!-- types: Queue -->\nstale\n<!-- end of keys -->\n\nAfter.\n"
    renewed = TABLES.renewed(page)
    assert "stale" not in renewed
    assert renewed.startswith("Before.\n\n<!-- types: Queue -->\n\n| `type` |")
    assert renewed.endswith("<!-- end of keys -->\n\nAfter.\n")
    assert TABLES.renewed(renewed) == renewed


@pytest.mark.parametrize(
    "mark", ["keys: None", "keys: . none", "keys: . -none", "types: None", "types: Red.none"]
)
def test_a_mark_that_names_nothing_is_refused(mark: str) -> None:
    with pytest.raises(UnknownNameError):
        TABLES.renewed(f"<!-- {mark} -->\n<!-- end of keys -->\n")


SCENARIO = json.loads((ROOT / "schema/scenario.schema.json").read_text())
EXPERIMENT = json.loads((ROOT / "schema/experiment.schema.json").read_text())


def written(source: ModuleType) -> str:
    """Return the text of all pages with tables of one schema."""
    return "\n".join(page.read_text() for page in source.pages(ROOT))


def test_the_tables_of_keys_are_those_of_the_schemas() -> None:
    filled = [
        (page, made) for page, made in key_tables.pages(ROOT) if MARKED.search(page.read_text())
    ]
    assert len(filled) >= 18
    for page, made in filled:
        text = page.read_text()
        assert text.count("<!-- end of keys -->") == len(MARKED.findall(text)), page.name
        assert text == made.renewed(text), f"{page.name}: run {key_tables.COMMAND}"


def test_every_type_of_a_scenario_has_a_table_of_its_keys() -> None:
    text = written(scenario_tables)
    schema = SCENARIO["$defs"]
    roles = ("QueueConfig", "VaryingConfig", "ErrorsConfig", "EntityConfig", "MediumConfig")
    for union in (*roles, "Background", "Distribution"):
        assert f"<!-- types: {union} -->" in text
        if f"<!-- keys of types: {union}" in text:
            continue
        named = [one["$ref"].rpartition("/")[2] for one in schema[union]["oneOf"] if "$ref" in one]
        for name in named:
            # A queue that has only a limit needs no table for that.
            if set(schema[name].get("properties", {})) - {"limit"}:
                assert f"<!-- keys: {name} " in text, f"no page has the keys of {name}"


def test_every_key_of_a_scenario_is_in_a_table() -> None:
    """A page may choose keys: together the pages leave none out."""
    told = set(
        re.findall(r"^\|(?: `?\w*`? \|)? `(\w+)` \|", written(scenario_tables), re.MULTILINE)
    )
    objects = [SCENARIO, *SCENARIO["$defs"].values()]
    known = {key for node in objects for key in node.get("properties", {})}
    assert len(known) > 90
    # The tables of a hop's directions and its host are told in words, the parts of a mixture in its
    # row.
    in_words = {"link", "uplink", "downlink", "host", "value", "least", "most", "correlation"}
    assert known - told <= in_words


def keys_told(tables: SchemaTables, name: str, text: str) -> set[str]:
    """Return the keys of a definition that the marks of pages put into tables."""
    marks = re.findall(rf"<!-- keys: {re.escape(name)}((?: \S+)*) -->", text)
    rows = [row for mark in marks for row in tables.keys(name, mark.split()).splitlines()[2:]]
    return {row.split("`")[1] for row in rows}


def test_every_key_of_every_table_of_an_experiment_is_told() -> None:
    text, tables = written(experiment_tables), experiment_tables.of_tree(ROOT)
    objects: dict[str, Any] = {".": EXPERIMENT, **EXPERIMENT["$defs"]}
    # The page on workloads tells the keys that every template has, too.
    every_program = {"name", "start", "time_limit", "environment", "user"}
    assert every_program <= keys_told(tables, "Program", text)
    for name, node in objects.items():
        known = set(node["properties"])
        told = keys_told(tables, name, text)
        if "template" in known:
            told |= {"template", *every_program}
        assert known - told == set(), f"no page has these keys of {name}"


@pytest.mark.parametrize("source", [scenario_tables, experiment_tables])
def test_words_are_of_keys_and_definitions_that_exist(source: ModuleType) -> None:
    schema = source.of_tree(ROOT).schema
    definitions = {"": schema, **schema["$defs"]}
    places = {
        f"{name}.{key}" for name, node in definitions.items() for key in node.get("properties", {})
    }
    keys = {place.rpartition(".")[2] for place in places}
    assert set(source.WORDS.definitions) <= set(definitions)
    assert set(source.WORDS.keys) <= places | keys
    assert set(source.WORDS.absent) <= places


WITHOUT_SOURCE = {
    "AdaptationConfig": {"fixed"},
    "Background": {"cbr", "poisson", "users", "trace"},
    "ErrorsConfig": {"none"},
    "FadingConfig": {"constant", "taps", "recorded"},
    "Medium": {"continuous"},
    "ModesConfig": {"table"},
    "PacketSchedulerConfig": {"first_come"},
    "QueueConfig": {"infinite"},
    "RateControlConfig": {"fixed"},
    "VaryingConfig": {"steps", "trace", "slotted"},
}
"""Models that nobody published: what the scenario or its files say happens."""

MATHEMATICS = {"Distribution", "Distribution2", "FlowControlConfig", "PathLossConfig", "RunLengths"}
"""Choices that are parts of models, or formulas by their names."""


def test_models_name_their_sources_where_they_are_chosen() -> None:
    schema = json.loads((ROOT / "schema/scenario.schema.json").read_text())
    sourced = 0
    for name, definition in schema["$defs"].items():
        if name in MATHEMATICS:
            continue
        kinds = {
            one["properties"]["type"]["const"]: one.get("description", "")
            for one in definition.get("oneOf", [])
            if "const" in one.get("properties", {}).get("type", {})
        }
        without = {kind for kind, text in kinds.items() if "Source: " not in text}
        assert without == WITHOUT_SOURCE.get(name, set()), name
        sourced += len(kinds) - len(without)
    assert sourced >= 60
