# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Plan of an experiment: its cells, checked, each with a digest that tells changes."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.experiment import shown
from airpath.experiment.differences import without_effect
from airpath.experiment.expand import Cell, cells
from airpath.experiment.links import LinkError, check_virtual, resolve_network
from airpath.experiment.loaded import ExperimentError, Loaded
from airpath.experiment.problem import Problem, by_line
from airpath.experiment.programs import missing_programs, unfit
from airpath.experiment.quantities import time_ns
from airpath.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airpath.experiment.model import Workload
    from airpath.experiment.positions import Path as KeyPath


@dataclass(frozen=True)
class PlannedCell:
    """A cell with what identifies it."""

    cell: Cell
    scenario: str
    """Its link, as the engine writes it."""

    digest: str
    """Of everything that its results depend on, the file's own names aside."""

    @property
    def longest_s(self) -> float:
        """Time limit of one replication in real time."""
        return time_ns(self.cell.workload.time_limit) / 1e9


@dataclass(frozen=True)
class Plan:
    """All cells of an experiment, in the file's order."""

    loaded: Loaded
    cells: tuple[PlannedCell, ...]
    missing: tuple[str, ...]
    """Programs that are needed and not installed here."""

    @property
    def words(self) -> set[str]:
        """Words of links and workloads, with the names of hops, users, bearers and programs."""
        texts = {planned.scenario for planned in self.cells}
        texts |= {planned.cell.workload.model_dump_json() for planned in self.cells}
        return {word for text in texts for word in re.findall(r"[\w-]+", text)}

    @property
    def least(self) -> int:
        """Replications at least."""
        return sum(planned.cell.least for planned in self.cells)

    @property
    def most(self) -> int:
        """Replications at most."""
        return sum(planned.cell.most for planned in self.cells)

    def document(self) -> dict[str, Any]:
        """Return the plan as it is kept with the results."""
        return {
            "experiment": self.loaded.experiment.name,
            "cells": [
                {
                    "set": p.cell.set_name,
                    "cell": p.cell.name,
                    "digest": p.digest,
                    "network": p.cell.network,
                    "workload": p.cell.workload_name,
                    "clock": p.cell.clock,
                    "parameters": p.cell.parameters,
                    "first_seed": p.cell.first_seed,
                    "replications": [p.cell.least, p.cell.most],
                    "until": p.cell.until.model_dump() if p.cell.until else None,
                }
                for p in self.cells
            ],
        }


