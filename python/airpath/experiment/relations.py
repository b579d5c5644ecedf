# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Checks of an experiment that no key can tell alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from airpath.experiment.keys import Mtu
from airpath.experiment.metrics import MetricError, problem_with_log
from airpath.experiment.positions import line_of
from airpath.experiment.problem import Problem
from airpath.experiment.validation import plain
from airpath.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airpath.experiment.keys import Scalar
    from airpath.experiment.loaded import Loaded
    from airpath.experiment.model import Set
    from airpath.experiment.positions import Path as KeyPath

SWEPT_SETTINGS = ("congestion_control", "mtu")
"""Keys that a sweep may vary beside parameters of the network and of the workload."""
LIVE_KEYS = ("lateness_bound", "economy")
"""Keys of experiments and sets that concern the clock live alone."""


def relations(loaded: Loaded, *, files: bool) -> list[Problem]:
    """Check what no key can tell alone."""
    experiment = loaded.experiment
    problems: list[Problem] = []

    def wrong(path: KeyPath, what: str) -> None:
        problems.append(loaded.problem(path, what))

    for name, network in experiment.networks.items():
        here: KeyPath = ("networks", name)
        sources = [key for key in ("profile", "scenario", "inline") if getattr(network, key)]
        if len(sources) > 1:
            wrong(here, f"networks.{name}: has {' and '.join(sources)}; one of them")
        if not sources and not network.link.model_dump(exclude_none=True):
            wrong(here, f"networks.{name}: needs one of profile, scenario, inline, link")
        beside = loaded.file.parent / (network.scenario or "")
        if files and network.scenario and not beside.is_file():
            wrong(
                (*here, "scenario"),
                f"networks.{name}.scenario: no file {network.scenario} beside {loaded.file}",
            )
    for name, workload in experiment.workloads.items():
        here = ("workloads", name)
        if not workload.programs and not workload.virtual:
            wrong(here, f"workloads.{name}: needs programs (live, warp) or virtual, or both")
        for index, program in enumerate(workload.programs):
            place: KeyPath = (*here, "programs", index)
            both = (getattr(program, "bytes", None), getattr(program, "time", None))
            if hasattr(program, "bytes") and all(value is not None for value in both):
                wrong(place, f"workloads.{name}.programs.{index}: bytes or time, not both")
            ready = getattr(program, "ready", None)
            if ready is not None:
                given = [k for k in ("port", "command", "output") if getattr(ready, k) is not None]
                if len(given) != 1:
                    wrong(
                        (*place, "ready"),
                        f"workloads.{name}.programs.{index}.ready: one of port, command, output",
                    )
                elif ready.output is not None:
                    try:
                        re.compile(ready.output)
                    except re.error as error:
                        wrong((*place, "ready"), f"ready.output: no regular expression: {error}")
    if "metrics" in loaded.raw:
        for text in experiment.metrics:
            problem = _metric_problem(text, experiment.log)
            if problem:
                wrong(("metrics",), f"metrics: {problem}")
    clocks = {one.clock or experiment.clock for one in experiment.sets}
    for key in LIVE_KEYS:
        if getattr(experiment, key) and "live" not in clocks:
            wrong((key,), f"{key} is for the clock live, which no set has")
    seen: set[str] = set()
    for here, one in loaded.sets():
        if one.name in seen:
            wrong((*here, "name"), f"sets: two are called `{one.name}`")
        seen.add(one.name)
        if (one.repetitions is None) == (one.until is None):
            wrong(here, f"set `{one.name}`: needs repetitions, or until, and not both")
        if one.until and one.until.least > one.until.most:
            wrong((*here, "until"), f"set `{one.name}`: least is more than most")
        for key, known in (("network", experiment.networks), ("workload", experiment.workloads)):
            for word in as_list(getattr(one, key)):
                if word not in known:
                    wrong((*here, key), _no_such(one.name, key, word, known))
        clock = one.clock or experiment.clock
        for key in LIVE_KEYS:
            if getattr(one, key) and clock != "live":
                wrong(
                    (*here, key),
                    f"set `{one.name}`: {key} is for the clock live, and its clock is {clock}",
                )
        if one.until:
            problem = _metric_problem(one.until.metric, experiment.log)
            if problem:
                wrong((*here, "until"), f"set `{one.name}`: until: {problem}")
        for word in as_list(one.workload):
            workload_of = experiment.workloads.get(word)
            needed = "virtual" if clock == "virtual" else "programs"
            if workload_of is not None and not getattr(workload_of, needed):
                wrong(
                    (*here, "workload"),
                    f"set `{one.name}`: workload `{word}` has no `{needed}`, "
                    f"which the clock {clock} runs",
                )
        lengths = {len(values) for values in one.sweep.zip.values()}
        if len(lengths) > 1:
            wrong((*here, "sweep", "zip"), f"set `{one.name}`: lists of sweep.zip differ in length")
        swept: list[str] = []
        for table in ("grid", "zip"):
            for key, values in getattr(one.sweep, table).items():
                swept.append(key)
                if not values:
                    wrong((*here, "sweep", table, key), f"set `{one.name}`: {key} has no values")
        for row in one.sweep.rows:
            swept += [key for key in row if key not in swept]
        for key in swept:
            kind, _, rest = key.partition(".")
            place = next(
                (
                    (*here, "sweep", table, key)
                    for table in ("grid", "zip")
                    if key in getattr(one.sweep, table)
                ),
                (*here, "sweep"),
            )
            if kind == "workload" and rest:
                for word in as_list(one.workload):
                    of = experiment.workloads.get(word)
                    if of is not None and rest not in of.parameters:
                        wrong(
                            place,
                            f"set `{one.name}`: workload `{word}` has no parameter `{rest}`"
                            f"{nearest(rest, of.parameters)}",
                        )
            elif not (kind == "network" and rest) and key not in SWEPT_SETTINGS:
                choices = [
                    *SWEPT_SETTINGS,
                    *(f"workload.{p}" for w in experiment.workloads.values() for p in w.parameters),
                ]
                wrong(
                    place,
                    f"set `{one.name}`: `{key}` cannot be swept{nearest(key, choices)}"
                    f" (parameters of a link begin with `network.`)",
                )
            elif key == "congestion_control" and clock == "virtual":
                wrong(
                    place,
                    f"set `{one.name}`: congestion_control is the kernel's, for the clocks live "
                    f"and warp; sweep a parameter of the workload instead: cc={{{{NAME}}}}",
                )
            elif key == "mtu":
                for value in swept_values(one, key):
                    if said := _mtu_problem(value):
                        wrong(place, f"set `{one.name}`: mtu {value}: {said}")
    return problems


