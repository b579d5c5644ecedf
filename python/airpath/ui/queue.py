# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments that wait for their turn, run, are paused and resumed: one at a time."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath.files import read_text
from airpath.jsontext import parse_json
from airpath.shape import TIME, Object, fitting
from airpath.ui import detached
from airpath.ui.detached import CONSOLE
from airpath.ui.errors import UiError, not_found
from airpath.ui.itself import COMMAND
from airpath.ui.turn import Turn

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.ui.workspace import Workspace

MOST_PLAN_BYTES = 64_000_000
"""Maximum size of the plan of an experiment."""
_PLAN = Object({"cells": [Object({"replications": [TIME]}, needed=("replications",))]}, ("cells",))
"""Part of a plan that is read here."""


@dataclass
class Entry:
    """An experiment in the queue."""

    number: int
    file: str
    out: str
    state: str = "waiting"
    """waiting, running, pausing, paused, finished, failed or removed."""
    process: subprocess.Popen[bytes] | None = None
    exit_status: int | None = None
    message: str = ""
    looked: int | None = None
    """Number of complete replications at the last look."""
    paced: tuple[float, int] | None = None
    """Time by the monotonic clock at which a replication was first seen to become complete, and
    their number then."""

    def about(self, workspace: Workspace, holder: str = "") -> dict[str, Any]:
        """Return what the page shows of it.

        Args:
            workspace: where its results are.
            holder: words for what has the turn; empty if nothing has.

        """
        waits = holder and self.state == "waiting"
        out = workspace.folder / self.out
        done, planned = _done(out), _planned(out)
        return {
            "number": self.number,
            "file": self.file,
            "out": self.out,
            "state": self.state,
            "exit_status": self.exit_status,
            "message": f"It waits: {holder}." if waits else self.message,
            "done": done,
            "planned": planned,
            "left_s": self._left_s(done, planned),
        }

    def _left_s(self, done: int, planned: int) -> float | None:
        """Return the time that the rest takes at the pace so far; None where that is not known.

        The pace begins with a replication that becomes complete: the command starts and checks the
        plan before the first, which takes as long as many short runs.
        """
        now_s = time.monotonic()
        before, self.looked = self.looked, done
        if self.paced is None and before is not None and done > before:
            self.paced = (now_s, done)
        since_s, first = self.paced or (now_s, done)
        if self.state != "running" or not first < done <= planned:
            return None
        return round((now_s - since_s) / (done - first) * (planned - done), 1)


def _done(out: Path) -> int:
    """Return the number of replications that are recorded as complete."""
    try:
        return sum(1 for _ in out.glob("runs/*/*/[0-9]*/replication.json"))
    except OSError:
        return 0


def _planned(out: Path) -> int:
    """Return the number of replications of the plan at most; 0 without a plan that can be read."""
    wrong: list[str] = []
    try:
        plan = fitting(parse_json(read_text(out / "plan.json", MOST_PLAN_BYTES)), _PLAN, wrong)
        planned = sum(most for _, most in (cell["replications"] for cell in plan["cells"]))
    except (OSError, ValueError):
        return 0
    return 0 if wrong else planned


