# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Plans of experiments, made by ``airpath plan``: they end with their time, page or server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath.ui.errors import UiError
from airpath.ui.itself import COMMAND
from airpath.ui.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.ui.workspace import Workspace

PATIENCE_S = 120.0
"""Maximum time of a plan."""
PILOT_PATIENCE_S = 1800.0
"""Maximum time of a plan that tries each cell once."""
END_S = 5.0
"""Time that a plan gets to end after SIGTERM."""
LOOK_EVERY_S = 0.5
"""Time between two looks whether somebody still waits for a plan."""


def _always() -> bool:
    return True


@dataclass
class Plans:
    """Plans of a workspace's experiments."""

    workspace: Workspace
    turn: Turn = field(default_factory=Turn)
    """Taken while each cell of an experiment is tried."""
    _active: list[subprocess.Popen[str]] = field(default_factory=list)
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """For the two fields above."""

    def plan(self, file: str, wanted: Callable[[], bool] = _always) -> dict[str, Any]:
        """Return the cells of an experiment, and what is missing for it.

        Args:
            file: its name in the workspace.
            wanted: says whether somebody still waits for the plan, which ends otherwise.

        Raises:
            UiError: the experiment has mistakes, which the message names; or the plan takes too
                long.

        """
        return self._made(file, PATIENCE_S, wanted)

    def pilot(self, file: str, wanted: Callable[[], bool] = _always) -> dict[str, Any]:
        """Return the cells of an experiment with time and disk space, after each ran once.

        Args:
            file: its name in the workspace.
            wanted: as of ``plan``.

        Raises:
            UiError: as ``plan``; or cells are being tried already, or an experiment runs.

        """
        most_min = round(PILOT_PATIENCE_S / 60)
        if holder := self.turn.take(
            f"cells of {file} are being tried, which takes {most_min} min at most"
        ):
            raise UiError(f"{holder}: try these when that has ended", 409)
        try:
            return self._made(file, PILOT_PATIENCE_S, wanted, "--pilot")
        finally:
            self.turn.give_back()

    def close(self) -> None:
        """End plans that are being made."""
        with self._lock:
            self._closed = True
            active = list(self._active)
        for process in active:
            _end(process)

    def _made(
        self, file: str, patience_s: float, wanted: Callable[[], bool], *options: str
    ) -> dict[str, Any]:
        words = [*COMMAND, "plan", str(self.workspace.inside(file)), "--json", *options]
        process = self._start(words)
        try:
            out, err = _outcome(process, patience_s, wanted)
        except TimeoutError as error:
            raise UiError(
                f"the plan took longer than {patience_s / 60:g} min and was ended: run "
                f"`airpath plan{''.join(f' {one}' for one in options)} {file}` in a terminal, "
                f"which has no limit",
                504,
            ) from error
        finally:
            with self._lock:
                self._active.remove(process)
        if self._closed:
            raise _closing()
        if process.returncode != 0:
            raise UiError(err.strip() or "the plan failed")
        found: dict[str, Any] = json.loads(out)
        return found

    def _start(self, words: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._closed:
                raise _closing()
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self.workspace.folder,
                start_new_session=True,
            )
            self._active.append(process)
        return process


def _closing() -> UiError:
    return UiError("the plan was ended with the page's server: start that again", 503)


def _outcome(
    process: subprocess.Popen[str], patience_s: float, wanted: Callable[[], bool]
) -> tuple[str, str]:
    """Return what a process prints; end it after a time, or when nobody wants it any more.

    Raises:
        TimeoutError: it took longer.
        UiError: nobody wants it.

    """
    end = time.monotonic() + patience_s
    while True:
        try:
            return process.communicate(timeout=min(LOOK_EVERY_S, patience_s))
        except subprocess.TimeoutExpired:
            is_wanted, is_late = wanted(), time.monotonic() >= end
        if is_late or not is_wanted:
            _end(process)
            process.communicate()
            if is_wanted:
                raise TimeoutError
            raise UiError("the plan was ended, because the page that asked for it was closed", 499)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    # Also those that stay when the first has gone.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
