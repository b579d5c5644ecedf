# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tables of keys made from a JSON Schema."""

from __future__ import annotations

import pytest

from airpath.schema_tables import SchemaTables, UnknownNameError, Words

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


def test_a_page_is_renewed_between_its_marks_alone() -> None:
    page = "Before.\n\n<!-- types: Queue -->\nstale\n<!-- end of keys -->\n\nAfter.\n"
    renewed = TABLES.renewed(page)
    assert "stale" not in renewed
    assert renewed.startswith("Before.\n\n<!-- types: Queue -->\n\n| `type` |")
    assert renewed.endswith("<!-- end of keys -->\n\nAfter.\n")
    assert TABLES.renewed(renewed) == renewed


@pytest.mark.parametrize("mark", ["keys: None", "keys: . none", "keys: . -none", "types: None"])
def test_a_mark_that_names_nothing_is_refused(mark: str) -> None:
    with pytest.raises(UnknownNameError):
        TABLES.renewed(f"<!-- {mark} -->\n<!-- end of keys -->\n")
