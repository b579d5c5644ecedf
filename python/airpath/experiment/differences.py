# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sweeps whose cells come to the same: values given twice, parameters that nothing takes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airpath.experiment.expand import Cell


def without_effect(cells: Iterable[tuple[Cell, str]]) -> Iterator[str]:
    """Return what is wrong with the sweep of a set.

    A parameter is idle if cells that differ in it alone are the same, whatever the others are: one
    that some workloads take and others do not has its use.

    Args:
        cells: those of a set, each with what its results depend on, the seed aside.

    """
    cells = list(cells)
    named: dict[tuple[str, ...], str] = {}
    for cell, _ in cells:
        same = (cell.network, cell.workload_name, *_words(cell))
        if same in named:
            yield f"the values of `{named[same]}` are there twice"
            return
        named[same] = cell.name
    for key in dict.fromkeys(key for cell, _ in cells for key in cell.parameters):
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for cell, effect in cells:
            if key in cell.parameters:
                groups[(cell.network, cell.workload_name, *_words(cell, key))].append(effect)
        compared = [effects for effects in groups.values() if len(effects) > 1]
        if compared and all(len(set(effects)) == 1 for effects in compared):
            yield f"the values of `{key}` make no difference: nothing that runs takes them"


def _words(cell: Cell, but: str = "") -> list[str]:
    """Return the values of a cell's parameters, one left out."""
    return [f"{key}={value!r}" for key, value in sorted(cell.parameters.items()) if key != but]
