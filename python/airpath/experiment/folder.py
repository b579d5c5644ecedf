"""A results folder: its lock, its version, and the journal of what is complete.

The journal has a line of JSON for each fact, written and synced before anything is built on it. A
line that was cut off by a crash is as if it had never been.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_VERSION = 1
"""The format of results folders that this version writes and reads."""

JOURNAL = "journal"
PLAN = "plan.json"
COPY = "experiment.toml"
NOTES = "report-notes.md"
"""A copy of the notes that the experiment's file names for its report."""

LOCK = "lock"

Key = tuple[str, str, int]
"""Set, cell, replication."""


class FolderError(Exception):
    """A results folder that cannot be used; the message says why and what to do."""


@dataclass
class Results:
    """A results folder that is open for writing, or was read."""

    root: Path
    done: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """The last completion of each replication, as the journal has it."""

    _lock: int = -1

    @property
    def journal(self) -> Path:
        """The journal's path."""
        return self.root / JOURNAL

    def write(self, kind: str, **content: Any) -> None:
        """Add a line to the journal; it is on the disk when this returns."""
        line = json.dumps({"kind": kind, "unix_s": round(time.time(), 3), **content}) + "\n"
        handle = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        self._apply(json.loads(line))

    def _apply(self, entry: dict[str, Any]) -> None:
        key = (str(entry.get("set")), str(entry.get("cell")), int(entry.get("replication", 0)))
        if entry["kind"] == "done":
            self.done[key] = entry
        elif entry["kind"] in ("removed", "rerun"):
            self.done.pop(key, None)

    def read(self) -> None:
        """Read the journal.

        Raises:
            FolderError: a line other than the last is no entry.

        """
        self.done.clear()
        if not self.journal.exists():
            return
        lines = self.journal.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], 1):
            try:
                entry = json.loads(line)
                self._apply(entry)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                message = (
                    f"{self.journal}:{number}: no entry of a journal; "
                    f"take the line out to go on without that replication"
                )
                raise FolderError(message) from error

    def lock(self) -> None:
        """Make sure that nobody else works in the folder.

        Raises:
            FolderError: somebody does.

        """
        self._lock = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            who = os.read(self._lock, 32).decode(errors="replace").strip()
            os.close(self._lock)
            self._lock = -1
            message = (
                f"{self.root} is in use by another airpath run (process {who or 'unknown'}); "
                f"wait for it, or name another folder with --out"
            )
            raise FolderError(message) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Give the folder free."""
        if self._lock >= 0:
            with suppress(OSError):
                os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = -1

    def repair(self) -> None:
        """Cut a torn last line off, so that the next one begins a line; for the lock's holder."""
        if not self.journal.exists():
            return
        content = self.journal.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with self.journal.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())


def open_results(root: Path) -> Results:
    """Open a folder that exists, for reading.

    Raises:
        FolderError: it is none, or a newer Airpath wrote it.

    """
    path = root / PLAN
    if not path.is_file():
        message = f"{root} is no results folder of airpath run: it has no {PLAN}"
        raise FolderError(message)
    try:
        plan = json.loads(path.read_text())
        version = plan["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged; airpath run --resume writes it anew"
        if not isinstance(error, KeyError | TypeError):
            raise FolderError(message) from error
        version = 0
    check_version(version, root)
    results = Results(root)
    results.read()
    return results


def check_version(version: Any, root: Path) -> None:
    """Refuse a folder of another format.

    Raises:
        FolderError: it is of another format.

    """
    if version != FORMAT_VERSION:
        message = (
            f"{root} has format {version} of results, and this Airpath knows format "
            f"{FORMAT_VERSION}; use the version of Airpath that wrote it"
        )
        raise FolderError(message)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, whatever happens."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
