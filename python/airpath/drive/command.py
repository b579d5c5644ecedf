# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Command ``airpath drive``: plays a course over an active run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airpath import control
from airpath.drive.course import CourseError, read_course
from airpath.drive.player import Player
from airpath.drive.rates import RatesError, rates_of
from airpath.status import DONE, UNDONE, USAGE

if TYPE_CHECKING:
    from pathlib import Path

_BOTH = ("uplink", "downlink")


def drive(
    file: Path,
    *,
    run: str | None,
    hop: str | None,
    user: str | None,
    direction: str,
    start: float | None,
    speed: float | None,
    quiet: bool,
) -> int:
    """Carry ``airpath drive`` out."""
    directions = _BOTH if direction == "both" else (direction,)
    try:
        course = read_course(file, rates_of, directions)
    except (CourseError, RatesError) as error:
        return _wrong(str(error))
    except OSError as error:
        return _wrong(f"{error.filename or file}: {error.strerror}")
    if not course.values and not any(course.states):
        return _wrong(f"{file}: it is a route alone; name the file with rates, delays or losses")
    try:
        with control.connect(run) as target:
            hops = target.describe().hops
            if hop is not None and hop not in hops:
                return _wrong(f"the run has no hop {hop!r}; its hops are {', '.join(hops)}")
            player = Player(
                course,
                target,
                hop or hops[0],
                user=user or "",
                at_s=start or 0.0,
                speed=1.0 if speed is None else speed,
            )
            player.start()
            if not quiet:
                about = f"{course.duration_s:g} s at {player.status()['speed']:g} times its speed"
                print(f"airpath drive: {file}: {about}; Ctrl-C ends it", file=sys.stderr)
            player.wait()
            told = player.status()
            player.stop()
    except ValueError as error:
        return _wrong(str(error))
    except control.ControlError as error:
        print(f"airpath drive: {error}", file=sys.stderr)
        return USAGE if error.kind == "run" else UNDONE
    if told["error"]:
        print(f"airpath drive: at {told['t']:.3f} s: {told['error']}", file=sys.stderr)
        return UNDONE if told["stopped"] else USAGE
    return DONE


def _wrong(what: str) -> int:
    print(f"airpath drive: {what}", file=sys.stderr)
    return USAGE
