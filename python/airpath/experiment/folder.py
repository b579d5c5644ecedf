# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

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

from airpath.files import check_folder, read_bytes, read_text, told, write_all, write_whole
from airpath.jsontext import parse_json
from airpath.shape import NUMBER, TIME, Each, Object, fitting

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

STATUSES = ("succeeded", "failed", "broken")

Key = tuple[str, str, int]
"""Set, cell, replication."""


_KEYS = {"kind": str, "set": str, "cell": str, "replication": TIME}
_ENTRY = Object(_KEYS, needed=tuple(_KEYS))
_FACTS = {
    "digest": str,
    "seed": int,
    "status": str,
    "verdict": str,
    "wall_s": NUMBER,
    "size_bytes": TIME,
    "metrics": Each(NUMBER),
}
_DONE = Object({**_KEYS, **_FACTS, "measured": [str]}, needed=(*_KEYS, *_FACTS))


class FolderError(Exception):
    """A results folder that cannot be used; the message says why and what to do."""


@dataclass
class Results:
    """A results folder that is open for writing, or was read."""

    root: Path
    done: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """The last completion of each replication, as the journal has it."""

    broken: list[str] = field(default_factory=list)
    """Lines of the journal that are no entries, and why; only where ``read`` passes over them."""

    _lock: int = -1
    _gone: set[Key] = field(default_factory=set)
    """Entries that the journal's last entry took out."""

    @property
    def locked(self) -> bool:
        """True if this process holds the folder's lock."""
        return self._lock >= 0

    @property
    def journal(self) -> Path:
        """The journal's path."""
        return self.root / JOURNAL

    def write(self, kind: str, **content: Any) -> None:
        """Add a line to the journal; it is on the disk when this returns.

        Raises:
            OSError: it cannot be written; the journal is as before.

        """
        line = json.dumps({"kind": kind, "unix_s": round(time.time(), 3), **content}) + "\n"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.journal, flags, 0o644)
        try:
            before = os.fstat(handle).st_size
            # A line that an interrupted call began must not run into this one.
            if before and os.pread(handle, 1, before - 1) != b"\n":
                before = _cut_torn_line(handle)
            try:
                write_all(handle, line.encode())
                os.fsync(handle)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(handle, before)
                what = (
                    f"{error.strerror}; the journal is whole: it ends with the "
                    f"{len(self.done)} replications that were complete before"
                )
                raise OSError(error.errno, what, str(self.journal)) from error
        finally:
            os.close(handle)
        self._apply(json.loads(line))

    def _apply(self, entry: Any) -> None:
        """Take in a line.

        Raises:
            ValueError: it is no entry.

        """
        wrong: list[str] = []
        shape = _DONE if isinstance(entry, dict) and entry.get("kind") == "done" else _ENTRY
        entry = fitting(entry, shape, wrong)
        if wrong:
            raise ValueError(wrong[0])
        key = (entry["set"], entry["cell"], entry["replication"])
        if any(name in ("", ".", "..") or "/" in name or "\0" in name for name in key[:2]):
            message = f"`{key[0]}` and `{key[1]}` are no names of a set and a cell"
            raise ValueError(message)
        if entry["kind"] == "done":
            if entry["status"] not in STATUSES:
                message = f"status `{entry['status']}` is none of {', '.join(STATUSES)}"
                raise ValueError(message)
            self.done[key] = entry
            self._gone.discard(key)
        elif entry["kind"] in ("removed", "rerun"):
            self.done.pop(key, None)
            self._gone.add(key)

    def read(self, *, damaged: bool = False) -> None:
        """Read the journal.

        Args:
            damaged: pass over lines that are no entries, and keep why in ``broken``.

        Raises:
            FolderError: a line other than the last is no entry, or the journal cannot be read.

        """
        self.done.clear()
        self._gone.clear()
        self.broken.clear()
        if not self.journal.exists():
            return
        try:
            lines = read_bytes(self.journal).split(b"\n")
        except OSError as error:
            raise FolderError(told(error)) from error
        for number, line in enumerate(lines[:-1], 1):
            try:
                self._apply(parse_json(line))
            except ValueError as error:
                message = f"{self.journal}:{number}: no entry of a journal: {error}"
                if not damaged:
                    message += (
                        f"; airpath results {self.root} --rebuild takes what is missing from the "
                        f"runs' folders"
                    )
                    raise FolderError(message) from error
                self.broken.append(message)

    def mend(self) -> list[str]:
        """Write a damaged journal anew, with what the runs' folders know of what it lost.

        For the lock's holder. The damaged one is kept beside it.

        Returns:
            what was wrong and what was done, in lines; none for a journal that is whole.

        Raises:
            FolderError: it cannot be read.
            OSError: it cannot be written.

        """
        self.read(damaged=True)
        if not self.broken:
            return []
        told_of = list(self.broken)
        kept = self.journal.with_name(f"{JOURNAL}.damaged")
        write_whole(kept, read_bytes(self.journal), sync=True)
        entries = [{"kind": "done", **entry} for entry in self.done.values()]
        found = self.left_out(told_of)
        entries += [{"kind": "done", **entry} for entry in found]
        write_whole(self.journal, "".join(json.dumps(entry) + "\n" for entry in entries), sync=True)
        self.read()
        told_of.append(
            f"{self.journal} was written anew: {len(self.done)} replications, {len(found)} of them "
            f"from the runs' folders; the damaged one is {kept}"
        )
        return told_of

    def left_out(self, told_of: list[str]) -> list[dict[str, Any]]:
        """Return entries for complete runs whose folders are there, and which the journal lacks.

        Args:
            told_of: told of runs whose record cannot be read.

        """
        from airpath.experiment.about import RecordError, read_record

        entries = []
        for folder in sorted(self.root.glob("runs/*/*/*")):
            if not folder.name.isdecimal() or not folder.is_dir():
                continue
            key = (folder.parent.parent.name, folder.parent.name, int(folder.name))
            if key in self.done or key in self._gone:
                continue
            try:
                about = read_record(folder)
                if "digest" not in about:
                    message = f"{folder}: its record does not say what was run"
                    raise RecordError(message)
            except RecordError as error:
                told_of.append(f"{error}; airpath run --resume runs it again")
                continue
            names = ("digest", "attempt", "seed", "status", "verdict", "message", "wall_s")
            more = ("size_bytes", "metrics", "measured")
            entries.append(
                {
                    "unix_s": about["ended_unix_s"],
                    **dict(zip(("set", "cell", "replication"), key, strict=True)),
                    **{name: about[name] for name in (*names, *more) if name in about},
                }
            )
        return entries

    def lock(self) -> None:
        """Make sure that nobody else works in the folder.

        Raises:
            FolderError: somebody does, or the lock is no ordinary file.
            OSError: the folder belongs to another user, or cannot be written.

        """
        check_folder(self.root)
        path = self.root / LOCK
        if path.is_symlink() or (path.exists() and not path.is_file()):
            # Airpath makes an ordinary file: a link or a pipe was put there by somebody else.
            message = f"{path} is a link, or no ordinary file; remove it, and try again"
            raise FolderError(message)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        self._lock = os.open(path, flags, 0o644)
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
        handle = os.open(self.journal, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _cut_torn_line(handle)
        finally:
            os.close(handle)


def _cut_torn_line(handle: int) -> int:
    """Cut what stands behind the last end of a line; return the length that is left."""
    length = end = os.fstat(handle).st_size
    while end:
        begin = max(0, end - 65_536)
        found = os.pread(handle, end - begin, begin).rfind(b"\n")
        end = begin
        if found >= 0:
            end = begin + found + 1
            break
    if end < length:
        os.ftruncate(handle, end)
        os.fsync(handle)
    return end


def open_results(root: Path, *, damaged: bool = False) -> Results:
    """Open a folder that exists, for reading.

    Args:
        root: the folder.
        damaged: pass over damaged lines of its journal, for who will mend it.

    Raises:
        FolderError: it is none, it is damaged, or a newer Airpath wrote it.

    """
    path = root / PLAN
    if not path.is_file():
        raise FolderError(_other_folder(root))
    try:
        version = parse_json(read_text(path))["format_version"]
    except OSError as error:
        raise FolderError(told(error)) from error
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged; airpath run --resume writes it anew"
        raise FolderError(message) from error
    check_version(version, root)
    results = Results(root)
    results.read(damaged=damaged)
    return results


def _other_folder(root: Path) -> str:
    """Say what a folder without a plan is, as far as that can be seen, and what shows it."""
    message = f"{root} is no results folder of airpath run: it has no {PLAN}"
    if (root / "run.json").is_file():
        return f"{message}; it holds one run: airpath report {root} shows it"
    runs = sorted(path.parent.name for path in root.glob("*/run.json"))
    if not runs:
        other = "; airpath analyse and report take runs of airpath exec and sim"
        return message + (other if root.is_dir() else "")
    return (
        f"{message}; it holds {len(runs)} runs, such as {root / runs[0]}: "
        f"airpath report {root} shows all of them, airpath analyse {root} measures them"
    )


def check_version(version: Any, root: Path) -> None:
    """Refuse a folder of another format.

    Raises:
        FolderError: it is of another format.

    """
    if version != FORMAT_VERSION:
        message = (
            f"{root} has format {version!r:.40} of results, and this Airpath knows format "
            f"{FORMAT_VERSION}; use the version of Airpath that wrote it"
        )
        raise FolderError(message)
