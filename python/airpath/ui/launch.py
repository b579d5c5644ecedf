# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs that the page starts: a process of its own each, which goes on if the page's server ends.

What a run's programs print goes into a file beside the run's folder, ``NAME-console.txt``.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath.engine import EngineError, find_engine
from airpath.facts import FILES
from airpath.ui import detached
from airpath.ui.detached import CONSOLE
from airpath.ui.errors import UiError, not_found
from airpath.ui.scratch import Scratch

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.ui.workspace import Workspace

MOST_CONSOLE_BYTES = 200_000
"""Maximum length of its end that the page shows."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")
_END_S = 8.0
"""Time that a run gets to end after the first signal."""


@dataclass
class Started:
    """A run that the page started."""

    name: str
    folder: Path
    console: Path
    command: list[str]
    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.time)

    def interrupt(self) -> None:
        """Send what Ctrl-C in a terminal sends: the signal to all processes of the run's group."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)

    def about(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        status = self.process.poll()
        return {
            "name": self.name,
            "folder": str(self.folder),
            "command": shlex.join(["airpath", *self.command[1:]]),
            "began": self.began,
            "pid": self.process.pid,
            "exit_status": status,
            "running": status is None,
        }


@dataclass
class Launcher:
    """Starts and stops runs of a workspace."""

    workspace: Workspace
    started: dict[str, Started] = field(default_factory=dict)

    def results(self) -> Path:
        """Return the folder of the page's runs, which is made if it is missing.

        Raises:
            UiError: it cannot be made.

        """
        folder = self.workspace.folder / "results"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise UiError(f"{folder}: {error.strerror}", 507) from error
        return folder

    def free_name(self, wanted: str) -> str:
        """Return a name for a new run's folder: the wanted one, or that with a number behind it.

        Raises:
            UiError: it is no name.

        """
        if not _NAME.fullmatch(wanted):
            raise UiError(f"{wanted!r} is no name for a run: use letters, digits, `_`, `.` and `-`")
        folder = self.results()
        for number in range(1, 10_000):
            name = wanted if number == 1 else f"{wanted}-{number}"
            if not (folder / name).exists() and not (folder / f"{name}{CONSOLE}").exists():
                return name
        raise UiError(f"there are 10,000 runs called {wanted}; choose another name")

    def start(
        self,
        scenario: str,
        name: str,
        *,
        file: str = "",
        client: str,
        server: str = "",
        clock: str = "live",
        options: list[str] | None = None,
    ) -> Started:
        """Start a run with the scenario's text.

        Args:
            scenario: the scenario, in TOML.
            name: name of the run's folder in ``results``.
            file: the scenario's file in the workspace; empty for one that was not saved.
            client: shell command at the client's end.
            server: shell command at the server's end, if any.
            clock: ``live`` or ``warp``.
            options: further options of ``airpath exec``.

        Raises:
            UiError: the run cannot be started.

        """
        if not client.strip():
            raise UiError("the client's end needs a command, such as `ping -c 10 server`")
        if clock not in ("live", "warp"):
            raise UiError(f"{clock!r} is no clock of a run here; use live or warp")
        name = self.free_name(name)
        folder = self.results() / name
        beside = self.workspace.beside(file)
        self.workspace.write_text(f"results/{name}.toml", ".toml", scenario)
        read = Scratch.write(scenario, beside)
        words = ["exec", "--scenario", str(read.path), "--out", str(folder), "--clock", clock]
        if server.strip():
            words += ["--server", server]
        words += [*(options or []), "--", "sh", "-c", client]
        try:
            one = self.begin(name, folder, words)
            threading.Thread(target=_removed_once_read, args=(one, read), daemon=True).start()
        except (RuntimeError, UiError):
            read.remove()
            raise
        return one

    def begin(self, name: str, folder: Path, words: list[str]) -> Started:
        """Start the engine with ``words``; its output goes into the run's console file.

        Raises:
            UiError: it cannot be started.

        """
        console = folder.with_name(f"{name}{CONSOLE}")
        try:
            command = [find_engine(), *words]
            process = detached.start(command, console, self.workspace.folder, again=False)
        except (EngineError, OSError) as error:
            raise UiError(f"the run cannot be started: {error}", 500) from error
        one = Started(name, folder, console, ["airpath", *words], process)
        self.started[name] = one
        return one

    def stop(self, name: str) -> None:
        """End a run as Ctrl-C does; what it recorded stays.

        Raises:
            UiError: there is no such run.

        """
        one = self.of(name)
        one.interrupt()

    def of(self, name: str) -> Started:
        """Return a run that the page started.

        Raises:
            UiError: there is no such run.

        """
        if name not in self.started:
            raise not_found(f"the page has not started a run called {name!r}")
        return self.started[name]

    def console(self, name: str) -> str:
        """Return the end of what the programs of a run have printed.

        Raises:
            UiError: there is no such run.

        """
        one = self.of(name)
        try:
            with one.console.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MOST_CONSOLE_BYTES))
                return file.read().decode(errors="replace")
        except OSError as error:
            raise not_found(f"{one.console}: {error.strerror}") from error

    def close(self) -> None:
        """End runs that are active, and wait for them."""
        active = [one for one in self.started.values() if one.process.poll() is None]
        for one in active:
            one.interrupt()
        until = time.monotonic() + _END_S
        for one in active:
            try:
                one.process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                one.process.send_signal(signal.SIGTERM)


def _removed_once_read(run: Started, file: Scratch) -> None:
    """Remove a scenario once its run has the manifest, for which it was read, or has ended."""
    while run.process.poll() is None and not (run.folder / FILES["manifest"]).exists():
        time.sleep(0.1)
    file.remove()
