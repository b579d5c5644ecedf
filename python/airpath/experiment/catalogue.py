# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The catalogue of a results folder: an index in SQLite that can be built anew from the folders.

What is true stands in the runs' folders (``replication.json``, ``tags.json``); the database only
makes it quick to ask.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
import sqlite3
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from airpath.experiment.about import RecordError, read_record
from airpath.experiment.folder import FolderError
from airpath.experiment.metrics import MetricError, measured, metric_of, needed, pick
from airpath.facts import FILES
from airpath.files import read_text, told, write_whole
from airpath.jsontext import parse_json
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from airpath.experiment.folder import Results

DATABASE = "catalogue.sqlite"
SCHEMA_VERSION = 2
TAGS = "tags.json"

COLUMNS = {
    "set": "set_name",
    "cell": "cell",
    "replication": "replication",
    "network": "network",
    "workload": "workload",
    "clock": "clock",
    "seed": "seed",
    "attempt": "attempt",
    "status": "status",
    "verdict": "verdict",
    "wall_s": "wall_s",
    "size_bytes": "size_bytes",
}
"""Queries of every run, and their columns."""

_TABLES = {
    "runs": (
        "path TEXT PRIMARY KEY, set_name TEXT, cell TEXT, replication INTEGER, network TEXT, "
        "workload TEXT, clock TEXT, seed INTEGER, attempt INTEGER, status TEXT, verdict TEXT, "
        "message TEXT, wall_s REAL, size_bytes INTEGER, ended_unix_s REAL"
    ),
    "metrics": "path TEXT, name TEXT, value REAL, PRIMARY KEY (path, name)",
    "measured": "path TEXT, name TEXT, PRIMARY KEY (path, name)",
    "parameters": "path TEXT, name TEXT, value TEXT, PRIMARY KEY (path, name)",
    "tags": "path TEXT, tag TEXT, PRIMARY KEY (path, tag)",
}
_SCHEMA = {name: f"CREATE TABLE {name} ({columns})" for name, columns in _TABLES.items()}
_RECORDED = (
    "set_name", "cell", "replication", "network", "workload", "clock", "seed", "attempt", "status",
    "verdict", "message", "wall_s", "size_bytes", "ended_unix_s",
)  # fmt: skip
"""Parts of a run's record that are columns of their own."""

_CONDITION = re.compile(r"\s*(.+?)\s*(<=|>=|!=|==?|<|>)\s*(.+?)\s*")


class FilterError(ValueError):
    """A condition that cannot be understood; the message says what would be."""


_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Condition:
    """A comparison of ``--where``."""

    text: str
    name: str
    operator: str
    value: str

    def __str__(self) -> str:
        """Return it as it was given."""
        return f"--where {self.text!r}"

    def number(self) -> float:
        """Return the value as a number.

        Raises:
            FilterError: it is none.

        """
        try:
            return float(self.value)
        except ValueError:
            message = f"{self}: {self.value} is no number"
            raise FilterError(message) from None

    def holds(self, metrics: dict[str, float]) -> bool:
        """Say whether it holds for a run with such metrics; not for one without this one.

        Raises:
            FilterError: it means several values of the run.

        """
        try:
            found = pick(metrics, self.name)
        except MetricError as error:
            message = f"{self}: {error}"
            raise FilterError(message) from error
        return found is not None and _OPERATORS[self.operator](found, self.number())


def read_condition(text: str) -> Condition:
    """Return what a condition says.

    Raises:
        FilterError: it cannot be understood.

    """
    found = _CONDITION.fullmatch(text)
    if not found:
        message = f"--where {text!r}: not NAME OPERATOR VALUE, such as 'elapsed < 20'"
        raise FilterError(message)
    name, sign, value = found.groups()
    return Condition(text, name, "=" if sign == "==" else sign, value.strip("'\""))


@dataclass(frozen=True)
class Filter:
    """Conditions on runs; all of them hold."""

    sets: Sequence[str] = ()
    cells: Sequence[str] = ()
    verdicts: Sequence[str] = ()
    statuses: Sequence[str] = ()
    tags: Sequence[str] = ()
    where: Sequence[str] = ()


class CatalogueError(FolderError):
    """The index is damaged, half-made, or of another version; it can be built anew."""


