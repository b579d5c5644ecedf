# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The plan of an experiment file for commands, which tell how far they are with it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.plan import Plan, make_plan
from airpath.experiment.problem import by_line

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.experiment.loaded import Loaded
    from airpath.experiment.problem import Problem


class _Checking:
    """Says how far checking is, on a terminal, once that has taken two seconds."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.shown = False

    def __call__(self, done: int, of: int) -> None:
        if sys.stderr.isatty() and time.monotonic() - self.began > 2:
            print(f"\rchecking cell {done + 1} of {of}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def end(self) -> None:
        if self.shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def plan_of(file: Path, only: list[str] | None) -> Plan:
    """Return the plan of an experiment file, or of some of its sets.

    Raises:
        ExperimentError: it cannot be read, or something in it is wrong.
        EngineError: the engine, which checks links, cannot be run.

    """
    progress = _Checking()
    try:
        return make_plan(load(file), only or [], progress)
    except ExperimentError as error:
        if error.sound is None:
            raise
        further = _problems(error.sound, progress)
        every = {str(problem): problem for problem in (*error.problems, *further)}
        raise ExperimentError(by_line(every.values())) from error
    finally:
        progress.end()


def _problems(sound: Loaded, progress: _Checking) -> list[Problem]:
    """Return what is wrong with the part of a file that could be read."""
    try:
        make_plan(sound, [], progress)
    except ExperimentError as error:
        return error.problems
    return []