def make_plan(
    loaded: Loaded, only: list[str], progress: Callable[[int, int], None] | None = None
) -> Plan:
    """Expand and check an experiment.

    Args:
        loaded: the experiment.
        only: names of sets; empty for all.
        progress: told how many cells have been checked, of how many.

    Raises:
        ExperimentError: something in it is wrong.

    """
    experiment = loaded.experiment
    known = [one.name for one in experiment.sets]
    for name in only:
        if name not in known:
            raise ExperimentError(
                [Problem(str(loaded.file), 1, f"there is no set `{name}`{nearest(name, known)}")]
            )
    problems: list[Problem] = []
    every: list[tuple[KeyPath, Cell]] = []
    for place, one in loaded.sets():
        try:
            every += [(place, cell) for cell in cells(loaded, one)]
        except ExperimentError as error:
            problems += error.problems
    if not problems:
        # The report is about all sets, whichever run now.
        problems += shown.problems(loaded, [cell for _, cell in every])
    all_cells = [(place, cell) for place, cell in every if not only or cell.set_name in only]
    here = loaded.file.resolve().parent
    scenarios: dict[str, str | None] = {}
    checked: set[str] = set()
    planned: list[PlannedCell] = []
    missing: dict[str, None] = {}
    for done, (of_set, cell) in enumerate(all_cells):
        if progress:
            progress(done, len(all_cells))
        network = experiment.networks[cell.network]
        asked = json.dumps([cell.network, cell.network_parameters, cell.mtu])
        if asked not in scenarios:
            try:
                scenarios[asked] = resolve_network(
                    cell.network, network, cell.network_parameters, cell.mtu, here
                )
            except LinkError as error:
                scenarios[asked] = None
                what = f"set `{cell.set_name}`, network `{cell.network}`: {error}"
                swept = any(key.startswith("network.") for key in cell.parameters)
                path = (*of_set, "sweep") if swept else ("networks", cell.network)
                problems.append(loaded.problem(path, what))
        if cell.clock == "virtual":
            words = _words(cell.workload)
            scenario = scenarios[asked] if _names_user(cell.workload) else ""
            once = f"{' '.join(words)}\n{scenario}"
            if scenario is not None and once not in checked:
                checked.add(once)
                try:
                    check_virtual(words, scenario, here)
                except LinkError as error:
                    what = f"workload `{cell.workload_name}`: {error}"
                    problems.append(loaded.problem(("workloads", cell.workload_name), what))
        else:
            missing.update(dict.fromkeys(missing_programs(cell.workload, here)))
            for what in unfit(cell.workload, cell.clock):
                place = ("workloads", cell.workload_name)
                problems.append(loaded.problem(place, f"workload `{cell.workload_name}`: {what}"))
        scenario = scenarios[asked]
        if scenario is not None:
            planned.append(PlannedCell(cell, scenario, _digest(cell, scenario)))
    if not only:
        problems += _of_no_set(loaded, every, here)
    if not problems:
        effects = [(p.cell, _effect(p.cell, p.scenario)) for p in planned]
        for place, one in loaded.sets():
            for what in without_effect(pair for pair in effects if pair[0].set_name == one.name):
                what = f"set `{one.name}`: sweep: {what}"
                problems.append(loaded.problem((*place, "sweep"), what))
    if problems:
        unique = {str(problem): problem for problem in problems}
        raise ExperimentError(list(unique.values()))
    return Plan(loaded, tuple(planned), tuple(missing))


def _of_no_set(loaded: Loaded, every: list[tuple[KeyPath, Cell]], here: Path) -> list[Problem]:
    """Return what is wrong with networks and workloads that no set has."""
    experiment = loaded.experiment
    found: list[Problem] = []
    for name in experiment.networks.keys() - {cell.network for _, cell in every}:
        network = experiment.networks[name]
        try:
            resolve_network(name, network, network.set, network.mtu, here)
        except LinkError as error:
            found.append(loaded.problem(("networks", name), f"network `{name}`: {error}"))
    for name in experiment.workloads.keys() - {cell.workload_name for _, cell in every}:
        workload = experiment.workloads[name]
        if not workload.virtual or _names_user(workload):
            continue
        try:
            check_virtual(_words(workload), "", here)
        except LinkError as error:
            found.append(loaded.problem(("workloads", name), f"workload `{name}`: {error}"))
    return by_line(found)


def _words(workload: Workload) -> list[str]:
    """Return the options of a workload in virtual time."""
    words = [word for text in workload.virtual for word in ("--workload", text)]
    return words + (["--duration", workload.duration] if workload.duration else [])


def _names_user(workload: Workload) -> bool:
    """Tell whether a workload is that of single users: the scenario decides whether they exist."""
    return any("user=" in text for text in workload.virtual)


def _effect(cell: Cell, scenario: str) -> str:
    """Return everything that results depend on, the seed aside, as JSON."""
    workload = cell.workload.model_dump()
    # Both have had their say: what they led to is in the other keys.
    workload.pop("parameters")
    workload.pop("like")
    virtual = cell.clock == "virtual"
    what = {
        "scenario": scenario,
        "workload": {
            key: value
            for key, value in workload.items()
            if (key in ("virtual", "duration")) == virtual
        },
        "clock": cell.clock,
        "congestion_control": cell.congestion_control,
        "mtu": cell.mtu,
    }
    if cell.lateness_bound:
        what["lateness_bound"] = cell.lateness_bound
    if cell.economy:
        what["economy"] = cell.economy
    return json.dumps(what, sort_keys=True)


def _digest(cell: Cell, scenario: str) -> str:
    what = {**json.loads(_effect(cell, scenario)), "seed": cell.first_seed}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def cell_folder(root: Path, cell: Cell) -> Path:
    """Return where a cell's runs are kept."""
    return root / "runs" / cell.set_name / cell.name
