"""What a report is about: the runs found in the folders that were named."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.report.facts import Facts, facts_of
from airpath.run import RunError, load_run

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    @cached_property
    def facts(self) -> Facts:
        """What the tables say of it."""
        return facts_of(self.run)


@dataclass
class Material:
    """Everything that sections are made from."""

    title: str
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)
    """What a reader must know of the page as a whole."""
    most_pictures: int = 4
    """Runs whose pictures are on the page."""

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
    entries = [
        Entry(number, label, load_run(folder))
        for number, (folder, label) in enumerate(zip(folders, labels, strict=True), 1)
    ]
    names = list(dict.fromkeys(entry.run.name for entry in entries))
    if title is None:
        title = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return Material(title=title, entries=entries, most_pictures=most_pictures)


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
