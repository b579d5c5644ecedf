# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs below a folder, and their grouping into sets of replications."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from airpath.experiment.folder import PLAN
from airpath.facts import FILES_OF_A_RUN
from airpath.run import NoRunError, Run, RunError, load_run


@dataclass(frozen=True)
class Replication:
    """One run, with its place in a set."""

    set_name: str
    """The folder that holds the replications, as seen from the folder that was named; for a run
    by itself its own."""
    name: str
    """The run's own folder."""
    directory: Path

    @cached_property
    def run(self) -> Run:
        """The run; read anew for each object, so that its logs can be let go with it."""
        return load_run(self.directory)


def is_run(directory: Path) -> bool:
    """Return true if the folder is one of a run."""
    return any((directory / name).is_file() for name in FILES_OF_A_RUN)


def find(paths: list[Path]) -> list[Replication]:
    """Find the runs at or below folders, in order of path.

    A folder of runs is a set of replications, named by its path below the folder that was named; so
    a folder of sets, cells of sets, or single runs may be given. Those of an experiment's results
    are named SET/CELL.

    Raises:
        NoRunError: a folder does not exist, or holds no run.
        RunError: a folder cannot be read, or two sets bear one name.

    """
    found: list[Replication] = []
    origin: dict[str, Path] = {}
    for path in paths:
        if not path.is_dir():
            message = f"{path}: no such folder; name one given to --out, or one with runs below it"
            raise NoRunError(message)
        try:
            here = _below(path)
        except OSError as error:
            message = f"{path}: cannot be searched for runs: {error}"
            raise RunError(message) from error
        if not here:
            message = (
                f"{path}: no run in it or below it (a run's folder holds run.json); "
                f"airpath exec and airpath sim leave one with --out"
            )
            raise NoRunError(message)
        for directory in here:
            holder = directory if directory == path else directory.parent
            inside = holder.relative_to(path).as_posix()
            if (path / PLAN).is_file():
                inside = inside.removeprefix("runs/")
            own = path.resolve().name
            name = own if inside == "." else inside if len(paths) == 1 else f"{own}/{inside}"
            if origin.setdefault(name, holder.resolve()) != holder.resolve():
                message = (
                    f"two sets are called {name}: {origin[name]} and {holder.resolve()}; "
                    f"name the folder above both"
                )
                raise RunError(message)
            found.append(Replication(name, directory.name, directory))
    unique = {one.directory.resolve(): one for one in found}
    return list(unique.values())


def _below(path: Path) -> list[Path]:
    """Return the folders of runs at or below a path; a run's own folder is not searched."""
    if is_run(path):
        return [path]
    children = sorted(child for child in path.iterdir() if child.is_dir())
    return [run for child in children for run in _below(child)]
