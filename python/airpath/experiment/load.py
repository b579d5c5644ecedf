# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading an experiment file: every problem at once, each with its line and what would be right."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from airpath.experiment.detect import MOST_BYTES
from airpath.experiment.loaded import ExperimentError, Loaded, with_values
from airpath.experiment.model import Experiment, Network, Workload
from airpath.experiment.positions import key_lines, line_of
from airpath.experiment.problem import Problem, by_line
from airpath.experiment.relations import LIVE_KEYS, as_list, relations, unknown_names
from airpath.experiment.validation import problems_of
from airpath.files import read_text
from airpath.jsontext import MOST_DEPTH, check_depth
from airpath.nearest import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.experiment.positions import Path as KeyPath

_TABLES = ("networks", "workloads", "sets", "references")


def load(file: Path, *, files: bool = True) -> Loaded:
    """Read an experiment file.

    Args:
        file: its path.
        files: whether what it names has to be there; a copy elsewhere has nothing beside it.

    Raises:
        ExperimentError: it cannot be read, or something in it is wrong.

    """
    name = str(file)
    try:
        text = read_text(file, MOST_BYTES)
    except OSError as error:
        raise ExperimentError([Problem(name, None, f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        raise ExperimentError([Problem(name, None, str(error))]) from error
    return parse(text, file, files=files)


def parse(text: str, file: Path, *, files: bool = True) -> Loaded:
    """Understand the text of an experiment.

    Args:
        text: TOML.
        file: where it stands, or would: names in it are relative to this file's folder.
        files: whether what it names has to be there.

    Raises:
        ExperimentError: something in it is wrong.

    """
    name = str(file)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise ExperimentError([Problem(name, line, f"not TOML: {error}")]) from error
    except ValueError as error:  # a number of thousands of digits
        raise ExperimentError([Problem(name, 1, f"not TOML: {error}")]) from error
    except RecursionError as error:
        what = f"nested deeper than {MOST_DEPTH} levels"
        raise ExperimentError([Problem(name, _deepest(text), what)]) from error
    try:
        check_depth(raw)
    except ValueError as error:
        raise ExperimentError([Problem(name, _deepest(text), str(error))]) from error
    lines = key_lines(text)
    problems: list[Problem] = []
    if isinstance(raw.get("workloads"), dict):
        raw["workloads"], wrong = completed(raw["workloads"])
        problems += [
            Problem(name, line_of(lines, ("workloads", key, "like")), what, ("workloads", key))
            for key, what in wrong
        ]
    filled = dict(raw)
    if isinstance(raw.get("workloads"), dict):
        filled["workloads"] = {}
        for key, workload in raw["workloads"].items():
            unknown: list[tuple[str, list[str]]] = []
            own = workload.get("parameters", {}) if isinstance(workload, dict) else {}
            filled["workloads"][key] = with_values(workload, own, unknown)
            problems += [
                Problem(
                    name,
                    line_of(lines, ("workloads", key)),
                    f"`{{{{{word}}}}}` is no parameter of workload `{key}`"
                    f"{nearest(word, known)}; parameters stand in [workloads.{key}.parameters]",
                    ("workloads", key),
                )
                for word, known in unknown
            ]
    try:
        experiment = Experiment.model_validate(filled)
    except ValidationError as error:
        problems += problems_of(error, name, lines, (), Experiment)
        problems += unknown_names(raw, name, lines)
        loaded = _sound(file, text, raw, filled, lines, problems)
    else:
        loaded = Loaded(file, text, experiment, raw, lines, tuple(range(len(experiment.sets))))
    problems += relations(loaded, files=files)
    if problems:
        sound = _sound(file, text, raw, filled, lines, problems)
        raise ExperimentError(by_line(problems), sound)
    return loaded


def _sound(
    file: Path,
    text: str,
    raw: dict[str, Any],
    filled: dict[str, Any],
    lines: dict[KeyPath, int],
    problems: list[Problem],
) -> Loaded:
    """Leave out of an experiment what has problems, and what cannot be judged because of them.

    Networks, workloads and sets stay if nothing is wrong with them, sets only if that is true of
    their networks and workloads. After a problem with a key outside these tables no set stays:
    what the key means for sets is unknown.
    """
    faulty = {problem.path[:2] for problem in problems}
    named: dict[str, dict[str, Any]] = {}
    for table in ("networks", "workloads"):
        entries = raw.get(table)
        named[table] = {
            key: entry
            for key, entry in (entries.items() if isinstance(entries, dict) else ())
            if not faulty & {(table, key), (table,)}
        }
    sets = raw.get("sets")
    of_sets = not any(len(path) < 2 or path[0] not in _TABLES for path in faulty)
    numbers = [
        number
        for number, one in enumerate(sets if of_sets and isinstance(sets, list) else [])
        if ("sets", number) not in faulty
        and all(word in named["networks"] for word in as_list(one["network"]))
        and all(word in named["workloads"] for word in as_list(one["workload"]))
    ]
    kept: dict[str, Any] = {**named, "sets": [raw["sets"][number] for number in numbers]}
    complete = {
        **kept,
        "workloads": {key: filled["workloads"][key] for key in named["workloads"]},
    }
    if numbers:
        # Of what is beside the tables, these may speak of sets that are left out.
        beside = set(raw) - {*kept, *LIVE_KEYS, "references", "report"}
        kept.update((key, raw[key]) for key in beside)
        experiment = Experiment.model_validate({**kept, **complete})
    else:
        experiment = Experiment.model_construct(
            networks={k: Network.model_validate(v) for k, v in complete["networks"].items()},
            workloads={k: Workload.model_validate(v) for k, v in complete["workloads"].items()},
            sets=[],
        )
    return Loaded(file, text, experiment, kept, lines, tuple(numbers))


def _deepest(text: str) -> int:
    """Return the line, counted from 1, that has most brackets more open than closed."""
    lines = text.splitlines() or [""]
    return 1 + max(range(len(lines)), key=lambda n: sum(map(lines[n].count, "[{")), default=0)


def completed(workloads: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Give workloads what they take from the one that they are ``like``.

    Keys that a workload has itself count; of ``parameters`` each one by itself.

    Returns:
        The workloads, and what is wrong: the name of a workload and why.

    """
    done: dict[str, Any] = {}
    wrong: list[tuple[str, str]] = []

    def complete(name: str, above: tuple[str, ...]) -> Any:
        own = workloads[name]
        if name in done or not isinstance(own, dict) or not isinstance(own.get("like"), str):
            return done.setdefault(name, own)
        model = own["like"]
        if model not in workloads:
            said = nearest(model, [one for one in workloads if one != name])
            wrong.append((name, f"workloads.{name}.like: there is no workload `{model}`{said}"))
            return done.setdefault(name, own)
        if model in (*above, name):
            circle = " like ".join(f"`{one}`" for one in (*above, name, model))
            wrong.append((name, f"workloads.{name}.like: goes in a circle: {circle}"))
            return own
        base = complete(model, (*above, name))
        if not isinstance(base, dict):
            return done.setdefault(name, own)
        both = [one.get("parameters", {}) for one in (base, own)]
        whole = {**base, **own}
        if all(isinstance(one, dict) for one in both):
            whole["parameters"] = {**both[0], **both[1]}
        return done.setdefault(name, whole)

    return {name: complete(name, ()) for name in workloads}, wrong
