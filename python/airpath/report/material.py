"""What a report is about: the runs found in the folders that were named."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.analysis.folders import Replication
from airpath.experiment.about import name_of_set, read_about
from airpath.report.facts import Facts, facts_of
from airpath.report.measured import Measured, measure_all, values_of
from airpath.run import RunError, load_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from airpath.run import Run

RUN_FILES = ("run.json", "events.arrow", "client.pcapng", "server.pcapng")
"""By any of these a folder is known as a run's."""

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

    @property
    def name(self) -> str:
        """Its own folder's name, which tells it from others of its set."""
        return self.run.directory.resolve().name

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
        return values_of(self.run)


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

    @property
    def damage(self) -> list[str]:
        """What is wrong with files of runs, as far as they were read."""
        told = [f"{one.run.directory}: {what}" for one in self.entries for what in one.run.damage]
        return self.unreadable + told

    @cached_property
    def measured(self) -> Measured:
        """What the analysis says of all runs, as tables."""
        return measure_all(self.entries)

    @property
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
    if any((directory / name).is_file() for name in RUN_FILES):
        return [directory]
    if depth == 0:
        return []
    found: list[Path] = []
    for child in sorted(directory.iterdir()):
        if child.is_dir() and not child.is_symlink():
            found += _runs_below(child, depth - 1)
    return found


def load_material(directories: Sequence[Path], title: str | None, most_pictures: int) -> Material:
    """Find and open all runs.

    Raises:
        RunError: there is none, or one cannot be read at all.

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
    if title is None:
        title = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return Material(title, entries, list(unreadable), most_pictures, unreadable)


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
