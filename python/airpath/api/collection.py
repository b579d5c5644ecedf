# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Collections of runs: found below a folder, filtered, shown."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol, TypeAlias, overload

from airpath import facts
from airpath.analysis.folders import Replication, find, is_run
from airpath.experiment.about import name_of_set, read_about
from airpath.experiment.catalogue import Filter, FilterError, open_catalogue
from airpath.experiment.folder import PLAN, open_results
from airpath.html import table
from airpath.nearest import nearest
from airpath.run import Run, RunError, load_run

VERDICTS = (*facts.VERDICTS, facts.NO_VERDICT)

DEPTH = 4
"""Depth of a run's folder below a results folder: runs/SET/CELL/NNNN."""

Words: TypeAlias = str | Sequence[str]
"""One name, or several of which any will do."""


class HasRuns(Protocol):
    """An object that holds a collection of runs, as an experiment's results do."""

    @property
    def runs(self) -> Runs:
        """The runs."""


RunsLike: TypeAlias = "Run | Replication | HasRuns | str | Path | Iterable[Run | Replication]"
"""One run or many: open or not, by folder, or a collection."""


class AirpathWarning(UserWarning):
    """Something that a reader of figures must know: runs left out, logs torn, workloads failed."""


def warn(notes: Iterable[str]) -> None:
    """Warn of each note, from where the user called."""
    for note in notes:
        warnings.warn(note, AirpathWarning, stacklevel=3)


class Runs(Sequence[Replication]):
    """Runs, each with the name of its set; immutable.

    ``runs[0].run`` opens one; ``runs.filter(verdict="trusted")`` is another collection.
    """

    def __init__(self, members: Iterable[Replication]) -> None:
        """Collect runs.

        Args:
            members: the runs, in order.

        """
        self._members = tuple(members)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._members)

    @overload
    def __getitem__(self, index: int) -> Replication: ...

    @overload
    def __getitem__(self, index: slice) -> Runs: ...

    def __getitem__(self, index: int | slice) -> Replication | Runs:
        """Return one run, or a part of the collection."""
        found = self._members[index]
        return found if isinstance(found, Replication) else Runs(found)

    def __repr__(self) -> str:
        """Return how many runs there are in which sets."""
        shown = ", ".join(self.sets[:3]) + (", …" if len(self.sets) > 3 else "")
        return f"<Runs: {len(self)} in {len(self.sets)} sets ({shown})>"

    def _repr_html_(self) -> str:
        verdicts: dict[str, Counter[str]] = {}
        for one in self:
            verdicts.setdefault(one.set_name, Counter())[load_run(one.directory).verdict] += 1
        rows = [
            (name, str(found.total()), ", ".join(f"{n} {verdict}" for verdict, n in found.items()))
            for name, found in verdicts.items()
        ]
        return table(f"{len(self)} runs", ["set", "runs", "verdicts"], rows)

    @property
    def sets(self) -> list[str]:
        """The names of the sets, in order."""
        return list(dict.fromkeys(one.set_name for one in self._members))

    def filter(
        self,
        *,
        set: Words | None = None,  # noqa: A002 - as the column and the option are called
        verdict: Words | None = None,
        cell: Words | None = None,
        status: Words | None = None,
        tag: Words | None = None,
        where: Words | Callable[[Run], bool] | None = None,
    ) -> Runs:
        """Return the runs for which all conditions hold.

        ``cell``, ``status``, ``tag`` and conditions as text ask an experiment's catalogue, as
        ``airpath results`` does, and are for runs of experiments only.

        Args:
            set: names of sets; ``*`` stands for any characters. Of a run of an experiment,
                SET/CELL, and SET for all of its cells.
            verdict: trusted, suspect, invalid or unknown.
            cell: names of cells.
            status: succeeded, failed or broken.
            tag: tags, of which a run must have every one.
            where: a comparison of a column, metric or swept parameter with a value, such as
                ``"elapsed < 20"``, or several that all hold; or a function of an open run.

        Raises:
            FilterError: there is no such set or verdict, a condition cannot be understood, or a
                run is not of an experiment.
            RunError: a run could not be read.

        """
        kept = self._members
        if set is not None:
            kept = tuple(self._of_sets(_words(set)))
        if verdict is not None:
            wanted = _words(verdict)
            for word in wanted:
                if word not in VERDICTS:
                    message = f"verdict {word!r}: there is none{nearest(word, VERDICTS)}"
                    raise FilterError(message)
            kept = tuple(one for one in kept if load_run(one.directory).verdict in wanted)
        conditions = () if where is None or callable(where) else _words(where)
        which = Filter(
            cells=_words(cell), statuses=_words(status), tags=_words(tag), where=conditions
        )
        if which != Filter():
            kept = tuple(_in_catalogue(kept, which))
        if callable(where):
            kept = tuple(one for one in kept if where(load_run(one.directory)))
        return Runs(kept)

    def _of_sets(self, patterns: Sequence[str]) -> list[Replication]:
        first = {one.set_name: one for one in reversed(self._members)}
        known: dict[str, set[str]] = {}
        for name in self.sets:
            about = read_about(first[name].directory)
            known[name] = {name, name.partition("/")[0]}
            if about:
                known[name] |= {name_of_set(about), str(about["set_name"])}
        matching: set[str] = set()
        for pattern in patterns:
            found = [
                name
                for name, others in known.items()
                if pattern in others or any(fnmatchcase(other, pattern) for other in others)
            ]
            if not found:
                message = f"set {pattern!r}: there is none{nearest(pattern, known)}"
                raise FilterError(message)
            matching.update(found)
        return [one for one in self._members if one.set_name in matching]


