# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Circles in a graph of modules, for the checks that allow none."""

from __future__ import annotations

from collections.abc import Mapping, Set

Graph = Mapping[str, Set[str]]
"""For each module those that it names."""


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of modules each of which reaches all others of its group.

    Strongly connected components of more than one module, or of one that names itself; sorted.
    """
    reach = {module: _reached(graph, module) for module in graph}
    groups = {
        tuple(sorted(other for other in reach[module] if module in reach.get(other, ())))
        for module in graph
        if module in reach[module]
    }
    return sorted(list(group) for group in groups)


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += graph.get(module, ())
    return found


def shortest(graph: Graph, group: list[str]) -> list[str]:
    """Return a shortest way round a group, its first module named again at the end."""
    ways = [way for module in group if (way := _way_round(graph, module, set(group)))]
    return min(ways, key=len)


def _way_round(graph: Graph, start: str, allowed: set[str]) -> list[str]:
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:  # grows while it is walked: breadth first
        for module in sorted(graph[way[-1]] & allowed):
            if module == start:
                return [*way, start]
            if module not in seen:
                seen.add(module)
                ways.append([*way, module])
    return []


def tell(graph: Graph) -> int:
    """Print every circle; return the exit status of a check that allows none."""
    found = circles(graph)
    for group in found:
        print(f"{len(group)} modules import one another: {', '.join(group)}")
        print(f"  for example {' -> '.join(shortest(graph, group))}")
    modules = sum(map(len, found))
    print(f"{len(graph)} modules, {len(found)} circles, {modules} modules in them")
    return 1 if found else 0
