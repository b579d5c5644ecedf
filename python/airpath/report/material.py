# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Material of a report: the runs found in the folders that were named."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.analysis.together import batches
from airpath.experiment.about import name_of_set, read_about
from airpath.facts import FILES_OF_A_RUN
from airpath.natural import natural_order
from airpath.report.choice import MOST_CURVES, evenly, side_by_side_sets
from airpath.report.drawing import Drawings
from airpath.report.entry import Entry
from airpath.report.measured import Measured, measure_all, parameters_of_sets
from airpath.report.opener import MOST_BYTES, Opener
from airpath.report.presentation import Presentation, present, unfinished
from airpath.report.reduce import Task, reduce_runs
from airpath.report.run_pictures import Drawn, draw_pictures
from airpath.report.run_pictures import Task as PictureTask
from airpath.run import NoRunError, Run, RunError, load_run
from airpath.workers import Crew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airpath.workers import Promise


LEAST_SHARED = 8
"""Runs of a page that is worth other processes."""

MOST_DEPTH = 4
"""Maximum depth of runs below a folder: sets, cells, replications."""


@dataclass
class Material:
    """Everything that sections are made from."""

    title: str
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)
    """Notes for the reader of the page as a whole."""
    most_pictures: int = 2
    """Runs whose pictures are on the page."""
    unreadable: list[str] = field(default_factory=list)
    """Runs that could not be read at all, and why."""
    presentation: Presentation = field(default_factory=Presentation)
    """Presentation that experiments ask of their page."""
    progress: Callable[[str, int, int], None] = field(
        default=lambda what, done, total: None, repr=False
    )
    """Told what is being done, how much of it is done, and how much there is."""
    crew: Crew = field(default_factory=lambda: Crew(0), repr=False)
    """Processes that read runs and draw."""
    _drawn: list[Promise[Drawn]] = field(default_factory=list, repr=False)

    @cached_property
    def drawings(self) -> Drawings:
        """The pictures of sets and of the answer."""
        return Drawings(self.crew)

    def drawn(self) -> Iterator[tuple[Entry, Drawn]]:
        """Yield each run whose pictures are on the page, with these."""
        for entry, promise in zip(self.with_pictures, self._drawn, strict=True):
            yield entry, self.crew.result(promise)

    @property
    def damage(self) -> list[str]:
        """Errors in files of runs, as far as they were read."""
        told = [f"{one.run.directory}: {what}" for one in self.entries for what in one.run.damage]
        return self.unreadable + told

    def read(self) -> None:
        """Read all runs, a batch at a time in each process, and keep what the page needs.

        Other processes begin with the pictures of single runs, for which nothing else is needed.
        """
        self._drawn = [
            self.crew.begin(
                draw_pictures, PictureTask(entry.run.directory, entry.number, entry.opener)
            )
            for entry in self.with_pictures
        ]
        shown = side_by_side_sets(self.sets, self.parameters)
        curves = {entry.number for entry in evenly(self.entries, MOST_CURVES)}
        tasks = [
            Task(
                entry.run.directory,
                entry.set_name,
                delays=entry.number in curves,
                course_ns=shown.get(entry.set_name, 0),
                also_measured=entry.also_measured,
                opener=entry.opener,
            )
            for entry in self.entries
        ]

        parted = batches([task.directory for task in tasks])

        def tell(done: int, _total: int) -> None:
            self.progress("reading runs", sum(map(len, parted[:done])), len(tasks))

        of_batches = [[tasks[place] for place in batch] for batch in parted]
        results = (one for batch in self.crew.each(reduce_runs, of_batches, tell) for one in batch)
        for entry, found in zip(self.entries, results, strict=True):
            entry.facts, entry.values = found.facts, found.values
            entry.delays, entry.courses = found.delays, found.courses
            run = entry.run
            run.notes += [note for note in found.notes if note not in run.notes]
            run.damage += [what for what in found.damage if what not in run.damage]

    @cached_property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Of each set of an experiment what tells it from others."""
        return parameters_of_sets(self.entries)

    @cached_property
    def measured(self) -> Measured:
        """Metrics of all runs, as tables."""
        shown = self.presentation
        return measure_all(
            self.entries, shown.wanted, usual=not shown.selectors, asked_for=shown.asked
        )

    @property
    def with_diagrams(self) -> list[Entry]:
        """The runs whose diagrams are on the page: all, or in its order those that a file names."""
        named = self.presentation.captions
        by_number = {entry.number: entry for entry in self.entries}
        return [by_number[number] for number in named] if named else self.entries

    @property
    def with_pictures(self) -> list[Entry]:
        """The runs whose pictures are on the page: those that an experiment names, or the first."""
        return self.with_diagrams[: self.most_pictures]

    @cached_property
    def sets(self) -> dict[str, list[Entry]]:
        """The sets of replications, in the order of the page."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.set_name, []).append(entry)
        return found

    @property
    def version(self) -> str:
        """The version that writes the page."""
        return version("airpath")


