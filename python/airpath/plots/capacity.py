# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Capacity of a path over time: constant rates, steps and traces, by states and blackouts.

It is the least rate of the hops, as the scenario gives it: frames and overheads are part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.experiment.quantities import QuantityError, rate_bps, time_ns
from airpath.plots.rate_trace import TraceError, read

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from airpath.run import Run

    Floats = NDArray[np.float64]

OPPORTUNITIES_BIN = "10 ms"
"""Width of the bins into which opportunities of mm-link are counted."""

INITIAL = "initial"
"""State at the beginning of every scenario."""

_UNKNOWN = np.nan


@dataclass(frozen=True)
class Course:
    """Rate over time, in seconds and bit/s: from each time on, or by a line to the next."""

    times: Floats
    rates: Floats
    linear: bool = False
    period: float = 0.0
    """Time after which it repeats; 0 if the last rate stays."""
    after: float | None = None
    """Rate after the last time of a course that does not repeat; none for its last rate."""
    end: float = np.inf
    """Time from which ``after`` holds."""

    def knots(self, until: float) -> Floats:
        """Return the times up to an end at which the rate or its slope changes."""
        if not self.period:
            return np.append(self.times, self.end if np.isfinite(self.end) else self.times[:1])
        rounds = np.arange(np.ceil(until / self.period) + 1) * self.period
        return (rounds[:, None] + self.times[None, :]).ravel()

    def at(self, times: Floats) -> Floats:
        """Return the rates at some times."""
        within = times % self.period if self.period else times
        if self.linear:
            ends = (
                np.append(self.times, self.period) if self.period > self.times[-1] else self.times
            )
            rates = np.append(self.rates, self.rates[-1])[: len(ends)]
            found = np.interp(within, ends, rates)
        else:
            found = self.rates[np.searchsorted(self.times, within, side="right") - 1]
        if self.after is not None:
            found = np.where(times >= self.end, self.after, found)
        return np.asarray(found, dtype=np.float64)


def capacity(run: Run, direction: str, edges: Floats) -> Floats | None:
    """Return the mean capacity in bit/s between edges in seconds; nan where it is not known.

    Args:
        run: the run.
        direction: of its path.
        edges: ascending times.

    Returns:
        None where the scenario tells no rate: a cell whose rates are those of its users' radio
        channels, or links without a rate.

    """
    scenario = run.manifest.get("scenario")
    if isinstance(scenario, dict) and run.users:
        return _of_medium(scenario, direction, edges)
    if run.users or not isinstance(scenario, dict) or not isinstance(scenario.get("hops"), list):
        return None
    changes = [(0.0, INITIAL), *((at / 1e9, state) for at, state in run.state_changes())]
    states: dict[str, Any] = {str(one.get("name")): one for one in scenario.get("states") or []}
    borders = {float(edge) for edge in edges} | {at for at, _ in changes}
    spells = []
    known = False
    for place, (begin, state) in enumerate(changes):
        end = changes[place + 1][0] if place + 1 < len(changes) else np.inf
        # Commands set what no scenario tells.
        told = state == INITIAL or state in states
        courses = _courses(run, scenario, states.get(state, {}), direction) if told else None
        spells.append((begin, end, courses))
        if courses:
            known = True
            for course in courses:
                borders |= set(course.knots(float(edges[-1])).tolist())
    if not known:
        return None
    times = np.array(sorted(at for at in borders if edges[0] <= at <= edges[-1]))
    left, right = _UNKNOWN * np.ones(len(times) - 1), _UNKNOWN * np.ones(len(times) - 1)
    for begin, end, courses in spells:
        inside = (times[:-1] >= begin) & (times[:-1] < end)
        if courses and inside.any():
            begins, ends = times[:-1][inside], times[1:][inside]
            # Just within the interval: a step at its end belongs to the next one.
            within = (ends - begins) * 1e-6
            left[inside] = np.min([one.at(begins + within) for one in courses], axis=0)
            right[inside] = np.min([one.at(ends - within) for one in courses], axis=0)
    carried = (left + right) / 2 * np.diff(times)
    places = np.searchsorted(edges, times[:-1], side="right") - 1
    totals = np.zeros(len(edges) - 1)
    np.add.at(totals, places, carried)
    return totals / np.diff(edges)


def _of_medium(scenario: dict[str, Any], direction: str, edges: Floats) -> Floats | None:
    """Return the constant rate of the one medium that all users of a run share, if it is one."""
    media = scenario.get("media")
    if not isinstance(media, list) or len(media) != 1 or scenario.get("states"):
        return None
    rate = media[0].get(direction) if isinstance(media[0], dict) else None
    if not isinstance(rate, str):
        return None
    try:
        return np.full(len(edges) - 1, float(rate_bps(rate)))
    except (QuantityError, ValueError):
        return None


def _courses(
    run: Run, scenario: dict[str, Any], state: dict[str, Any], direction: str
) -> list[Course] | None:
    """Return the courses of all hops that have a rate in a state; none if one is not known."""
    found = []
    for hop in scenario["hops"]:
        values: dict[str, Any] = {}
        for key in ("rate", "blackout"):
            for part in ("link", direction):
                values[key] = (hop.get(part) or {}).get(key, values.get(key))
            for part in ("link", direction):
                name = f"{hop.get('name')}.{part}.{key}"
                values[key] = (state.get("set") or {}).get(name, values[key])
        if values["blackout"] not in (None, "none"):
            return [_constant(0.0)]
        if values["rate"] is None or values["rate"] == "unlimited":
            continue
        try:
            course = _course(values["rate"], run.directory)
        except (QuantityError, TraceError, KeyError, TypeError, ValueError):
            return None
        if course is None:
            return None
        found.append(course)
    return found


def _constant(rate: float) -> Course:
    return Course(np.zeros(1), np.array([rate]))


def _course(value: Any, folder: Path) -> Course | None:
    """Return the course of a rate as scenarios give it; none for kinds without one."""
    if isinstance(value, str):
        return _constant(float(rate_bps(value)))
    kind = value.get("type")
    if kind == "steps":
        both = [text.split(":", 1) for text in value["steps"]]
        period = time_ns(value["period"]) / 1e9 if value.get("period") else 0.0
        return Course(
            np.array([time_ns(at) / 1e9 for at, _ in both]),
            np.array([float(rate_bps(rate)) for _, rate in both]),
            value.get("interpolation") == "linear",
            period,
        )
    if kind not in ("trace", "mahimahi"):
        return None
    trace = read(folder / str(value["file"]), OPPORTUNITIES_BIN)
    columns = np.array(trace["rates"], dtype=np.float64).reshape(-1, 2)
    end = float(trace["duration_ns"]) / 1e9
    repeats = bool(value.get("repeat", trace["repeats"]))
    return Course(
        columns[:, 0] / 1e9,
        columns[:, 1],
        value.get("interpolation") == "linear",
        end if repeats else 0.0,
        0.0 if kind == "mahimahi" and not repeats else None,
        end,
    )
