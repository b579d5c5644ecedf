# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Checks of what a file says of its report: metrics, sets, runs and notes that exist."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from airpath.files import read_bytes
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from airpath.experiment.expand import Cell
    from airpath.experiment.loaded import Loaded
    from airpath.experiment.positions import Path as KeyPath
    from airpath.experiment.problem import Problem

MOST_NOTES_BYTES = 1_000_000


@dataclass(frozen=True)
class Selector:
    """A metric as files name it: ``NAME[/uplink|/downlink]``."""

    text: str

    @property
    def direction(self) -> str:
        """The direction asked for, or nothing for all."""
        last = self.text.rpartition("/")[2]
        return last if last in DIRECTIONS and last != self.text else ""

    @property
    def name(self) -> str:
        """The metric's name by itself."""
        return self.text.removesuffix(f"/{self.direction}") if self.direction else self.text


def read_notes(loaded: Loaded) -> str:
    """Return the notes that the file names, or nothing.

    Raises:
        ValueError: they cannot be read; the message says why.

    """
    name = loaded.experiment.report.notes
    return read_text(loaded.file.parent / name) if name else ""


def read_text(path: Path) -> str:
    """Return a file of notes.

    Raises:
        ValueError: it is missing, no UTF-8, or longer than a page should be.

    """
    try:
        if path.stat().st_size > MOST_NOTES_BYTES:
            message = f"{path} has more than {MOST_NOTES_BYTES // 1_000_000} MB"
            raise ValueError(message)
        content = read_bytes(path)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise ValueError(message) from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text"
        raise ValueError(message) from error


def split_run(text: str) -> tuple[str, str]:
    """Return SET/CELL and REPLICATION of ``SET/CELL:REPLICATION``; the latter "" if missing."""
    cell, _, number = text.rpartition(":")
    return (cell, number) if cell else (text, "")


def problems(loaded: Loaded, cells: Sequence[Cell]) -> list[Problem]:
    """Return what is wrong with references and the report.

    Args:
        loaded: the experiment.
        cells: of all its sets.

    """
    experiment = loaded.experiment
    found: list[Problem] = []

    def wrong(path: KeyPath, what: str) -> None:
        found.append(loaded.problem(path, what))

    for index, reference in enumerate(experiment.references):
        here: KeyPath = ("references", index)
        for name in reference.metrics:
            if said := _unknown(name):
                wrong((*here, "metrics", name), f"reference `{reference.name}`: {said}")
        for pattern in reference.sets:
            if said := _unmatched(pattern, cells):
                wrong((*here, "sets"), f"reference `{reference.name}`: {said}")
    page = experiment.report
    for name in page.metrics:
        if said := _unknown(name):
            wrong(("report", "metrics"), f"report.metrics: {said}")
    try:
        read_notes(loaded)
    except ValueError as error:
        wrong(("report", "notes"), f"report.notes: {error}")
    for index, shown in enumerate(page.runs):
        said = _no_run(shown.run, cells)
        if said:
            wrong(("report", "runs", index), f"report.runs.{index}: {said}")
    return found


def _unknown(text: str) -> str:
    """Say that there is no such metric, if there is none."""
    # The registry fills as its modules are read, which takes a while and is rarely needed.
    import airpath.analysis.table  # noqa: F401
    from airpath.analysis.metric import REGISTRY

    selector = Selector(text)
    name = selector.name
    if name in REGISTRY:
        if selector.direction and REGISTRY[name].scope in ("run", "endpoint"):
            return f"`{name}` has no direction; leave `/{selector.direction}` away"
        return ""
    close = difflib.get_close_matches(name, REGISTRY, 1, 0.5)
    nearest = f"; did you mean `{close[0]}`?" if close else ""
    return f"there is no metric `{name}`{nearest} (airpath analyse --list names all)"


def _unmatched(pattern: str, cells: Iterable[Cell]) -> str:
    """Say that no cell has such a name, if none has."""
    keys = [cell.key for cell in cells]
    if any(fnmatchcase(key, pattern) for key in keys):
        return ""
    close = difflib.get_close_matches(pattern, keys, 1, 0.5)
    nearest = f"; did you mean `{close[0]}`?" if close else " (airpath plan FILE names all)"
    return f"no set has a cell `{pattern}`{nearest}"


def _no_run(text: str, cells: Sequence[Cell]) -> str:
    """Say that there is no such run, if there is none."""
    pattern, number = split_run(text)
    if not number:
        return f"`{text}` names no replication: SET/CELL:REPLICATION"
    if said := _unmatched(pattern, cells):
        return said
    most = max(cell.most for cell in cells if fnmatchcase(cell.key, pattern))
    if number.isdigit() and not 1 <= int(number) <= most:
        return f"there is no replication {number} of `{pattern}`, which has {most}"
    if not number.isdigit() and not set(number) & set("*?"):
        return f"`{number}` is no replication: a number from 1 on, or *"
    return ""
