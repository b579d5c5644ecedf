# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The folder of this machine that mirrors a store's: fetched, and written back.

The store has the truth. The mirror is a cache: deleted, it is fetched anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.files import REPLICATION, make_folder, write_whole
from airpath.store.files import AT_ONCE, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airpath.store.url import Url

INDEX = ".store.json"
"""File of the mirror that tells what each file was when it was fetched or written."""

HERE_ALONE = (INDEX, "lock", ".workers", "catalogue.sqlite", "catalogue.sqlite-journal")
"""Files of a mirror that have no twin in the store; the catalogue is built from the runs."""

LOCK = "lock.json"
"""File of the store that says who writes there; it has no twin in the mirror."""

LAST = (REPLICATION, "journal")
"""Files that say that others are complete, in the order in which they are written."""


def folder_of(url: Url) -> Path:
    """Return the folder that mirrors a URL, below the cache of Airpath."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if base.startswith("/") else Path.home() / ".cache"
    digest = hashlib.sha256(url.encode()).hexdigest()[:16]
    return cache / "airpath" / "results" / digest / (url.last or "results")


class Mirror:
    """A store, and the folder that mirrors it."""

    def __init__(self, url: Url) -> None:
        """Find both; the folder is made.

        Raises:
            MissingExtraError: no package for such URLs is installed.
            OSError: the store cannot be used, or the folder cannot be made.

        """
        self.store = Store(url)
        self.folder = make_folder(folder_of(url))
        self.known: dict[str, list[Any]] = {}
        """By name: version in the store, size, and time of the copy's last change."""

        with suppress(OSError, ValueError):
            self.known = dict(json.loads((self.folder / INDEX).read_text()))

    def pull(self, progress: Callable[[int, int], None]) -> int:
        """Make the folder what the store is; return the number of files.

        Raises:
            OSError: the store cannot be read, or the folder cannot be written.

        """
        there = self.store.listed()
        there = {name: one for name, one in there.items() if name not in (*HERE_ALONE, LOCK)}
        here = dict(self._files())
        wanted = []
        for name, found in there.items():
            known = self.known.get(name)
            copy = here.get(name)
            same = known is not None and copy == tuple(known[1:]) and found.size == known[1]
            if not same or (known and known[0] not in ("", found.version)):
                wanted.append(name)
            elif known:
                known[0] = found.version
        for name in here.keys() - there.keys():
            (self.folder / name).unlink(missing_ok=True)
            self.known.pop(name, None)
        self.store.get(wanted, self.folder, progress)
        for name in wanted:
            self._note(name, there[name].version)
        for name in self.known.keys() - there.keys():
            del self.known[name]
        self._drop_empty()
        self.save()
        return len(there)

    def push(self) -> None:
        """Make the store what the folder is.

        Raises:
            OSError: the store cannot be written.

        """
        here = dict(self._files())
        changed = [
            name
            for name, copy in here.items()
            if name not in self.known or copy != tuple(self.known[name][1:])
        ]
        changed.sort(key=_turn)
        for begin in range(0, len(changed), AT_ONCE):
            self.put(changed[begin : begin + AT_ONCE])
        gone = [name for name in self.known if name not in here]
        self.store.remove(gone)
        for name in gone:
            del self.known[name]
        self.save()

    def put(self, names: list[str]) -> None:
        """Write some files of the folder to the store; what says that others are complete last.

        Raises:
            OSError: the store cannot be written.

        """
        for turn in range(len(LAST) + 1):
            some = [name for name in names if _turn(name) == turn]
            if some:
                self.store.put(self.folder, some)
                for name in some:
                    self._note(name, "")

    def save(self) -> None:
        """Keep what is known of the files."""
        write_whole(self.folder / INDEX, json.dumps(dict(self.known)))

    def clear(self) -> None:
        """Delete the folder; the store stays."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _note(self, name: str, version: str) -> None:
        about = (self.folder / name).stat()
        self.known[name] = [version, about.st_size, about.st_mtime_ns]

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for place, folders, files in os.walk(self.folder):
            folders.sort()
            for file in files:
                path = Path(place) / file
                name = str(path.relative_to(self.folder))
                if name not in HERE_ALONE and not path.is_symlink():
                    about = path.stat()
                    yield name, (about.st_size, about.st_mtime_ns)

    def _drop_empty(self) -> None:
        """Delete folders without files, which stores do not have."""
        for place, _, _ in os.walk(self.folder, topdown=False):
            if Path(place) != self.folder:
                with suppress(OSError):
                    Path(place).rmdir()


def _turn(name: str) -> int:
    """Return when a file is written, from 0 on."""
    last = name.rpartition("/")[2]
    return LAST.index(last) + 1 if last in LAST else 0
