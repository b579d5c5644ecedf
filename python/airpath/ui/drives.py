# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Courses that play over active runs: one for each run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath import control
from airpath.drive.course import Course, CourseError, read_course
from airpath.drive.player import Player
from airpath.drive.rates import RatesError, rates_of
from airpath.ui.errors import UiError, not_found

if TYPE_CHECKING:
    from airpath.ui.workspace import Workspace

MOST_POINTS = 2_000
"""Maximum number of points of a curve or a route that the page draws."""
SUFFIXES = (".csv", ".trace", ".txt", ".json", ".gpx")
"""Ends of the names of courses."""


def course_of(workspace: Workspace, name: str, route: str, direction: str) -> Course:
    """Read a course of the workspace.

    Args:
        workspace: the workspace.
        name: the file.
        route: another file whose places count, or empty.
        direction: the direction of a trace of rates; empty for both.

    Raises:
        UiError: a file is no course.

    """
    directions = (direction,) if direction else ("uplink", "downlink")
    if not set(directions) <= {"uplink", "downlink"}:
        raise UiError(f"{direction!r} is no direction")

    def read(file: str) -> Course:
        if not file.endswith(SUFFIXES):
            raise UiError(f"{file!r} is no course: its name ends with {', '.join(SUFFIXES)}")
        path = workspace.inside(file)
        try:
            return read_course(path, rates_of, directions)
        except (CourseError, RatesError) as error:
            raise UiError(str(error), 422) from error
        except OSError as error:
            raise not_found(f"{file}: {error.strerror}") from error

    course = read(name)
    return course.with_route(read(route)) if route else course


def shown(course: Course) -> dict[str, Any]:
    """Return a course as the page draws it, thinned to what can be seen."""
    step = -(-len(course.times_s) // MOST_POINTS)
    along = -(-len(course.route) // MOST_POINTS)
    return {
        "duration_s": course.duration_s,
        "times": [round(time, 6) for time in course.times_s[::step]],
        "values": {name: list(column[::step]) for name, column in course.values.items()},
        "states": [
            [time, state]
            for time, state in zip(course.times_s, course.states, strict=True)
            if state
        ][:MOST_POINTS],
        "route": [[round(part, 3) for part in point] for point in course.route[:: along or 1]],
        "thinned": max(step, along or 1) > 1,
    }


@dataclass
class Drives:
    """The courses that play, by the number of their run."""

    workspace: Workspace
    _playing: dict[int, tuple[Player, control.Run, str]] = field(default_factory=dict)

    def start(self, number: int, ask: dict[str, Any]) -> dict[str, Any]:
        """Play a course over a run, in the place of one that plays.

        Raises:
            UiError: there is no such run, hop or course.

        """
        course = course_of(
            self.workspace,
            str(ask.get("name", "")),
            str(ask.get("route") or ""),
            str(ask.get("direction") or ""),
        )
        if not course.values and not any(course.states):
            raise UiError("the course is a route alone: choose a file with values too")
        self.stop(number)
        try:
            run = control.Run.of_number(number)
            hops = run.describe().hops
        except control.ControlError as error:
            raise UiError(str(error), 410 if error.kind in ("ended", "run") else 422) from error
        hop = str(ask.get("hop") or (hops[0] if hops else ""))
        try:
            player = Player(
                course,
                run,
                hop,
                user=str(ask.get("user") or ""),
                at_s=float(ask.get("at") or 0.0),
                speed=float(ask.get("speed") or 1.0),
            )
        except (TypeError, ValueError) as error:
            run.close()
            raise UiError(str(error)) from error
        self._playing[number] = player, run, str(ask["name"])
        player.start()
        return self.status(number)

    def command(self, number: int, ask: dict[str, Any]) -> dict[str, Any]:
        """Change a course that plays: ``play``, ``pause``, ``seek``, ``speed`` or ``stop``.

        Raises:
            UiError: none plays, or the value does not fit.

        """
        if number not in self._playing:
            raise not_found(f"no course plays over run {number}")
        player = self._playing[number][0]
        try:
            if "seek" in ask:
                player.seek(float(ask["seek"]))
            if "speed" in ask:
                player.set_speed(float(ask["speed"]))
        except (TypeError, ValueError) as error:
            raise UiError(str(error)) from error
        if ask.get("play"):
            player.play()
        if ask.get("pause"):
            player.pause()
        found = self.status(number)
        if ask.get("stop"):
            self.stop(number)
            found |= {"playing": False, "stopped": True}
        return found

    def status(self, number: int) -> dict[str, Any]:
        """Return where the course of a run is; empty if none plays."""
        if number not in self._playing:
            return {}
        player, _, name = self._playing[number]
        return {"name": name, **player.status()}

    def stop(self, number: int) -> None:
        """End the course of a run, if one plays; the values in force stay."""
        player, run, _ = self._playing.pop(number, (None, None, ""))
        if player is not None and run is not None:
            player.stop()
            run.close()

    def close(self) -> None:
        """End all courses."""
        for number in list(self._playing):
            self.stop(number)
