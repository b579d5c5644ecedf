# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A replication away from the folder of results: what goes to a worker, and what comes back.

A worker runs a replication in a scratch folder of its own. Where it sees the folder of results, it
copies the run's folder there; elsewhere the run's files come back with the outcome. Files that the
experiment names travel the other way, so that a worker needs no folder in common with anybody.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import socket
import tarfile
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.engine import EngineError, find_engine
from airpath.experiment.replicate import PART, STOPPED, Outcome, Task, replicate, sync_folder
from airpath.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable

TOKEN = ".workers"
"""Name of the file in the folder of results whose content says which run works there."""

BETWEEN_LOOKS_S = 1.0
"""Time between two looks of a worker at whether a replication is still wanted."""


@dataclass(frozen=True)
class Errand:
    """All that a worker needs to carry a replication out."""

    task: Task
    run: str
    """Token of the run of the command that wants it."""

    root: str
    """The folder of results, where a worker sees it."""

    facts: str
    """Digest that ``facts()`` returns for the Airpath of the command."""

    inputs: str
    """Name of the files that travel with it, by which a worker knows that it has them."""


@dataclass(frozen=True)
class Answer:
    """Outcome of a replication, and its files where the worker does not see their place."""

    outcome: Outcome
    files: bytes = b""
    """The run's folder, packed; nothing where the worker has copied it, or where there is none."""


class Stop:
    """True once a run of the command is stopped, or another one works in its folder."""

    def __init__(self, errand: Errand, *, shared: bool) -> None:
        """Watch an errand's run; ``shared`` if the worker sees the folder of results."""
        self.errand = errand
        self.shared = shared
        self.looked = time.monotonic()
        self.gone = False

    def is_set(self) -> bool:
        """Return whether the replication is not wanted any more."""
        if self.shared and not self.gone and time.monotonic() - self.looked > BETWEEN_LOOKS_S:
            self.gone = not sees(self.errand.root, self.errand.run)
            self.looked = time.monotonic()
        return self.gone or self.errand.run in _stopped


_stopped: set[str] = set()
"""Tokens of runs that were stopped; of this worker."""

_unpacking = threading.Lock()


def stop_here(run: str) -> None:
    """End what runs on this worker for a run of the command."""
    _stopped.add(run)


def sees(root: str, run: str) -> bool:
    """Say whether this process sees a folder of results in which a run of the command works."""
    try:
        return read_text(Path(root) / TOKEN, most=1000) == run
    except (OSError, ValueError):
        return False


@cache
def facts() -> str:
    """Return a digest of what Python and the engine have to agree on, with the version."""
    import airpath.facts

    content = Path(airpath.facts.__file__).with_name("facts.json").read_bytes()
    return hashlib.sha256(content + version().encode()).hexdigest()


