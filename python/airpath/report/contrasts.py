# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Comparisons that an experiment asks for: by its sweeps, workloads, networks and sets.

They follow from the plan of the experiment alone, never from what came out, so that the number of
tests is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.plots import sweeps
from airpath.report.choice import evenly

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Parameters = Mapping[str, Mapping[str, Any]]
    """Of each set, what distinguishes it from the others."""

MOST_LEVELS = 4
"""Values of a parameter that are compared with its first one: evenly chosen, with the last."""

SET = "set"
CELL = ""
"""Factor of cells that differ in several things, and of sets without an experiment."""

_LAST = ("workload", "network")
"""Factors that come after what was swept, in this order."""


@dataclass(frozen=True)
class Stratum:
    """Two sets that differ in the factor alone."""

    name: str
    """Values of all else that varies; empty if nothing does."""
    first: str
    second: str


@dataclass(frozen=True)
class Contrast:
    """Comparison of two values of one factor, all else being equal."""

    group: str
    """Set of the experiment, where the page has several."""
    factor: str
    """Parameter, ``network``, ``workload``, ``SET`` or ``CELL``."""
    first: str
    second: str
    others: tuple[str, ...]
    """Factors that tell the strata apart."""
    strata: tuple[Stratum, ...]


def contrasts(names: Sequence[str], parameters: Parameters) -> list[Contrast]:
    """Return the comparisons, those of what was swept first, each once.

    Args:
        names: the sets that can be compared, in order.
        parameters: of each set of an experiment, what distinguishes it from others.

    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(str(parameters.get(name, {}).get(SET, "")), []).append(name)
    found = []
    for group, members in groups.items():
        title = group if len(groups) > 1 else ""
        if group:
            found += _of_group(title, {name: parameters[name] for name in members})
        else:
            found += _with_first(title, members, CELL)
    return found + _between(groups, parameters)


def factors(parameters: Parameters) -> list[str]:
    """Return what takes several values: what was swept, then workloads, then networks."""
    varying = list(sweeps.swept(parameters))
    return sorted(varying, key=lambda name: _LAST.index(name) if name in _LAST else -1)


def _of_group(title: str, parameters: Parameters) -> list[Contrast]:
    varying = factors(parameters)
    levels = sweeps.swept(parameters)
    found: list[Contrast] = []
    for factor in varying:
        others = tuple(name for name in varying if name != factor)
        places: dict[tuple[str, ...], dict[str, str]] = {}
        for name, of in parameters.items():
            rest = tuple(str(of.get(key, sweeps.NOT_SAID)) for key in others)
            places.setdefault(rest, {})[str(of.get(factor, sweeps.NOT_SAID))] = name
        first, *further = levels[factor]
        for second in _chosen(further):
            strata = tuple(
                Stratum(_named(others, rest), by_level[first], by_level[second])
                for rest, by_level in places.items()
                if first in by_level and second in by_level
            )
            if strata:
                found.append(Contrast(title, factor, first, second, others, strata))
    compared = {name for one in found for each in one.strata for name in (each.first, each.second)}
    left = [name for name in parameters if name not in compared]
    return found + (_with_first(title, left, CELL) if len(left) > 1 else [])


def _with_first(title: str, names: Sequence[str], factor: str) -> list[Contrast]:
    """Compare sets that differ in more than one thing, or in what nobody told, with the first."""
    return [
        Contrast(title, factor, names[0], second, (), (Stratum("", names[0], second),))
        for second in _chosen(names[1:])
    ]


def _between(groups: Mapping[str, Sequence[str]], parameters: Parameters) -> list[Contrast]:
    """Compare sets of an experiment: cells that are alike, or sets that are one cell each."""
    named = {group: names for group, names in groups.items() if group}
    if len(named) < 2:
        return []
    first, *further = named
    found = []
    for second in _chosen(further):
        pairs = [
            Stratum(_rest(parameters[one]), one, other)
            for one in named[first]
            for other in named[second]
            if _alike(parameters[one], parameters[other])
        ]
        if not pairs and len(named[first]) == len(named[second]) == 1:
            pairs = [Stratum("", named[first][0], named[second][0])]
        if pairs:
            varies = ("cell",) if len(pairs) > 1 else ()
            found.append(Contrast("", SET, first, second, varies, tuple(pairs)))
    return found


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(key) == other.get(key) for key in one.keys() | other.keys() if key != SET)


def _rest(of: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for key, value in of.items() if key != SET)


def _named(keys: Iterable[str], values: Iterable[str]) -> str:
    """Return the values by which a stratum is known, with the names of those that need one."""
    both = list(zip(keys, values, strict=True))
    if len(both) == 1:
        return sweeps.value_text(*both[0])
    return ", ".join(value if key in _LAST else level(key, value) for key, value in both)


def level(factor: str, value: str) -> str:
    """Return a value with the name of what it is of: "queue limit 16 packets"."""
    if factor == CELL:
        return value
    return f"{sweeps.short(factor).replace('_', ' ')} {sweeps.value_text(factor, value)}"


def _chosen(levels: Sequence[str]) -> list[str]:
    """Return the values that are compared with the one before them, evenly, with the last."""
    return [levels[place - 1] for place in evenly(range(len(levels) + 1), MOST_LEVELS + 1)[1:]]
