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
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from airpath.experiment.folder import FolderError, write_atomically
from airpath.experiment.metrics import MetricError, measured, metric_of, needed, pick
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence
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
"""What can be asked of every run, and its column."""

_SCHEMA = f"""
CREATE TABLE runs (
    path TEXT PRIMARY KEY, set_name TEXT, cell TEXT, replication INTEGER, network TEXT,
    workload TEXT, clock TEXT, seed INTEGER, attempt INTEGER, status TEXT, verdict TEXT,
    message TEXT, wall_s REAL, size_bytes INTEGER, ended_unix_s REAL
);
CREATE TABLE metrics (path TEXT, name TEXT, value REAL, PRIMARY KEY (path, name));
CREATE TABLE measured (path TEXT, name TEXT, PRIMARY KEY (path, name));
CREATE TABLE parameters (path TEXT, name TEXT, value TEXT, PRIMARY KEY (path, name));
CREATE TABLE tags (path TEXT, tag TEXT, PRIMARY KEY (path, tag));
PRAGMA user_version = {SCHEMA_VERSION};
"""

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
    """Which runs are meant; all conditions hold."""

    sets: Sequence[str] = ()
    cells: Sequence[str] = ()
    verdicts: Sequence[str] = ()
    statuses: Sequence[str] = ()
    tags: Sequence[str] = ()
    where: Sequence[str] = ()


class Catalogue:
    """The index of one results folder."""

    def __init__(self, root: Path) -> None:
        """Open the index, or make an empty one.

        Raises:
            FolderError: the database is damaged or cannot be written.

        """
        self.root = root
        self.path = root / DATABASE
        try:
            self.database = sqlite3.connect(self.path, timeout=30)
            version = self.database.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                self.database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            message = (
                f"{self.path}: {error}; it is an index only: delete it, and build it anew with "
                f"airpath results {root} --rebuild"
            )
            raise FolderError(message) from error
        if version not in (0, SCHEMA_VERSION):
            self.database.close()
            message = (
                f"{self.path} has version {version} and this Airpath knows {SCHEMA_VERSION}; "
                f"build it anew with airpath results {root} --rebuild"
            )
            raise FolderError(message)

    def __enter__(self) -> Self:
        """Return the catalogue."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database."""
        self.database.close()

    def follow(self, results: Results) -> None:
        """Bring the index to what the journal says is complete."""
        wanted = {f"runs/{s}/{c}/{n:04}" for s, c, n in results.done}
        there = {row[0] for row in self.database.execute("SELECT path FROM runs")}
        with self.database:
            for path in there - wanted:
                self._forget(path)
        for path in sorted(wanted - there):
            self.add_folder(self.root / path)

    def add_folder(self, folder: Path) -> None:
        """Add a run from its folder, or bring it up to date."""
        try:
            about = json.loads((folder / "replication.json").read_text())
        except (OSError, ValueError):
            return
        path = str(folder.relative_to(self.root))
        with self.database:
            self._forget(path)
            self.database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    path,
                    *(
                        about[key]
                        for key in (
                            "set_name",
                            "cell",
                            "replication",
                            "network",
                            "workload",
                            "clock",
                        )
                    ),
                    # SQLite's integers have a sign.
                    about["seed"] if about["seed"] < 2**63 else str(about["seed"]),
                    *(
                        about[key]
                        for key in (
                            "attempt",
                            "status",
                            "verdict",
                            "message",
                            "wall_s",
                            "size_bytes",
                            "ended_unix_s",
                        )
                    ),
                ],
            )
            for table in ("metrics", "parameters"):
                self.database.executemany(
                    f"INSERT INTO {table} VALUES (?, ?, ?)",
                    [(path, key, value) for key, value in about[table].items()],
                )
            self.database.executemany(
                "INSERT INTO measured VALUES (?, ?)",
                [(path, name) for name in about.get("measured", ())],
            )
            self.database.executemany(
                "INSERT INTO tags VALUES (?, ?)", [(path, tag) for tag in _tags(folder, about)]
            )

    def _forget(self, path: str) -> None:
        for table in ("runs", "metrics", "measured", "parameters", "tags"):
            self.database.execute(f"DELETE FROM {table} WHERE path = ?", [path])

    def forget(self, path: str) -> None:
        """Take a run out of the index."""
        with self.database:
            self._forget(path)

    def tag(self, path: str, add: Sequence[str], take: Sequence[str]) -> None:
        """Give a run tags and take tags away; they are kept in its folder."""
        folder = self.root / path
        about = json.loads((folder / "replication.json").read_text())
        tags = [tag for tag in _tags(folder, about) if tag not in take]
        tags += [tag for tag in add if tag not in tags]
        write_atomically(folder / TAGS, json.dumps(tags) + "\n")
        self.add_folder(folder)

    def names(self, column: str) -> list[str]:
        """Return what stands in a column of the runs, each once."""
        rows = self.database.execute(f"SELECT DISTINCT {COLUMNS[column]} FROM runs ORDER BY 1")
        return [str(row[0]) for row in rows]

    def parameters(self) -> list[str]:
        """Return the names of all parameters that were swept."""
        rows = self.database.execute("SELECT DISTINCT name FROM parameters ORDER BY name")
        return [row[0] for row in rows]

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
            if not left or not (self.root / path / "run.json").is_file():
                continue
            names = needed(left)
            try:
                found = measured(self.root / path, names)
            except RunError as error:
                notes.append(f"not measured: {error}")
                continue
            with self.database:
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
        self.database.row_factory = sqlite3.Row
        rows = self.database.execute(
            f"SELECT * FROM runs{where} ORDER BY set_name, cell, replication",
            values,
        ).fetchall()
        found = []
        for row in rows:
            run = dict(row)
            run["set"] = run.pop("set_name")
            for table in ("metrics", "parameters"):
                run[table] = dict(
                    self.database.execute(
                        f"SELECT name, value FROM {table} WHERE path = ? ORDER BY rowid",
                        [run["path"]],
                    ).fetchall()
                )
            run["tags"] = [
                r[0]
                for r in self.database.execute(
                    "SELECT tag FROM tags WHERE path = ? ORDER BY rowid", [run["path"]]
                )
            ]
            if all(condition.holds(run["metrics"]) for condition in of_metrics):
                found.append(run)
        return found

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


def rebuild(root: Path) -> int:
    """Build the index anew from the folders; return how many runs it has."""
    for name in (DATABASE, f"{DATABASE}-journal"):
        (root / name).unlink(missing_ok=True)
    with Catalogue(root) as catalogue:
        for about in sorted(root.glob("runs/*/*/*/replication.json")):
            if about.parent.name.isdecimal():
                catalogue.add_folder(about.parent)
        count = catalogue.database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]
    return int(count)


def _tags(folder: Path, about: dict[str, Any]) -> list[str]:
    try:
        tags = json.loads((folder / TAGS).read_text())
    except (OSError, ValueError):
        tags = about["tags"]
    return [str(tag) for tag in tags] if isinstance(tags, list) else []
