"""The catalogue of a results folder: an index in SQLite that can be built anew from the folders.

What is true stands in the runs' folders (``replication.json``, ``tags.json``); the database only
makes it quick to ask.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airpath.experiment.folder import FolderError, write_atomically
from airpath.experiment.load import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from airpath.experiment.folder import Results

DATABASE = "catalogue.sqlite"
SCHEMA_VERSION = 1
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
CREATE TABLE parameters (path TEXT, name TEXT, value TEXT, PRIMARY KEY (path, name));
CREATE TABLE tags (path TEXT, tag TEXT, PRIMARY KEY (path, tag));
PRAGMA user_version = {SCHEMA_VERSION};
"""

_CONDITION = re.compile(r"\s*(.+?)\s*(<=|>=|!=|==?|<|>)\s*(.+?)\s*")


class FilterError(ValueError):
    """A condition that cannot be understood; the message says what would be."""


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
                "INSERT INTO tags VALUES (?, ?)", [(path, tag) for tag in _tags(folder, about)]
            )

    def _forget(self, path: str) -> None:
        for table in ("runs", "metrics", "parameters", "tags"):
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

    def names(self, table: str) -> list[str]:
        """Return the names of all metrics or parameters."""
        rows = self.database.execute(f"SELECT DISTINCT name FROM {table} ORDER BY name")
        return [row[0] for row in rows]

    def select(self, which: Filter) -> list[dict[str, Any]]:
        """Return the runs that a filter leaves, in the order of set, cell and replication.

        Raises:
            FilterError: a condition cannot be understood.

        """
        conditions: list[str] = []
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
            condition, its = self._condition(text)
            conditions.append(condition)
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
            found.append(run)
        return found

    def _condition(self, text: str) -> tuple[str, list[Any]]:
        found = _CONDITION.fullmatch(text)
        if not found:
            message = f"--where {text!r}: not NAME OPERATOR VALUE, such as 'elapsed < 20'"
            raise FilterError(message)
        name, operator, value = found.groups()
        operator = "=" if operator == "==" else operator
        amount: Any = value.strip("'\"")
        try:
            amount = float(value)
        except ValueError:
            if operator not in ("=", "!="):
                message = f"--where {text!r}: {value} is no number"
                raise FilterError(message) from None
        if name in COLUMNS:
            return f"{COLUMNS[name]} {operator} ?", [amount]
        for table in ("metrics", "parameters"):
            if name in self.names(table):
                column = "value"
                if table == "parameters" and isinstance(amount, float):
                    column = "CAST(value AS REAL)"
                inner = f"SELECT 1 FROM {table} m WHERE m.path = runs.path AND m.name = ?"
                return f"EXISTS ({inner} AND m.{column} {operator} ?)".replace(
                    "m.CAST(value", "CAST(m.value"
                ), [name, amount]
        known = [*COLUMNS, *self.names("metrics"), *self.names("parameters")]
        message = f"--where {text!r}: no run has `{name}`{nearest(name, known)}"
        raise FilterError(message)


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
