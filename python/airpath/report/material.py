"""What a report is about: the runs found in the folders that were named."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.analysis.folders import Replication
from airpath.experiment.about import name_of_set, read_about
from airpath.facts import FILES_OF_A_RUN
from airpath.plots.sets import natural_order
from airpath.report import gallery
from airpath.report.facts import Facts, facts_of
from airpath.report.measured import Measured, measure_all, parameters_of_sets, values_of
from airpath.report.presentation import Presentation, present, unfinished
from airpath.report.reduce import Task, delays_of, reduce_run
from airpath.report.workers import each
from airpath.run import RunError, load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from airpath.plots.courses import Courses
    from airpath.run import Run

MOST_DEPTH = 4
"""How far below a folder runs are looked for: sets, cells, replications."""


@dataclass
class Entry:
    """One run on the page."""

    number: int
    """From 1; the run's elements on the page have the id ``run-N``."""
    label: str
    """Its folder, as short as tells it apart."""
    run: Run
    set_name: str = ""
    """The set of replications that it belongs to: SET/CELL of an experiment, or the folder's."""
    about: dict[str, Any] = field(default_factory=dict)
    """What an experiment wrote of it (replication.json); empty for other runs."""
    courses: Courses | None = None
    """What happened over time, of the runs of sets that are drawn side by side."""
    also_measured: tuple[str, ...] = ()
    """Metrics beyond those that every page has."""

    @property
    def name(self) -> str:
        """Its own folder's name, which tells it from others of its set."""
        return self.run.directory.resolve().name

    @property
    def cell_key(self) -> str:
        """SET/CELL of the experiment that it is of; only where ``about`` says so."""
        return f"{self.about['set_name']}/{self.about['cell']}"

    @property
    def results_folder(self) -> Path:
        """The results folder of its experiment: DIR of DIR/runs/SET/CELL/NNNN."""
        return self.run.directory.resolve().parents[3]

    @property
    def place(self) -> Replication:
        """The run as the analysis takes it: opened anew, and let go afterwards."""
        return Replication(self.set_name, self.name, self.run.directory)

    @cached_property
    def facts(self) -> Facts:
        """What the tables say of it."""
        return facts_of(self.run, self.values)

    @cached_property
    def values(self) -> pl.DataFrame:
        """What the analysis measures of it."""
        return values_of(self.run, self.also_measured)

    @cached_property
    def delays(self) -> dict[str, NDArray[np.float64]]:
        """The distribution of its delays, as ``airpath.report.reduce.delays_of`` returns it."""
        return delays_of(self.run)

    def open(self) -> Run:
        """Open the run once more: its packets and events are let go with what is returned."""
        return load_run(self.run.directory)


@dataclass
class Material:
    """Everything that sections are made from."""

    title: str
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)
    """What a reader must know of the page as a whole."""
    most_pictures: int = 4
    """Runs whose pictures are on the page."""
    unreadable: list[str] = field(default_factory=list)
    """Runs that could not be read at all, and why."""
    presentation: Presentation = field(default_factory=Presentation)
    """What experiments ask of their page."""
    progress: Callable[[str, int, int], None] = field(
        default=lambda what, done, total: None, repr=False
    )
    """Told what is being done, how much of it is done, and how much there is."""

    @property
    def damage(self) -> list[str]:
        """What is wrong with files of runs, as far as they were read."""
        told = [f"{one.run.directory}: {what}" for one in self.entries for what in one.run.damage]
        return self.unreadable + told

    def read(self) -> None:
        """Read all runs, one at a time in each worker process, and keep what the page needs."""
        shown = gallery.side_by_side_sets(self)
        curves = {entry.number for entry in gallery.evenly(self.entries, gallery.MOST_CURVES)}
        tasks = [
            Task(
                entry.run.directory,
                entry.set_name,
                delays=entry.number in curves,
                course_ns=shown.get(entry.set_name, 0),
                also_measured=entry.also_measured,
            )
            for entry in self.entries
        ]

        def tell(done: int, total: int) -> None:
            self.progress("reading runs", done, total)

        for entry, found in zip(self.entries, each(reduce_run, tasks, tell), strict=True):
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
        """What the analysis says of all runs, as tables."""
        shown = self.presentation
        measured = measure_all(self.entries, shown.wanted, usual=not shown.selectors)
        measured.progress = lambda done, total: self.progress("figures of sets", done, total)
        return measured

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
        RunError: a folder is missing or holds no run.

    """
    found: list[Path] = []
    for directory in directories:
        if not directory.is_dir():
            message = f"{directory}: no such folder; name one given to --out"
            raise RunError(message)
        inside = list(_runs_below(directory, MOST_DEPTH))
        if not inside:
            message = f"{directory}: neither the folder of a run nor one with runs in it;"
            message += " airpath exec --out DIR writes one"
            raise RunError(message)
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
) -> Material:
    """Find and read all runs.

    Args:
        directories: folders of runs, or folders with runs in them.
        title: the page's; by default what experiments say, or the names of the scenarios.
        most_pictures: runs whose pictures are on the page.
        experiment: the file whose notes and references are shown, instead of the copy in the
            folder of results.
        progress: told what is being done, how much of it is done, and how much there is.

    Raises:
        RunError: there is none, or one cannot be read at all, or the experiment's file is wrong.

    """
    folders = find_runs(directories)
    labels = _labels(folders, directories)
    entries: list[Entry] = []
    unreadable: list[str] = []
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
            name = folder.resolve().parent.name if label != folder.name else directories[0].name
        entries.append(Entry(len(entries) + 1, label, run, name, about))
    if not entries:
        message = "\n".join(unreadable)
        raise RunError(message)
    names = list(dict.fromkeys(entry.run.name for entry in entries))
    presentation = present(entries, experiment)
    for entry in entries:
        entry.also_measured = tuple(presentation.metrics)
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
    material.read()
    return material


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
