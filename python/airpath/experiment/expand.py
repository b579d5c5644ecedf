# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""From sets to cells: the combinations that a set asks for, with names for people and folders."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.experiment.relations import as_list

if TYPE_CHECKING:
    from airpath.experiment.loaded import Loaded
    from airpath.experiment.model import Set, Until, Workload

SEED_LIMIT = 1 << 63


@dataclass(frozen=True)
class Cell:
    """One combination of a set: everything but the replication's number is settled."""

    set_name: str
    name: str
    network: str
    workload_name: str
    workload: Workload
    clock: str
    network_parameters: dict[str, Any]
    congestion_control: str | None
    mtu: int | None
    lateness_bound: str | None
    economy: str | None
    parameters: dict[str, Any]
    """Values that the sweep set, as the file names them."""

    first_seed: int
    repetitions: int | None
    until: Until | None
    tags: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return set and cell, as users write them."""
        return f"{self.set_name}/{self.name}"

    @property
    def least(self) -> int:
        """Minimum number of replications."""
        return self.repetitions or (self.until.least if self.until else 1)

    @property
    def most(self) -> int:
        """Maximum number of replications."""
        return self.repetitions or (self.until.most if self.until else 1)

    def seed(self, replication: int) -> int:
        """Return the seed of a replication, counted from 1."""
        return (self.first_seed + replication - 1) % SEED_LIMIT


def cells(loaded: Loaded, one: Set) -> list[Cell]:
    """Return the cells of a set, in the file's order.

    Raises:
        ExperimentError: a value of a sweep does not fit where it stands.

    """
    experiment = loaded.experiment
    networks, workloads = as_list(one.network), as_list(one.workload)
    combinations = list(_combinations(one))
    short = _short_names([key for combination in combinations for key in combination])
    found: list[Cell] = []
    used: dict[str, int] = {}
    for network, workload_name, values in itertools.product(networks, workloads, combinations):
        words = [network] * (len(networks) > 1) + [workload_name] * (len(workloads) > 1)
        words += [f"{short[key]}={_for_file(value)}" for key, value in values.items()]
        name = ",".join(words) or "all"
        if len(name) > 120:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            name = f"{name[:100]}~{digest}"
        used[name] = used.get(name, 0) + 1
        if used[name] > 1:
            name = f"{name}~{used[name]}"
        of_workload = {k[9:]: v for k, v in values.items() if k.startswith("workload.")}
        workload = (
            loaded.workload(workload_name, of_workload)
            if of_workload
            else experiment.workloads[workload_name]
        )
        of = experiment.networks[network]
        seed = experiment.seed if one.seed is None else one.seed
        if one.random_numbers == "independent":
            key = f"{seed}/{one.name}/{name}".encode()
            seed = int.from_bytes(hashlib.sha256(key).digest()[:7])
        clock = one.clock or experiment.clock
        mtu = values.get("mtu", of.mtu)
        control = values.get("congestion_control", workload.congestion_control)
        found.append(
            Cell(
                set_name=one.name,
                name=name,
                network=network,
                workload_name=workload_name,
                workload=workload,
                clock=clock,
                network_parameters={
                    **of.set,
                    **{k[8:]: v for k, v in values.items() if k.startswith("network.")},
                },
                congestion_control=None if control is None else str(control),
                mtu=mtu if isinstance(mtu, int) else None,
                lateness_bound=(
                    (one.lateness_bound or experiment.lateness_bound) if clock == "live" else None
                ),
                economy=(one.economy or experiment.economy) if clock == "live" else None,
                parameters=values,
                first_seed=seed,
                repetitions=one.repetitions,
                until=one.until,
                tags=tuple(one.tags),
            )
        )
    return found


def _combinations(one: Set) -> list[dict[str, Any]]:
    grid = [[{key: value} for value in values] for key, values in one.sweep.grid.items()]
    zipped = [
        dict(zip(one.sweep.zip, row, strict=True))
        for row in zip(*one.sweep.zip.values(), strict=True)
    ]
    dimensions = [d for d in (one.sweep.rows, zipped, *grid) if d]
    merged = []
    for parts in itertools.product(*dimensions):
        values: dict[str, Any] = {}
        for part in parts:
            values.update(part)
        merged.append(values)
    return merged


def _short_names(keys: list[str]) -> dict[str, str]:
    """Return for each dotted key its last words, as few as tell it from the others."""
    unique = list(dict.fromkeys(keys))
    names = {}
    for key in unique:
        words = key.split(".")
        for count in range(1, len(words) + 1):
            tail = words[-count:]
            if sum(other.split(".")[-count:] == tail for other in unique) == 1:
                break
        names[key] = ".".join(tail)
    return names


def _for_file(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.startswith("{"):
        # Of a table in text its values tell enough: keys and brackets are the same in all cells.
        values = re.findall(r"=\s*\"?([^\",={}]+)", text)
        text = "-".join(filter(None, map(str.strip, values))) or text
    text = text.replace(" ", "").replace("%", "pct").replace("/", "p").replace("µ", "u")
    return re.sub(r"[^A-Za-z0-9._+-]", "_", text) or "_"
