# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Presentation that experiments ask for: notes, references, columns, runs to be looked at.

It comes from the copy of the experiment's file in the folder of results, or from a file named
instead of it, so that a page can be written anew without running anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from airpath.experiment.folder import COPY, NOTES, PLAN
from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.shown import Selector, read_notes, read_text, split_run
from airpath.files import read_text as read_plain
from airpath.jsontext import parse_json
from airpath.run import DIRECTIONS, RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from airpath.experiment.loaded import Loaded
    from airpath.experiment.model import Experiment, Figures, Reference
    from airpath.report.entry import Entry


@dataclass(frozen=True)
class Beside:
    """A reference and the sets that it stands beside."""

    reference: Reference
    sets: tuple[str, ...]

    def figure(self, row: Mapping[str, Any]) -> Figures | None:
        """Return its figures for a row with metric, direction and hop, or nothing."""
        for text in self.reference.metrics:
            if selects(Selector(text), row):
                return self.reference.metrics[text]
        return None


@dataclass
class Presentation:
    """Content of the page beyond that of every page."""

    title: str | None = None
    question: str = ""
    """Description of the experiment, in its own words."""
    asked: list[Selector] = field(default_factory=list)
    """The metrics that comparisons test, in order; none for the main one."""
    notes: list[str] = field(default_factory=list)
    """Markdown, one text an experiment."""
    selectors: list[Selector] = field(default_factory=list)
    """The metrics wanted, in order; none for those that every page has."""
    percentiles: bool = False
    """True if percentiles stand below medians instead of intervals."""
    beside: list[Beside] = field(default_factory=list)
    captions: dict[int, str] = field(default_factory=dict)
    """By number, runs with diagrams and pictures, and what is to be seen; none for the usual."""
    problems: list[str] = field(default_factory=list)
    """Parts of it that could not be read."""

    @property
    def metrics(self) -> list[str]:
        """The names of metrics that have to be measured for it."""
        return list(dict.fromkeys(selector.name for selector in self.wanted))

    @property
    def wanted(self) -> list[Selector]:
        """The metrics wanted, then what references have beside them, and what is tested."""
        texts = [text for one in self.beside for text in one.reference.metrics]
        return list(dict.fromkeys([*self.selectors, *map(Selector, texts), *self.asked]))


def selects(selector: Selector, row: Mapping[str, Any]) -> bool:
    """Say whether a value is of the metric, and of the direction if one is named."""
    return row["metric"] == selector.name and selector.direction in ("", row["direction"])


def present(entries: Sequence[Entry], file: Path | None = None) -> Presentation:
    """Read what the experiments of some runs ask of their page.

    Args:
        entries: the runs.
        file: an experiment's file to go by, instead of the copies in the folders of results.

    Raises:
        RunError: the file that was named is wrong.

    """
    found = Presentation()
    if file is not None:
        try:
            loaded = load(file)
            notes = read_notes(loaded)
        except (ExperimentError, ValueError) as error:
            raise RunError(str(error)) from error
        _add(found, loaded, notes, [entry for entry in entries if entry.about])
        return found
    roots: dict[Path, list[Entry]] = {}
    for entry in entries:
        if entry.about:
            roots.setdefault(entry.results_folder, []).append(entry)
    for root, members in roots.items():
        copy = root / COPY
        if not copy.is_file():
            continue
        try:
            loaded = load(copy, files=False)
        except ExperimentError as error:
            found.problems.append(f"{error.problems[0]}; notes and references are left out")
            continue
        notes = ""
        if loaded.experiment.report.notes:
            try:
                notes = read_text(root / NOTES)
            except ValueError as error:
                found.problems.append(f"notes are left out: {error}")
        _add(found, loaded, notes, members)
    return found


def unfinished(entries: Sequence[Entry], directories: Iterable[Path]) -> list[str]:
    """Say which experiments have fewer runs than their plan, of those that are shown whole.

    Args:
        entries: the runs.
        directories: the folders that were named.

    """
    named = [directory.resolve() for directory in directories]
    roots: dict[Path, set[tuple[str, str, int]]] = {}
    for entry in entries:
        root = entry.results_folder if entry.about else None
        if root and any(one == root or one in root.parents for one in named):
            key = (entry.about["set_name"], entry.about["cell"], int(entry.about["replication"]))
            roots.setdefault(root, set()).add(key)
    notes = []
    for root, there in roots.items():
        try:
            cells = parse_json(read_plain(root / PLAN))["cells"]
            wanted = {
                (cell["set"], cell["cell"], number)
                for cell in cells
                for number in range(1, int(cell["replications"][0]) + 1)
            }
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            continue
        if missing := len(wanted - there):
            notes.append(
                f"{root.name}: {missing} of {len(wanted)} replications of the plan are missing; "
                f"airpath run --resume goes on with them"
            )
    return notes


def _add(found: Presentation, loaded: Loaded, notes: str, entries: Sequence[Entry]) -> None:
    experiment = loaded.experiment
    page = experiment.report
    found.title = found.title or page.title or experiment.description.partition("\n")[0] or None
    if notes:
        found.notes.append(notes)
    wanted = map(Selector, page.metrics)
    found.selectors += [one for one in wanted if one not in found.selectors]
    found.question = found.question or experiment.description.strip()
    found.asked += [one for one in _asked(experiment) if one not in found.asked]
    found.percentiles = found.percentiles or page.spread == "percentiles"
    for reference in experiment.references:
        sets = _sets(entries, reference.sets)
        if sets:
            found.beside.append(Beside(reference, sets))
    for shown in page.runs:
        pattern, number = split_run(shown.run)
        matching = [
            entry
            for entry in entries
            if fnmatchcase(entry.cell_key, pattern)
            and fnmatchcase(str(entry.about["replication"]), number)
        ]
        for entry in matching:
            found.captions.setdefault(entry.number, shown.caption)


def _asked(experiment: Experiment) -> list[Selector]:
    """Return the metrics that an experiment names: for its page, else those it measures."""
    if experiment.report.metrics:
        return [Selector(text) for text in experiment.report.metrics]
    named = list(experiment.metrics) if "metrics" in experiment.model_fields_set else []
    named += [one.until.metric for one in experiment.sets if one.until is not None]
    found = []
    for text in named:
        name, *places = text.split("/")
        ways = [place for place in places if place in DIRECTIONS]
        found.append(Selector("/".join([name, *ways])))
    return list(dict.fromkeys(found))


def _sets(entries: Iterable[Entry], patterns: Sequence[str]) -> tuple[str, ...]:
    names = {
        entry.set_name: None
        for entry in entries
        if any(fnmatchcase(entry.cell_key, pattern) for pattern in patterns)
    }
    return tuple(names)