def load(path: str | Path) -> Run:
    """Open a run's folder.

    Args:
        path: the folder, as given to ``--out``.

    Returns:
        The run. ``run.events`` (every event of the link), ``run.captures["client"]`` and
        ``["server"]`` (packets at both ends) and ``run.tcp_state`` (what the kernels knew of their
        TCP) are polars frames, read when first asked for, with times in ns since the run began.

    Raises:
        RunError: it holds no run that could be read.

    """
    return load_run(Path(path))


def runs(*paths: str | Path) -> Runs:
    """Find the runs at or below folders, each with the name of its set.

    A folder of runs is a set of replications, named by its path below the folder named here; in a
    folder of ``airpath run`` a set is SET/CELL.

    Raises:
        RunError: there is none.

    """
    folders = [Path(path) for path in paths]
    if len(folders) == 1 and (folders[0] / PLAN).is_file():
        return of_experiment(folders[0])
    return Runs(find(folders))


def of_experiment(root: Path) -> Runs:
    """Return the runs in a results folder of ``airpath run``; broken ones left no run.

    Raises:
        RunError: there is none.

    """
    members = []
    for directory in sorted(root.glob("runs/*/*/*")):
        about = read_about(directory)
        if about and is_run(directory):
            members.append(Replication(name_of_set(about), directory.name, directory))
    if not members:
        message = f"{root}: none of its replications left a run"
        raise RunError(message)
    return Runs(members)


def gather(what: RunsLike) -> list[Run | Replication]:
    """Return the runs that are meant.

    Raises:
        RunError: there is none, or two sets bear one name.

    """
    if isinstance(what, Run | Replication):
        return [what]
    if isinstance(what, str | Path):
        return list(runs(what))
    members: Iterable[Run | Replication] = (
        what if isinstance(what, Iterable) else what.runs  # of an experiment's results
    )
    found = list(members)
    if not found:
        message = "no runs: a filter left none, or the collection was empty"
        raise RunError(message)
    origin: dict[str, Path] = {}
    for one in found:
        if isinstance(one, Replication):
            holder = one.directory.resolve().parent
            if origin.setdefault(one.set_name, holder) != holder:
                message = (
                    f"two sets are called {one.set_name}: {origin[one.set_name]} and {holder}; "
                    f"find them from the folder above both, or name them apart"
                )
                raise RunError(message)
    return found


def _words(words: Words | None) -> tuple[str, ...]:
    if words is None:
        return ()
    return (words,) if isinstance(words, str) else tuple(words)


def _in_catalogue(members: Iterable[Replication], which: Filter) -> list[Replication]:
    selected: dict[Path, frozenset[str]] = {}
    kept = []
    for one in members:
        directory = one.directory.resolve()
        root = directory.parents[DEPTH - 1] if len(directory.parents) >= DEPTH else directory
        if not (root / PLAN).is_file():
            message = (
                f"{one.directory} is not of an experiment, and only those have cells, statuses, "
                f"tags and conditions as text; give a function to where"
            )
            raise FilterError(message)
        if root not in selected:
            with open_catalogue(open_results(root), lambda line: warn([line])) as catalogue:
                try:
                    rows = catalogue.select(which)
                except FilterError as error:
                    raise FilterError(str(error).removeprefix("--")) from error
            selected[root] = frozenset(row["path"] for row in rows)
        if directory.relative_to(root).as_posix() in selected[root]:
            kept.append(one)
    return kept
