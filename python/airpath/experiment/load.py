# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading an experiment file: every problem at once, each with its line and what would be right."""

from __future__ import annotations

import json
import re
import tomllib
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from pydantic import TypeAdapter, ValidationError

from airpath.experiment.detect import MOST_BYTES
from airpath.experiment.keys import NAME_PATTERN, Mtu, Table
from airpath.experiment.metrics import MetricError, problem_with_log
from airpath.experiment.model import Experiment, Network, Workload
from airpath.experiment.positions import Path as KeyPath
from airpath.experiment.positions import key_lines, line_of
from airpath.files import read_text
from airpath.jsontext import MOST_DEPTH, check_depth
from airpath.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from airpath.experiment.keys import Scalar
    from airpath.experiment.model import Set

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_.-]*)\s*\}\}")
SWEPT_SETTINGS = ("congestion_control", "mtu")
"""Keys that a sweep may vary beside parameters of the network and of the workload."""
LIVE_KEYS = ("lateness_bound", "economy")
"""Keys of experiments and sets that concern the clock live alone."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file."""

    file: str
    line: int | None
    """None of a file that cannot be read, which has no lines."""
    what: str
    path: KeyPath = field(default=(), compare=False, repr=False)
    """The key that it is about; () where it is about the file as a whole."""

    def __str__(self) -> str:
        """Return it as one line, in the form that editors jump to."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}"


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems in the order of their lines; those of a file without lines come first."""
    return sorted(problems, key=lambda problem: problem.line or 0)


class ExperimentError(Exception):
    """A file that cannot be run, with every problem found in it."""

    def __init__(self, problems: list[Problem], sound: Loaded | None = None) -> None:
        """Keep the problems, and what of the file can be checked further in spite of them."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
        self.sound = sound


@dataclass(frozen=True)
class Loaded:
    """An experiment that was read and found right as far as it tells by itself."""

    file: Path
    text: str
    experiment: Experiment
    raw: dict[str, Any]
    """The file's content, workloads complete, before parameters took the place of placeholders."""

    lines: dict[KeyPath, int] = field(repr=False)
    numbers: tuple[int, ...]
    """Numbers of the experiment's sets in the file, of which some may be left out."""

    def sets(self) -> Iterator[tuple[KeyPath, Set]]:
        """Yield the sets, each with its path in the file."""
        for number, one in zip(self.numbers, self.experiment.sets, strict=True):
            yield ("sets", number), one

    def problem(self, path: KeyPath, what: str) -> Problem:
        """Return a problem with the key at ``path``."""
        return Problem(str(self.file), line_of(self.lines, path), what, path)

    def workload(self, name: str, parameters: dict[str, Any]) -> Workload:
        """Return a workload with other values of its parameters.

        Raises:
            ExperimentError: the values do not fit where they stand.

        """
        raw = dict(self.raw["workloads"][name])
        raw["parameters"] = {**raw.get("parameters", {}), **parameters}
        try:
            return Workload.model_validate(_filled(raw, raw["parameters"], []))
        except ValidationError as error:
            base: KeyPath = ("workloads", name)
            problems = _problems(error, str(self.file), self.lines, base, Workload)
            said = ", ".join(f"{key} = {value}" for key, value in parameters.items())
            raise ExperimentError(
                [Problem(p.file, p.line, f"{p.what} (with {said})") for p in problems]
            ) from error


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
            filled["workloads"][key] = _filled(workload, own, unknown)
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
        problems += _problems(error, name, lines, (), Experiment)
        problems += _unknown_names(raw, name, lines)
        loaded = _sound(file, text, raw, filled, lines, problems)
    else:
        loaded = Loaded(file, text, experiment, raw, lines, tuple(range(len(experiment.sets))))
    problems += _relations(loaded, files=files)
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


_TABLES = ("networks", "workloads", "sets", "references")


def _unknown_names(raw: dict[str, Any], file: str, lines: dict[KeyPath, int]) -> Iterator[Problem]:
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


def as_list(value: str | list[str]) -> list[str]:
    """Return a list, of one if it is none."""
    return [value] if isinstance(value, str) else value


def _filled(value: Any, parameters: Any, unknown: list[tuple[str, list[str]]]) -> Any:
    """Put parameters in the place of {{NAME}}; a string that is nothing else takes their type."""
    if isinstance(value, dict):
        return {
            key: inner if key == "parameters" else _filled(inner, parameters, unknown)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_filled(inner, parameters, unknown) for inner in value]
    if not isinstance(value, str) or not isinstance(parameters, dict):
        return value

    def of(match: re.Match[str]) -> Any:
        if match[1] not in parameters:
            unknown.append((match[1], list(parameters)))
            return match[0]
        return parameters[match[1]]

    whole = PLACEHOLDER.fullmatch(value)
    return of(whole) if whole else PLACEHOLDER.sub(lambda match: str(of(match)), value)


def swept_values(one: Set, key: str) -> list[Scalar]:
    """Return all values that a set's sweep gives a parameter."""
    sweep = one.sweep
    values = [*sweep.grid.get(key, ()), *sweep.zip.get(key, ())]
    return values + [row[key] for row in sweep.rows if key in row]