def version() -> str:
    """Return the version of this Airpath."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of("airpath")
    except PackageNotFoundError:
        return "of unknown version"


def about(root: str, run: str) -> dict[str, Any]:
    """Return the version, the engine and the view of a worker; runs there."""
    try:
        find_engine()
        engine_error = ""
    except EngineError as error:
        engine_error = str(error)
    return {
        "host": socket.gethostname(),
        "version": version(),
        "facts": facts(),
        "engine_error": engine_error,
        "sees": sees(root, run),
    }


def carry_out(errand: Errand, inputs: bytes) -> Answer:
    """Run a replication with the worker's own engine; runs there.

    Args:
        errand: what to run.
        inputs: the files that the experiment names, as ``pack_files`` packs them.

    Raises:
        OSError: this worker cannot; the message says why.

    """
    if errand.run in _stopped:
        return Answer(STOPPED)
    if errand.facts != facts():  # it joined after the others had been looked at
        what = f"has another version of Airpath ({version()}); install the same one there"
        raise _this_worker(errno.ENOEXEC, what)
    try:
        engine = find_engine()
    except EngineError as error:
        raise _this_worker(errno.ENOENT, str(error)) from error
    shared = sees(errand.root, errand.run)
    stop = Stop(errand, shared=shared)
    scratch = Path(tempfile.mkdtemp(prefix="airpath-run-", dir=scratch_folder()))
    try:
        task = errand.task
        here = replace(
            # Programs may read more of the experiment's folder than the experiment names.
            task if shared and Path(task.here).is_dir() else _elsewhere(errand, inputs),
            folder=str(scratch / Path(task.folder).name),
        )
        here = replace(here, command=(engine, *here.command[1:]))
        outcome = replicate(here, stop, recorded=task, sync=False)
        made = Path(here.folder)
        if outcome.status == "stopped" or not made.is_dir():
            return Answer(STOPPED)
        if not shared:
            return Answer(outcome, pack(made))
        return Answer(outcome if _copy(made, Path(task.folder), stop) else STOPPED)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _this_worker(number: int, what: str) -> OSError:
    return OSError(number, what, f"the worker on {socket.gethostname()}")


def scratch_folder() -> Path:
    """Return where this worker keeps what goes with it."""
    with suppress(ImportError, ValueError):
        from distributed import get_worker

        return Path(get_worker().local_directory)
    return Path(tempfile.gettempdir())


def _copy(made: Path, final: Path, stop: Stop) -> bool:
    """Copy a run's folder to its place, so that it is there whole or not; say whether it is."""
    final.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{final.name}-", suffix=PART, dir=final.parent))
    try:
        shutil.copytree(made, part, symlinks=True, dirs_exist_ok=True)
        part.chmod(0o755)
        sync_folder(part)
        stop.looked = 0.0
        if stop.is_set():
            return False
        if final.is_dir():  # of an attempt before, or of another worker that was taken for dead
            final.rename(part / PART)
        part.rename(final)
        shutil.rmtree(final / PART, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return True


def land(answer: Answer, folder: Path) -> Outcome:
    """Put the files that came back into the run's folder; return the outcome.

    Raises:
        OSError: they cannot be written.

    """
    if answer.files:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", suffix=PART, dir=folder.parent))
        try:
            unpack(answer.files, part)
            part.chmod(0o755)
            sync_folder(part)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return answer.outcome


def pack(folder: Path) -> bytes:
    """Return a folder's files as one compressed archive."""
    return pack_files([(path, str(path.relative_to(folder))) for path in sorted(folder.iterdir())])


def pack_files(files: Iterable[tuple[Path, str]]) -> bytes:
    """Return files and folders as one compressed archive, under the names that are given."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return entry if entry.isfile() or entry.isdir() or entry.issym() else None

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
        for path, name in files:
            archive.add(path, name, filter=plain)
    return content.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Unpack an archive into a folder; what leads out of it is refused.

    Raises:
        OSError: it cannot be written, or something leads out of the folder.

    """
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            archive.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise OSError(errno.EINVAL, f"the files of a run cannot be unpacked: {error}") from error


def _unpacked(name: str, inputs: bytes) -> Path:
    """Return the folder in which this worker has the files that the experiment names."""
    folder = scratch_folder() / f"airpath-inputs-{name}"
    with _unpacking:
        if not folder.is_dir():
            made = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
            unpack(inputs, made)
            with suppress(OSError):  # another worker of this machine was first
                made.rename(folder)
            shutil.rmtree(made, ignore_errors=True)
    return folder


def _elsewhere(errand: Errand, inputs: bytes) -> Task:
    """Return a task in which paths of files that travelled are those of their copies."""
    folder = _unpacked(errand.inputs, inputs)
    task = errand.task

    def moved(words: Iterable[str]) -> tuple[str, ...]:
        return tuple(
            f"{folder}{word}"
            if word.startswith("/") and os.path.lexists(f"{folder}{word}")
            else word
            for word in words
        )

    here = Path(f"{folder}{task.here}")
    here.mkdir(parents=True, exist_ok=True)
    programs = tuple(
        {**program, "command": list(moved(program["command"]))} for program in task.programs
    )
    return replace(task, here=str(here), command=moved(task.command), programs=programs)