def find_runs(directories: Sequence[Path]) -> list[Path]:
    """Return the folders of runs in the folders named, each in the order of its name.

    Raises:
        NoRunError: a folder is missing or holds no run.

    """
    found: list[Path] = []
    for directory in directories:
        if not directory.is_dir():
            message = f"{directory}: no such folder; name one given to --out"
            raise NoRunError(message)
        inside = list(_runs_below(directory, MOST_DEPTH))
        if not inside:
            message = f"{directory}: neither the folder of a run nor one with runs in it;"
            message += " airpath exec --out DIR writes one"
            raise NoRunError(message)
        found += [run for run in inside if run not in found]
    return found


def _runs_below(directory: Path, depth: int) -> list[Path]:
    if any((directory / name).is_file() for name in FILES_OF_A_RUN):
        return [directory]
    if depth == 0:
        return []
    found: list[Path] = []
    children = {str(child): child for child in directory.iterdir()}
    for child in map(children.__getitem__, natural_order(children)):
        if child.is_dir() and not child.is_symlink():
            found += _runs_below(child, depth - 1)
    return found


def load_material(
    directories: Sequence[Path],
    title: str | None,
    most_pictures: int,
    *,
    experiment: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    crew: Crew | None = None,
) -> Material:
    """Find and read all runs.

    Args:
        directories: folders of runs, or folders with runs in them.
        title: the page's; by default what experiments say, or the names of the scenarios.
        most_pictures: runs whose pictures are on the page.
        experiment: the file whose notes and references are shown, instead of the copy in the
            folder of results.
        progress: told what is being done, how much of it is done, and how much there is.
        crew: reads runs and draws, for pages of so many runs that it is worth it; else all is done
            by this process.

    Raises:
        RunError: there is none, or one cannot be read at all, or the experiment's file is wrong.

    """
    folders = find_runs(directories)
    labels = _labels(folders, directories)
    entries: list[Entry] = []
    unreadable: list[str] = []
    named: dict[str, str] = {}
    for folder, label in zip(folders, labels, strict=True):
        try:
            run = load_run(folder)
        except (RunError, OSError) as error:
            unreadable.append(f"{error}; the run was left out")
            continue
        about = read_about(folder)
        name = str(Path(label).parent)
        if about:
            name = name_of_set(about)
            if len(directories) > 1:
                # Several results may have sets of one name.
                name = str(Path(label).parent).replace("/runs/", "/", 1)
        elif name == ".":
            if label == folder.name:
                # Runs that were named one by one are a set if they are of the same.
                name = named.setdefault(_kind(run), folder.name)
            else:
                name = folder.resolve().parent.name
        entries.append(Entry(len(entries) + 1, label, run, name, about))
    if not entries:
        message = "\n".join(unreadable)
        raise RunError(message)
    names = list(dict.fromkeys(entry.run.name for entry in entries))
    presentation = present(entries, experiment)
    # Many runs are read by several processes, and are more than memory has room for.
    opener = Opener(MOST_BYTES if len(entries) < LEAST_SHARED else 0)
    for entry in entries:
        entry.also_measured, entry.opener = tuple(presentation.metrics), opener
    title = title or presentation.title
    if title is None:
        title = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    material = Material(
        title=title,
        entries=entries,
        notes=[*unreadable, *presentation.problems, *unfinished(entries, directories)],
        most_pictures=most_pictures,
        unreadable=unreadable,
        presentation=presentation,
    )
    if progress is not None:
        material.progress = progress
    if crew is not None and len(entries) >= LEAST_SHARED:
        material.crew = crew
    material.read()
    return material


def _kind(run: Run) -> str:
    """Return what replications have in common: the link, what runs over it, and by which clock."""
    ends = []
    for key, what in (("commands", "command"), ("workloads", "workload")):
        told = run.manifest.get(key)
        entries = told if isinstance(told, list) else []
        ends.append([one.get(what) for one in entries if isinstance(one, dict)])
    settings = [run.settings.get(key) for key in ("congestion_control", "mtu_bytes")]
    return repr([run.manifest.get("scenario_toml"), ends, settings, run.clock])


def _labels(folders: Sequence[Path], directories: Sequence[Path]) -> list[str]:
    """Return what each run is called: its path below the folder named, or that folder's name."""
    labels = []
    for folder in folders:
        root = next(each for each in directories if folder == each or each in folder.parents)
        inner = folder.relative_to(root)
        name = root.resolve().name
        alone = len(directories) == 1 and inner.parts
        labels.append(str(inner) if alone else str(Path(name) / inner))
    # Folders of one name at different places are told apart by their whole paths.
    return labels if len(set(labels)) == len(labels) else [str(folder) for folder in folders]