class Catalogue:
    """The index of one results folder."""

    def __init__(self, root: Path, *, in_memory: bool = False) -> None:
        """Open the index, or make an empty one.

        Args:
            root: the results folder.
            in_memory: make an empty one that no file keeps.

        Raises:
            CatalogueError: it is no index that can be used.
            FolderError: it cannot be written.

        """
        self.root = root
        self.path = root / DATABASE
        if not in_memory:
            _refuse_what_is_no_file(self.path)
        self.database = sqlite3.connect(":memory:" if in_memory else self.path, timeout=30)
        try:
            with self._errors_named():
                self._begin()
        except BaseException:
            self.database.close()
            raise

    def _begin(self) -> None:
        version = self.database.execute("PRAGMA user_version").fetchone()[0]
        there = self._tables()
        if version == 0 and not there:
            # All of it or nothing: a process may be killed between any two statements.
            self.database.execute("BEGIN IMMEDIATE")
            with self.database:
                # Another one may have been quicker.
                if not self._tables():
                    for statement in _SCHEMA.values():
                        self.database.execute(statement)
                    self.database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            version, there = SCHEMA_VERSION, self._tables()
        if version not in (0, SCHEMA_VERSION):
            message = f"{self.path} has version {version}, and this Airpath knows {SCHEMA_VERSION}"
            raise CatalogueError(message)
        if version == 0 or there != _SCHEMA:
            message = f"{self.path} is half-made"
            raise CatalogueError(message)
        found = self.database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            message = f"{self.path} is damaged: {' '.join(str(found).split())}"
            raise CatalogueError(message)

    def _tables(self) -> dict[str, str]:
        rows = self.database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return dict(rows.fetchall())

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Tell errors of the database by the file's name.

        Raises:
            CatalogueError: the database is damaged.
            FolderError: it cannot be used for another reason: a lock, a full disk.

        """
        try:
            yield
        except sqlite3.OperationalError as error:
            if any(word in str(error) for word in ("locked", "full", "readonly", "unable", "I/O")):
                message = f"{self.path}: {error}"
                raise FolderError(message) from error
            message = f"{self.path} is damaged: {error}"
            raise CatalogueError(message) from error
        # Values may be of types, and texts of bytes, that they never are.
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            if isinstance(error, FilterError | MetricError):
                raise
            message = f"{self.path} is damaged: {error}"
            raise CatalogueError(message) from error

    def __enter__(self) -> Self:
        """Return the catalogue."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database."""
        self.database.close()

    def follow(self, results: Results) -> None:
        """Bring the index to what the journal says is complete."""
        with self._errors_named(), self.database:
            wanted = {f"runs/{s}/{c}/{n:04}" for s, c, n in results.done}
            there = {row[0] for row in self.database.execute("SELECT path FROM runs")}
            for path in there - wanted:
                self._forget(path)
            for path in sorted(wanted - there):
                with suppress(RecordError):
                    self._add(self.root / path)

    def add_folder(self, folder: Path) -> None:
        """Add a run from its folder, or bring it up to date; without a record it is passed over."""
        with self._errors_named(), suppress(RecordError), self.database:
            self._add(folder)

    def _add(self, folder: Path) -> None:
        about = read_record(folder)
        path = str(folder.relative_to(self.root))
        self._forget(path)
        # SQLite's integers have a sign.
        told = about | {"seed": about["seed"] if about["seed"] < 2**63 else str(about["seed"])}
        columns = ", ".join("?" * (1 + len(_RECORDED)))
        self.database.execute(
            f"INSERT INTO runs VALUES ({columns})", [path, *(told[key] for key in _RECORDED)]
        )
        for table in ("metrics", "parameters"):
            self.database.executemany(
                f"INSERT INTO {table} VALUES (?, ?, ?)",
                [(path, key, value) for key, value in about[table].items()],
            )
        self.database.executemany(
            "INSERT OR IGNORE INTO measured VALUES (?, ?)",
            [(path, name) for name in about.get("measured", ())],
        )
        self.database.executemany(
            "INSERT OR IGNORE INTO tags VALUES (?, ?)",
            [(path, tag) for tag in _tags(folder, about)],
        )

    def add_all(self, problems: list[str]) -> int:
        """Add all runs of the folder; return how many there are.

        Args:
            problems: told of which runs the record cannot be read, and why.

        """
        count = 0
        with self._errors_named(), self.database:
            for folder in sorted(self.root.glob("runs/*/*/*")):
                if not folder.name.isdecimal() or not folder.is_dir():
                    continue
                try:
                    self._add(folder)
                    count += 1
                except RecordError as error:
                    problems.append(str(error))
        return count

    def _forget(self, path: str) -> None:
        for table in ("runs", "metrics", "measured", "parameters", "tags"):
            self.database.execute(f"DELETE FROM {table} WHERE path = ?", [path])

    def forget(self, path: str) -> None:
        """Take a run out of the index."""
        with self._errors_named(), self.database:
            self._forget(path)

    def tag(self, path: str, add: Sequence[str], take: Sequence[str]) -> None:
        """Give a run tags and take tags away; they are kept in its folder."""
        folder = self.root / path
        try:
            about = read_record(folder)
        except RecordError as error:
            message = f"{error}; it has no tags"
            raise FolderError(message) from error
        tags = [tag for tag in _tags(folder, about) if tag not in take]
        tags += [tag for tag in add if tag not in tags]
        write_whole(folder / TAGS, json.dumps(tags) + "\n", sync=True)
        self.add_folder(folder)

    def names(self, column: str) -> list[str]:
        """Return what stands in a column of the runs, each once."""
        with self._errors_named():
            rows = self.database.execute(f"SELECT DISTINCT {COLUMNS[column]} FROM runs ORDER BY 1")
            return [str(row[0]) for row in rows]

    def parameters(self) -> list[str]:
        """Return the names of all parameters that were swept."""
        with self._errors_named():
            rows = self.database.execute("SELECT DISTINCT name FROM parameters ORDER BY name")
            return [str(row[0]) for row in rows]

    def measure(
        self, which: Filter, metrics: Sequence[str], progress: Callable[[int, int], None]
    ) -> list[str]:
        """Measure what has not been measured yet of the selected runs, and keep it.

        Args:
            which: the runs; conditions over metrics are not looked at.
            metrics: names, with places or without.
            progress: told how many runs have been looked at, of how many.

        Returns:
            what could not be measured, and why.

        Raises:
            MetricError: a name is no metric's.

        """
        wanted = {metric_of(text).name for text in metrics}
        notes = []
        rows = self.select(replace(which, where=())) if wanted else []
        for number, row in enumerate(rows):
            progress(number, len(rows))
            path = row["path"]
            there = self.database.execute("SELECT name FROM measured WHERE path = ?", [path])
            left = wanted - {one[0] for one in there}
            if not left or not (self.root / path / FILES["manifest"]).is_file():
                continue
            names = needed(left)
            try:
                found = measured(self.root / path, names)
            except RunError as error:
                notes.append(f"not measured: {error}")
                continue
            with self._errors_named(), self.database:
                self.database.executemany(
                    "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?)",
                    [(path, key, value) for key, value in found.items()],
                )
                self.database.executemany(
                    "INSERT OR IGNORE INTO measured VALUES (?, ?)", [(path, one) for one in names]
                )
        return notes

    def select(self, which: Filter) -> list[dict[str, Any]]:
        """Return the runs that a filter leaves, in the order of set, cell and replication.

        Raises:
            FilterError: a condition cannot be understood.

        """
        conditions: list[str] = []
        of_metrics: list[Condition] = []
        values: list[Any] = []
        for column, words in (
            ("set_name", which.sets),
            ("cell", which.cells),
            ("verdict", which.verdicts),
            ("status", which.statuses),
        ):
            if words:
                conditions.append(f"{column} IN ({', '.join('?' * len(words))})")
                values += words
        for tag in which.tags:
            conditions.append("EXISTS (SELECT 1 FROM tags t WHERE t.path = runs.path AND tag = ?)")
            values.append(tag)
        for text in which.where:
            condition = read_condition(text)
            if self._is_metric(condition):
                of_metrics.append(condition)
                continue
            phrase, its = self._phrase(condition)
            conditions.append(phrase)
            values += its
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        with self._errors_named():
            return [
                run
                for run in map(self._run, self._rows(where, values))
                if all(condition.holds(run["metrics"]) for condition in of_metrics)
            ]

    def _rows(self, where: str, values: list[Any]) -> list[dict[str, Any]]:
        found = self.database.execute(
            f"SELECT * FROM runs{where} ORDER BY set_name, cell, replication", values
        )
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _run(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a run as it is shown.

        Raises:
            TypeError: a value is of a type that it never is.

        """
        for name, kinds in _KINDS.items():
            if not isinstance(row[name], kinds):
                message = f"{name} of {row['path']!r} is {row[name]!r:.40}"
                raise TypeError(message)
        path = f"runs/{row['set_name']}/{row['cell']}/{row['replication']:04}"
        if row["path"] != path:
            message = f"{row['path']!r} is not the path of {path!r}"
            raise TypeError(message)
        run = {"set": row.pop("set_name"), **row}
        for table in ("metrics", "parameters"):
            run[table] = dict(
                self.database.execute(
                    f"SELECT name, value FROM {table} WHERE path = ? ORDER BY rowid", [path]
                ).fetchall()
            )
            if not all(isinstance(name, str) for name in run[table]):
                message = f"a name in the {table} of {path} is no text"
                raise TypeError(message)
        if any(not isinstance(value, int | float) for value in run["metrics"].values()):
            message = f"a metric of {path} is no number"
            raise TypeError(message)
        tags = "SELECT tag FROM tags WHERE path = ? ORDER BY rowid"
        run["tags"] = [str(one[0]) for one in self.database.execute(tags, [path])]
        return run

    def metrics_of(self, which: Filter) -> list[str]:
        """Return the metrics that a filter's conditions are over.

        Raises:
            FilterError: a condition cannot be understood.

        """
        conditions = [read_condition(text) for text in which.where]
        return [one.name for one in conditions if self._is_metric(one)]

    def _is_metric(self, condition: Condition) -> bool:
        if condition.name in COLUMNS or condition.name in self.parameters():
            return False
        try:
            metric_of(condition.name)
        except MetricError as error:
            names = [*COLUMNS, *self.parameters()]
            # A swept parameter is named by its last word in the names of cells.
            close = [one for one in names if one.endswith(f".{condition.name}")]
            close = close or difflib.get_close_matches(condition.name, names, 1, 0.8)
            meant = f"no run has `{condition.name}`; did you mean `{close[0]}`?" if close else error
            message = f"{condition}: {meant}"
            raise FilterError(message) from None
        condition.number()
        return True

    def _phrase(self, condition: Condition) -> tuple[str, list[Any]]:
        """Return a condition over a column or a parameter for the database, and its values."""
        amount: Any = condition.value
        with suppress(ValueError):
            amount = float(amount)
        if condition.operator not in ("=", "!="):
            amount = condition.number()
        if condition.name in COLUMNS:
            return f"{COLUMNS[condition.name]} {condition.operator} ?", [amount]
        column = "CAST(m.value AS REAL)" if isinstance(amount, float) else "m.value"
        inner = "SELECT 1 FROM parameters m WHERE m.path = runs.path AND m.name = ?"
        return f"EXISTS ({inner} AND {column} {condition.operator} ?)", [condition.name, amount]


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("path", "set_name", "cell", "status", "verdict", "message"), str),
    **dict.fromkeys(("replication", "attempt", "size_bytes"), int),
    "seed": (int, str),
    "wall_s": (int, float),
}
"""Of columns whose values are counted with, or lead to folders."""


def _refuse_what_is_no_file(path: Path) -> None:
    # SQLite would follow a link, and make a file where it leads.
    if path.is_symlink() or (path.exists() and not path.is_file()):
        message = f"{path} is no ordinary file; take it away, the catalogue is built anew then"
        raise FolderError(message)


def rebuild(root: Path, problems: list[str] | None = None) -> int:
    """Build the index anew from the folders; return how many runs it has.

    For the holder of the folder's lock: whoever has the old one open would write into nothing.

    Args:
        root: the results folder.
        problems: told of which runs the record cannot be read, and why.

    Raises:
        FolderError: it cannot be written.

    """
    _refuse_what_is_no_file(root / DATABASE)
    fresh = Catalogue(root, in_memory=True)
    with fresh:
        count = fresh.add_all([] if problems is None else problems)
        content = fresh.database.serialize()
    try:
        # With its journal SQLite would change the new one.
        (root / f"{DATABASE}-journal").unlink(missing_ok=True)
        write_whole(root / DATABASE, content, sync=True)
    except OSError as error:
        raise FolderError(told(error)) from error
    return count


def open_catalogue(results: Results, tell: Callable[[str], None]) -> Catalogue:
    """Open the index of a results folder; build it anew if it is missing or cannot be used.

    Where it cannot be written, or somebody else works in the folder, the new one is in memory.

    Args:
        results: the folder; whoever will change it has locked it.
        tell: takes lines for the user.

    Raises:
        FolderError: the index cannot be used for another reason than damage.

    """
    why = ""
    path = results.root / DATABASE
    if path.is_file() and not path.stat().st_size:
        # As a killed process, or a full disk, may leave it: an index of no runs is longer.
        why = f"{path} is empty"
    elif path.exists():
        try:
            return Catalogue(results.root)
        except CatalogueError as error:
            why = str(error)
    mine = not results.locked
    problems: list[str] = []
    try:
        if mine:
            results.lock()
        try:
            rebuild(results.root, problems)
            made = Catalogue(results.root)
        finally:
            if mine:
                results.close()
        how = "built anew from the runs' folders"
    except (FolderError, OSError):
        if not mine:
            raise
        made = Catalogue(results.root, in_memory=True)
        made.add_all(problems)
        how = "read from the runs' folders for now"
    if why:
        tell(f"{why}; the catalogue was {how}")
    for problem in problems:
        tell(f"{problem}; the run is not in the catalogue")
    return made


def _tags(folder: Path, about: dict[str, Any]) -> list[str]:
    tags = about["tags"]
    with suppress(OSError, ValueError):
        tags = parse_json(read_text(folder / TAGS))
    return list(dict.fromkeys(map(str, tags))) if isinstance(tags, list) else []
