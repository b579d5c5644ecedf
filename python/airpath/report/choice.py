# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Choice of the sets and runs to draw, where a page has too many for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from airpath.natural import natural_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.report.entry import Entry

Sets: TypeAlias = "Mapping[str, list[Entry]]"
"""The runs of each set."""

Item = TypeVar("Item")

MOST_SETS = 8
"""Sets in one picture; beyond them colours repeat and boxes grow too many to read."""

MOST_CURVES = 60
"""Runs whose delays are drawn, one curve each."""


def groups(sets: Sets) -> dict[str, dict[str, list[Entry]]]:
    """Return what belongs into one picture: the cells of each set of an experiment, or all sets."""
    found: dict[str, dict[str, list[Entry]]] = {}
    for name, entries in sets.items():
        about = entries[0].about
        group = str(about["set_name"]) if about else ""
        found.setdefault(group, {})[name] = entries
    return found


def first_of_sets(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Return at most so many runs, in their order: the first of each set before second ones."""
    turns: dict[str, int] = {}
    by_turn: dict[int, list[Entry]] = {}
    for entry in entries:
        turns[entry.set_name] = turns.get(entry.set_name, 0) + 1
        by_turn.setdefault(turns[entry.set_name], []).append(entry)
    chosen: list[Entry] = []
    for turn in by_turn.values():
        if len(chosen) < most:
            chosen += evenly(turn, most - len(chosen))
    return sorted(chosen, key=lambda entry: entry.number)


def evenly(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most so many, evenly chosen, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / max(most - 1, 1))] for place in range(most)]


def side_by_side(names: Sequence[str], parameters: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Choose the sets of one picture; of too many, those that differ from one in one parameter."""
    ordered = natural_order(names)
    if len(ordered) <= MOST_SETS:
        return ordered
    first = parameters.get(ordered[0], {})
    alike: dict[str, list[str]] = {}
    for name in ordered[1:]:
        of = parameters.get(name, {})
        differing = [key for key in first.keys() | of.keys() if first.get(key) != of.get(key)]
        if len(differing) == 1:
            alike.setdefault(differing[0], []).append(name)
    longest = max(alike.values(), key=len, default=[])
    return evenly([ordered[0], *longest] if longest else ordered, MOST_SETS)


def side_by_side_sets(sets: Sets, parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the sets that are drawn side by side, with the longest duration among them, in ns.

    Durations are those of the runs' own results; 0 where none has any.
    """
    found: dict[str, int] = {}
    for members in groups(sets).values():
        many = [name for name, entries in members.items() if len(entries) > 1]
        shown = side_by_side(many, parameters)
        ends = [
            end
            for name in shown
            for entry in members[name]
            if isinstance(end := entry.run.results.get("duration_ns"), int)
        ]
        found |= dict.fromkeys(shown, max(ends, default=0))
    return found
