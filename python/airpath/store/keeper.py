# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The store of a run of the command: locked, filled run by run, its journal kept up.

A run's files are written before its record (``replication.json``), and the record before the
journal's line. So a run whose record is in the store is complete, whatever became of the journal.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.files import REPLICATION
from airpath.store.errors import StoreError
from airpath.store.fetch import Progress, taken
from airpath.store.mirror import LOCK, Mirror

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airpath.store.url import Url

BETWEEN_JOURNALS_S = 5.0
"""Time between two writings of the journal while runs are complete."""

BETWEEN_SIGNS_S = 60.0
"""Time between two signs of life in the lock."""

DEAD_AFTER_S = 600.0
"""Age of the last sign of life after which a lock of another machine is nobody's."""


class Keeper:
    """Writes what a run of the command makes to the store."""

    def __init__(self, mirror: Mirror) -> None:
        """Begin; the mirror is what the store is."""
        self.mirror = mirror
        self.token = secrets.token_hex(8)
        self.failure: OSError | None = None
        self._ended = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="store", daemon=True)

    def begin(self) -> None:
        """Write what the folder has beside the runs, and follow the journal from here on.

        Raises:
            OSError: the store cannot be written.

        """
        self.mirror.push()
        self._thread.start()

    def keep(self, folder: Path) -> None:
        """Write a run's folder to the store, complete when this returns.

        Raises:
            OSError: the store cannot be written.

        """
        if self.failure is not None:
            raise self.failure
        root = self.mirror.folder.resolve()
        inside = str(folder.resolve().relative_to(root))
        files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
        names = [f"{inside}/{path.relative_to(folder)}" for path in files]
        if f"{inside}/{REPLICATION}" in self.mirror.known:  # of an attempt before
            old = [name for name in list(self.mirror.known) if name.startswith(f"{inside}/")]
            self.mirror.store.remove(old)
            for name in old:
                del self.mirror.known[name]
        self.mirror.put(names)

    def end(self) -> None:
        """Write the rest of the journal, and give the store free.

        Raises:
            OSError: the store cannot be written.

        """
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._write_journal()
            self.mirror.save()
        finally:
            self.unlock()

    def _follow(self) -> None:
        """Keep the journal of the store up, and the lock's sign of life."""
        signed = time.monotonic()
        while not self._ended.wait(BETWEEN_JOURNALS_S):
            try:
                self._write_journal()
                if time.monotonic() - signed > BETWEEN_SIGNS_S:
                    self._sign()
                    self.mirror.save()
                    signed = time.monotonic()
                self.failure = None
            except OSError as error:
                # The next run that is complete tells of it, and ends the command.
                self.failure = error

    def _write_journal(self) -> None:
        with self._writing:
            path = self.mirror.folder / "journal"
            known = self.mirror.known.get("journal")
            if not path.exists():
                return
            about = path.stat()
            if known is None or (about.st_size, about.st_mtime_ns) != tuple(known[1:]):
                content = path.read_bytes()
                # A line may be half-written at this moment.
                self.mirror.store.write("journal", content[: content.rfind(b"\n") + 1])
                self.mirror.known["journal"] = ["", about.st_size, about.st_mtime_ns]

    def lock(self) -> None:
        """Take the store's lock.

        Raises:
            StoreError: another run of the command writes there, or the store cannot be written.

        """
        held = self._holder()
        if held and not _is_dead(held):
            who = f"process {held.get('process')} on {held.get('host')}"
            age = max(0, time.time() - float(held.get("unix_s", 0)))
            what = (
                f"in use by another airpath run ({who}, last seen {age:.0f} s ago); wait for it, "
                f"or name another --out; if it is dead, its lock counts for "
                f"{DEAD_AFTER_S / 60:.0f} minutes"
            )
            raise StoreError(errno.EBUSY, what, str(self.mirror.store.url))
        self._sign()
        after = self._holder()
        if not after or after.get("token") != self.token:
            what = "another airpath run began there at the same time; try again"
            raise StoreError(errno.EBUSY, what, str(self.mirror.store.url))

    def unlock(self) -> None:
        """Give the store free."""
        with suppress(OSError):
            self.mirror.store.remove([LOCK])

    def _sign(self) -> None:
        about = {
            "token": self.token,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "boot": _boot(),
            "unix_s": time.time(),
        }
        self.mirror.store.write(LOCK, json.dumps(about).encode())

    def _holder(self) -> dict[str, Any]:
        content = self.mirror.store.read(LOCK)
        try:
            found = json.loads(content or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def _boot() -> str:
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
        return file.read().strip()
    return ""


def _is_dead(held: dict[str, Any]) -> bool:
    """Say whether the holder of a lock is gone: its process here, its signs of life elsewhere."""
    if held.get("host") == socket.gethostname() and held.get("boot") == _boot():
        try:
            os.kill(int(held.get("process", 0)), 0)
        except ProcessLookupError:
            return True
        except (PermissionError, ValueError, TypeError):
            pass
    try:
        return time.time() - float(held.get("unix_s", 0)) > DEAD_AFTER_S
    except (TypeError, ValueError):
        return True


@contextmanager
def kept_in(url: Url, command: str) -> Iterator[Keeper]:
    """Yield the keeper of a store, whose folder here is what the store is.

    Args:
        url: the store.
        command: the command, for its messages.

    Raises:
        KeyboardInterrupt: a signal came while files were fetched.
        MissingExtraError: no package for such URLs is installed.
        OSError: the store cannot be used.

    """
    mirror = Mirror(url)
    keeper = Keeper(mirror)
    keeper.lock()
    try:
        progress = Progress(f"airpath {command}: fetching {url}")

        def tell(done: int, total: int) -> None:
            if interrupt.asked.is_set():
                raise KeyboardInterrupt
            progress.tell(done, total)

        with taken(mirror) as is_free:
            if not is_free:
                what = "another airpath command fetches from there at this moment; try again"
                raise StoreError(errno.EBUSY, what, str(url))
            mirror.pull(tell)
        progress.end()
        yield keeper
    except BaseException:
        with suppress(OSError):
            keeper.end()
        raise
    else:
        keeper.end()