@dataclass
class Queue:
    """The experiments of a workspace."""

    workspace: Workspace
    entries: dict[int, Entry] = field(default_factory=dict)
    turn: Turn = field(default_factory=Turn)
    """Taken while an experiment runs."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Let the queue go on whenever the turn becomes free."""
        self.turn.freed = self._next

    def add(self, file: str, out: str) -> Entry:
        """Put an experiment at the end of the queue.

        Raises:
            UiError: there is no such file, or the folder of results cannot be named so.

        """
        path = self.workspace.inside(file)
        if not path.is_file():
            raise not_found(f"there is no file {file!r}")
        if not re.fullmatch(r"results/[A-Za-z0-9][A-Za-z0-9_.-]{0,60}", out):
            raise UiError(f"{out!r} is no folder for results: name it results/NAME")
        self.workspace.inside(out)
        with self._lock:
            entry = Entry(len(self.entries) + 1, file, out)
            self.entries[entry.number] = entry
            self._next()
        return entry

    def pause(self, number: int) -> Entry:
        """End a running experiment so that it can be resumed; complete replications stay.

        Raises:
            UiError: it does not run.

        """
        with self._lock:
            entry = self._of(number)
            if entry.state == "waiting":
                entry.state = "paused"
            elif entry.state == "running" and entry.process is not None:
                entry.state = "pausing"
                entry.process.send_signal(signal.SIGINT)
            else:
                raise UiError(f"experiment {number} is {entry.state}: it cannot be paused")
            return entry

    def resume(self, number: int) -> Entry:
        """Put a paused or failed experiment into the queue again.

        Raises:
            UiError: it is neither.

        """
        with self._lock:
            entry = self._of(number)
            if entry.state not in ("paused", "failed"):
                raise UiError(f"experiment {number} is {entry.state}: it cannot be resumed")
            entry.state, entry.message = "waiting", ""
            self._next()
            return entry

    def remove(self, number: int) -> None:
        """Take an experiment out of the queue; its results stay.

        Raises:
            UiError: it runs.

        """
        with self._lock:
            entry = self._of(number)
            if entry.state in ("running", "pausing"):
                raise UiError(f"experiment {number} runs: pause it first")
            entry.state = "removed"

    def listed(self) -> list[dict[str, Any]]:
        """Return the experiments in the order in which they were added."""
        with self._lock:
            kept = [one for one in self.entries.values() if one.state != "removed"]
            holder = self.turn.holder
            return [entry.about(self.workspace, holder) for entry in kept]

    def close(self) -> None:
        """Pause what runs."""
        with self._lock:
            running = [one for one in self.entries.values() if one.state == "running"]
            for entry in self.entries.values():
                if entry.state == "waiting":
                    entry.state = "paused"
        for entry in running:
            if entry.process is not None:
                entry.process.send_signal(signal.SIGINT)
                try:
                    entry.process.wait(10)
                except subprocess.TimeoutExpired:
                    entry.process.send_signal(signal.SIGTERM)

    def _of(self, number: int) -> Entry:
        if number not in self.entries:
            raise not_found(f"there is no experiment {number} in the queue")
        return self.entries[number]

    def _next(self) -> None:
        """Start the first that waits, if it is its turn."""
        with self._lock:
            entry = next((one for one in self.entries.values() if one.state == "waiting"), None)
            if entry is None:
                return
            if self.turn.take(f"the experiment {entry.file} runs"):
                return
            try:
                self._start(entry)
            except OSError as error:
                entry.state, entry.message = "failed", f"{error.filename}: {error.strerror}"
            except (RuntimeError, UiError) as error:
                entry.state, entry.message = "failed", str(error)
            if entry.state == "failed":
                self.turn.give_back()

    def _start(self, entry: Entry) -> None:
        """Start an experiment.

        Raises:
            OSError: a file cannot be written, or the command not be started.
            RuntimeError: no thread can wait for it.
            UiError: the file is not in the workspace.

        """
        words = [*COMMAND, "run", str(self.workspace.inside(entry.file)), "--resume", "--json"]
        words += ["--out", str(self.workspace.folder / entry.out)]
        results = self.workspace.folder / "results"
        results.mkdir(exist_ok=True)
        console = self.workspace.folder / f"{entry.out}{CONSOLE}"
        entry.process = detached.start(words, console, self.workspace.folder, again=True)
        entry.state = "running"
        entry.looked, entry.paced = None, None
        threading.Thread(target=self._wait, args=(entry, console), daemon=True).start()

    def _wait(self, entry: Entry, console: Path) -> None:
        process = entry.process
        if process is None:
            return
        status = process.wait()
        with self._lock:
            entry.exit_status = status
            if entry.state == "pausing":
                entry.state = "paused"
            elif status == 0:
                entry.state = "finished"
            else:
                entry.state = "failed"
                entry.message = _last_lines(console)
        self.turn.give_back()


def _last_lines(console: Path) -> str:
    try:
        return "\n".join(console.read_text(errors="replace").splitlines()[-12:])
    except OSError as error:
        return f"{console}: {error.strerror}"


def free_bytes(workspace: Workspace) -> int:
    """Return the free space of the workspace's disk in bytes."""
    return shutil.disk_usage(workspace.folder).free