def unknown_names(raw: dict[str, Any], file: str, lines: dict[KeyPath, int]) -> Iterator[Problem]:
    """Yield what sets name and the file does not have, where other mistakes keep it from use."""
    sets = raw.get("sets")
    for index, one in enumerate(sets if isinstance(sets, list) else []):
        for key, table in (("network", "networks"), ("workload", "workloads")):
            known = raw.get(table)
            words = one.get(key) if isinstance(one, dict) else None
            if not isinstance(words, str | list) or not isinstance(known, dict):
                continue
            for word in as_list(words):
                if isinstance(word, str) and word not in known:
                    what = _no_such(one.get("name"), key, word, known)
                    path: KeyPath = ("sets", index, key)
                    yield Problem(file, line_of(lines, path), what, path)


def _no_such(of_set: object, key: str, word: str, known: Iterable[str]) -> str:
    return f"set `{of_set}`: there is no {key} `{word}`{nearest(word, known)}"


def as_list(value: str | list[str]) -> list[str]:
    """Return a list, of one if it is none."""
    return [value] if isinstance(value, str) else value


def swept_values(one: Set, key: str) -> list[Scalar]:
    """Return all values that a set's sweep gives a parameter."""
    sweep = one.sweep
    values = [*sweep.grid.get(key, ()), *sweep.zip.get(key, ())]
    return values + [row[key] for row in sweep.rows if key in row]


def _mtu_problem(value: Scalar) -> str:
    try:
        TypeAdapter(Mtu).validate_python(value, strict=True)
    except ValidationError as error:
        return plain(error.errors()[0])
    return ""


def _metric_problem(text: str, log: str) -> str:
    try:
        return problem_with_log(text, log)
    except MetricError as error:
        return str(error)