def _mtu_problem(value: Scalar) -> str:
    try:
        TypeAdapter(Mtu).validate_python(value, strict=True)
    except ValidationError as error:
        return _plain(error.errors()[0])
    return ""


def _metric_problem(text: str, log: str) -> str:
    try:
        return problem_with_log(text, log)
    except MetricError as error:
        return str(error)


def _tables(annotation: Any) -> list[type[Table]]:
    """Return the tables that an annotation speaks of."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, Table) else []
    return [table for inner in get_args(annotation) for table in _tables(inner)]


def _tag(table: type[Table]) -> str:
    template = table.model_fields.get("template")
    return str(get_args(template.annotation)[0]) if template else "program"


def _place(location: tuple[int | str, ...], root: type[Table]) -> tuple[KeyPath, list[type[Table]]]:
    """Follow a validator's location: the key's path in the file, and the table that holds it."""
    path: KeyPath = ()
    holders: list[type[Table]] = [root]
    inner = holders
    for step in location:
        if isinstance(step, str):
            tagged = [table for table in inner if _tag(table) == step]
            if path and path[-2:-1] == ("programs",) and isinstance(path[-1], int) and tagged:
                inner = tagged
                continue
            holders = inner
            fields = [t.model_fields[step] for t in inner if step in t.model_fields]
            if fields:
                inner = [table for f in fields for table in _tables(f.annotation)]
                if any(f.annotation in (str, int) for f in fields):
                    inner = []
        path = (*path, step)
    return path, holders


def _problems(
    error: ValidationError, file: str, lines: dict[KeyPath, int], base: KeyPath, root: type[Table]
) -> list[Problem]:
    found: dict[tuple[int | None, str], Problem] = {}
    placed = [(*_key_of(one["loc"], base, root), one) for one in error.errors()]
    # Of a number or a text that was a text, that it is no number says nothing.
    told = {whole for whole, _, one in placed if one["type"] == "value_error"}
    # A value that is neither text nor number nor truth value has an error of each.
    text, truth = (
        {whole for whole, _, one in placed if one["type"] == kind}
        for kind in ("string_type", "bool_type")
    )
    for whole, holders, one in placed:
        if whole in told and one["type"].endswith(("_type", "_parsing")):
            continue
        shown = ".".join(str(part) for part in whole)
        key = str(whole[-1]) if whole else ""
        if whole in text & truth and one["type"] in _OF_SCALARS:
            what = f"{shown}: {_no_scalar(one['input'])}"
        elif one["type"] == "extra_forbidden":
            known = list(dict.fromkeys(k for t in holders for k in t.model_fields))
            what = f"{shown}: unknown key{nearest(key, known)}"
        elif one["type"] == "missing":
            what = f"{shown}: must be given"
        elif one["type"] == "union_tag_invalid":
            tags = [_tag(table) for table in _tables_of_programs()]
            given = one["input"].get("template") if isinstance(one["input"], dict) else ""
            templates = [tag for tag in tags if tag != "program"]
            what = f"{shown}: there is no template `{given}`{nearest(str(given), templates)}"
        elif one["type"] == "literal_error":
            known = re.findall(r"'([^']*)'", str(one.get("ctx", {}).get("expected", "")))
            given = str(one["input"])
            what = f"{shown}: `{given}` is none of the values{nearest(given, known)}"
        elif one["type"] == "string_pattern_mismatch" and one["ctx"]["pattern"] == NAME_PATTERN:
            what = f"{shown}: a name has letters, digits and . _ + - only, and begins with neither"
        else:
            what = f"{shown}: {_plain(one)}"
        problem = Problem(file, line_of(lines, whole), what, whole)
        found.setdefault((problem.line, what), problem)
    return list(found.values())


_OF_SCALARS = ("string_type", "int_type", "float_type", "bool_type")


def _no_scalar(value: object) -> str:
    """Say what to write instead of a value that is neither text nor number nor truth value."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {json.dumps(of)}" for key, of in value.items())
        return f"a table is written as text here: '{{ {inner} }}'"
    return "must be a text, a number, or true or false"


_PLAIN = {
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "string_too_long": "must have {max_length} characters or fewer",
    "string_pattern_mismatch": "`{given}` does not match {pattern}",
}
"""The validator's messages in the words of these files."""


def _plain(error: ErrorDetails) -> str:
    """Return what a validator's error says, in plain words."""
    words = _PLAIN.get(error["type"])
    if words is None:
        return error["msg"].removeprefix("Value error, ")
    return words.format(given=error["input"], **error.get("ctx", {}))


def _key_of(
    loc: tuple[int | str, ...], base: KeyPath, root: type[Table]
) -> tuple[KeyPath, list[type[Table]]]:
    """Return where an error stands in the file, and the tables that could hold its key."""
    path, holders = _place(loc, root)
    whole: KeyPath = (*base, *path)
    # A union of simple types adds its members' names behind the key.
    members = ("list[", "str", "int", "float", "bool", "function-after[")
    while whole and isinstance(whole[-1], str) and whole[-1].startswith(members):
        whole = whole[:-1]
    return whole, holders


def _tables_of_programs() -> list[type[Table]]:
    return _tables(Workload.model_fields["programs"].annotation)


def _relations(loaded: Loaded, *, files: bool) -> list[Problem]:
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
