# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Networks between the ends: the parameters of each, and their changes by states."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.report.page import Section, fill
from airpath.report.units import NOTHING

if TYPE_CHECKING:
    from airpath.report.entry import Entry
    from airpath.report.material import Material

MOST_VALUES = 4
"""Values of a swept parameter that are named."""

MOST_NETWORKS = 8

_ABOUT = ("name", "description", "source")
"""Keys of a scenario that say nothing of the link."""


@dataclass(frozen=True)
class Network:
    """The parameters of one network."""

    name: str
    states: list[str]
    """Names and times of its states after the first."""
    rows: list[tuple[str, str, list[str]]]
    """Parameter, value at the beginning, and values by state, "" where it stays."""


def build(material: Material) -> Section | None:
    """Return a table for each network of the page's experiments; nothing without any."""
    groups: dict[str, list[Entry]] = {}
    for entry in material.entries:
        if name := entry.about.get("network"):
            groups.setdefault(str(name), []).append(entry)
    found = {name: _network(name, entries) for name, entries in groups.items()}
    networks = [network for network in found.values() if network is not None]
    if not networks:
        return None
    body = fill(
        "networks",
        networks=networks[:MOST_NETWORKS],
        left_out=max(len(networks) - MOST_NETWORKS, 0),
    )
    return Section("networks", "Networks", body)


def _network(name: str, entries: list[Entry]) -> Network | None:
    texts = dict.fromkeys(str(entry.run.manifest.get("scenario_toml", "")) for entry in entries)
    scenarios = []
    for text in texts:
        try:
            scenario = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if scenario:
            scenarios.append(scenario)
    if not scenarios:
        return None
    states = dict.fromkeys(title for scenario in scenarios for title, _ in state_changes(scenario))
    begin = [parameters(scenario) for scenario in scenarios]
    changes = [dict(state_changes(scenario)) for scenario in scenarios]
    keys = dict.fromkeys(key for one in begin for key in one)
    for of in changes:
        keys |= dict.fromkeys(key for one in of.values() for key in one)
    rows = [
        (
            key,
            _joined([one.get(key) for one in begin]) or NOTHING,
            [_joined([of.get(state, {}).get(key) for of in changes]) for state in states],
        )
        for key in keys
    ]
    return Network(name, list(states), rows)


def _joined(values: list[Any]) -> str:
    """Return the values that runs have; several where it was swept."""
    texts = list(dict.fromkeys(_text(value) for value in values if value is not None))
    more = len(texts) - MOST_VALUES
    return "; ".join(texts[:MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    return str(value)


def parameters(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a scenario by the names that ``--set`` takes."""
    found: dict[str, Any] = {}
    for key, value in scenario.items():
        if key in (*_ABOUT, "states"):
            continue
        if key == "hops":
            for number, hop in enumerate(value):
                inner = {part: one for part, one in hop.items() if part != "name"}
                _flatten(str(hop.get("name", number)), inner, found)
        else:
            _flatten(key, value, found)
    return found


def _flatten(name: str, value: Any, found: dict[str, Any]) -> None:
    """Put a table's values under dotted names, those of lists of tables with their numbers."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{name}.{key}", inner, found)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, inner in enumerate(value):
            _flatten(f"{name}.{number}", inner, found)
    else:
        found[name] = value


def state_changes(scenario: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the states: a title that tells name and time, and the parameters that each sets."""
    found = []
    for number, state in enumerate(scenario.get("states") or []):
        name = str(state.get("name", number))
        when = [
            f"from {state['at']}" if "at" in state else "",
            f"for {_when(state['duration'])}" if "duration" in state else "",
        ]
        title = " ".join([name, *(word for word in when if word)])
        found.append((title, dict(state.get("set") or {})))
    return found


def _when(duration: Any) -> str:
    """Return how long a state lasts; one from a distribution by its name."""
    return str(duration.get("type", "a time")) if isinstance(duration, dict) else str(duration)
