# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A course that plays: a thread that sets the values of an active run as their times come."""

from __future__ import annotations

import bisect
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from airpath.control import ControlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airpath.drive.course import Course

LEAST_BETWEEN_S = 0.02
"""Minimum time between two commands: of points that come faster, the last one is set."""
MOST_SPEED = 1_000.0
"""Maximum of how much faster than the course's own time it may play."""

_PARAMETERS = {"rate": "rate", "delay": "propagation", "loss": "errors"}


class Target(Protocol):
    """An active run, as ``airpath.control.Run``."""

    def set(self, parameters: Mapping[str, object]) -> Any:
        """Set parameters at one instant."""

    def state(self, name: str) -> Any:
        """Enter a state."""


class Player:
    """Plays a course over a hop of an active run, from a thread of its own."""

    def __init__(
        self,
        course: Course,
        target: Target,
        hop: str,
        *,
        user: str = "",
        at_s: float = 0.0,
        speed: float = 1.0,
    ) -> None:
        """Take the course; ``start`` plays it.

        Args:
            course: the course.
            target: the run.
            hop: the hop whose parameters are set.
            user: the user of a cell; empty for all, or where there are none.
            at_s: time of the course at which to begin.
            speed: seconds of the course in a second.

        """
        self.course = course
        self._target = target
        self._before = f"{user}." if user else ""
        self._hop = hop
        self._changed = threading.Condition()
        self._from_s = min(max(at_s, 0.0), course.duration_s)
        self._since = time.monotonic()
        self._speed = _speed(speed)
        self._playing = False
        self._seeks = 1
        self._stopped = False
        self._error = ""
        self._commands = 0
        self._dark = {
            direction: 0.0 in course.values.get(f"{direction} rate", ())
            for direction in ("uplink", "downlink")
        }
        self._thread = threading.Thread(target=self._play, daemon=True)

    def start(self) -> None:
        """Begin to play."""
        self.play()
        self._thread.start()

    def play(self) -> None:
        """Go on; from the beginning if the end was reached."""
        with self._changed:
            if self._now() >= self.course.duration_s:
                self._move(0.0)
            self._from_s, self._since = self._now(), time.monotonic()
            self._playing, self._error = True, ""
            self._changed.notify_all()

    def pause(self) -> None:
        """Stay where the course is; the values in force stay."""
        with self._changed:
            self._from_s, self._playing = self._now(), False
            self._changed.notify_all()

    def seek(self, at_s: float) -> None:
        """Go to a time of the course; the values that hold there are set at once."""
        with self._changed:
            self._move(min(max(at_s, 0.0), self.course.duration_s))
            self._changed.notify_all()

    def set_speed(self, speed: float) -> None:
        """Play at another speed.

        Raises:
            ValueError: it is none.

        """
        new = _speed(speed)
        with self._changed:
            self._from_s, self._since, self._speed = self._now(), time.monotonic(), new
            self._changed.notify_all()

    def stop(self) -> None:
        """End playing for good, and wait for it."""
        with self._changed:
            self._from_s, self._playing, self._stopped = self._now(), False, True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(30)

    def wait(self) -> None:
        """Wait until the course ends, is stopped, or cannot go on."""
        with self._changed:
            while self._playing and not self._stopped:
                self._changed.wait(0.5)

    def status(self) -> dict[str, Any]:
        """Return where the course is: time, place, speed, error."""
        with self._changed:
            now = self._now()
            return {
                "t": round(now, 3),
                "duration_s": self.course.duration_s,
                "playing": self._playing,
                "stopped": self._stopped,
                "speed": self._speed,
                "place": self.course.place_at(now),
                "commands": self._commands,
                "error": self._error,
            }

    def _now(self) -> float:
        passed = (time.monotonic() - self._since) * self._speed if self._playing else 0.0
        return min(self._from_s + passed, self.course.duration_s)

    def _move(self, at_s: float) -> None:
        self._from_s, self._since = at_s, time.monotonic()
        self._seeks += 1

    def _play(self) -> None:
        """Set what is due, and sleep until the next point."""
        done, seeks = -1, 0
        times = self.course.times_s
        while True:
            with self._changed:
                if self._stopped:
                    return
                now = self._now()
                point = bisect.bisect_right(times, now) - 1
                fresh = self._seeks != seeks
                if not fresh and point <= done:
                    if not self._playing:
                        self._changed.wait()
                        continue
                    if now >= self.course.duration_s:
                        self._from_s, self._playing = now, False
                        self._changed.notify_all()
                        continue
                    behind = done + 1
                    until = times[behind] if behind < len(times) else self.course.duration_s
                    self._changed.wait(max((until - now) / self._speed, 0.0005))
                    continue
                seeks = self._seeks
            values, state = self.values_of(point, -1 if fresh else done)
            try:
                if state:
                    self._target.state(self._before + state)
                if values:
                    self._target.set(values)
            except (ControlError, OSError) as error:
                with self._changed:
                    self._from_s, self._playing, self._error = self._now(), False, str(error)
                    self._stopped = getattr(error, "kind", "ended") in ("ended", "run")
                    self._changed.notify_all()
            with self._changed:
                self._commands += 1
            done = point
            time.sleep(LEAST_BETWEEN_S)

    def values_of(self, point: int, done: int) -> tuple[dict[str, object], str | None]:
        """Return parameters and the state that points bring, those behind ``done`` up to ``point``.

        Of each the last value counts.
        """
        found: dict[str, object] = {}
        for name, column in self.course.values.items():
            direction, quantity = name.split()
            value = next(
                (column[at] for at in range(point, done, -1) if column[at] is not None), None
            )
            if value is None:
                continue
            link = f"{self._before}{self._hop}.{direction}"
            if quantity == "rate" and self._dark[direction]:
                # A rate of zero: nothing is sent, and all waits.
                found[f"{link}.blackout"] = "store" if value == 0 else "none"
            if quantity != "rate" or value > 0:
                found[f"{link}.{_PARAMETERS[quantity]}"] = _text(quantity, value)
        states = self.course.states
        state = next((states[at] for at in range(point, done, -1) if states[at]), None)
        return found, state


def _text(quantity: str, value: float) -> object:
    if quantity == "rate":
        return f"{max(1, round(value))} bit/s"
    if quantity == "delay":
        return f"{round(value * 1e9)} ns"
    if value == 0:
        return {"type": "none"}
    return {"type": "bernoulli", "per": "packet", "probability": value, "effect": "drop"}


def _speed(speed: float) -> float:
    if not 0 < speed <= MOST_SPEED:
        raise ValueError(f"a speed is above 0 and up to {MOST_SPEED:g}, not {speed:g}")
    return speed
