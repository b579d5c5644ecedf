# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Courses: values of a link over time, and the places at which they hold.

A course is a CSV file with a heading, a trace of rates in any format of ``airpath trace``, or the
GPX file of a route. Of a route only places are known; another file gives the values.
"""

from __future__ import annotations

import bisect
import csv
import itertools
import math
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from airpath.facts import UNITS
from airpath.files import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MOST_BYTES = 16_000_000
"""Maximum size of a file."""
MOST_POINTS = 1_000_000
"""Maximum number of points of a course."""
EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the earth, as for routes of scenarios."""

QUANTITIES = ("rate", "delay", "loss")
"""Quantities of a course, in bit/s, seconds, and as a probability."""
SIDES = {"": ("uplink", "downlink"), "uplink_": ("uplink",), "downlink_": ("downlink",)}
"""Directions of a column by the beginning of its name."""

_BASE = {"time": ("time", 1e9), "delay": ("time", 1e9), "rate": ("rate", 1.0)}
"""Quantity of the units of a column, and how many of its smallest units are one of ours."""
_ENDINGS = {
    "rate": {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "delay": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "loss": {"percent": 1e-2},
}
"""Units at the end of a column's name."""
_PLACES = (("x_m", "y_m"), ("longitude", "latitude"))
_AMOUNT = re.compile(r"([0-9.eE+-]*[0-9.])\s*(\S*)")


class CourseError(Exception):
    """A file is no course; the message says where."""


@dataclass(frozen=True)
class Course:
    """Values over time; each holds from its time to that of the next."""

    times_s: tuple[float, ...]
    """Times of points, ascending, the first one 0."""
    values: dict[str, tuple[float | None, ...]]
    """Of each ``DIRECTION QUANTITY``, such as ``downlink rate``, a value for each point; None
    where the value before goes on."""
    states: tuple[str | None, ...]
    """The state that each point enters, if any."""
    route: tuple[tuple[float, float, float], ...] = ()
    """Times in seconds, and places in metres east and north of some point."""

    @property
    def duration_s(self) -> float:
        """Time of the last point of the values and of the route."""
        return max(self.times_s[-1], self.route[-1][0] if self.route else 0.0)

    def place_at(self, time_s: float) -> tuple[float, float] | None:
        """Return the place at a time: on the straight line between two points of the route."""
        if not self.route:
            return None
        behind = bisect.bisect_left(self.route, time_s, key=lambda point: point[0])
        if behind == 0:
            return self.route[0][1:]
        if behind < len(self.route):
            (begin, *one), (end, *other) = self.route[behind - 1 : behind + 1]
            share = (time_s - begin) / (end - begin)
            return (
                one[0] + (other[0] - one[0]) * share,
                one[1] + (other[1] - one[1]) * share,
            )
        return self.route[-1][1:]

    def with_route(self, other: Course) -> Course:
        """Return this course along the route of another one."""
        return replace(self, route=other.route)


def read_course(path: Path, rates: Callable[[Path], Any], directions: Sequence[str]) -> Course:
    """Read a course.

    Args:
        path: the file: ``.gpx`` for a route, ``.csv`` with a heading, or a trace of rates.
        rates: gives the points of a trace of rates: a list of times in seconds and bit/s.
        directions: directions whose rate a trace of rates is.

    Raises:
        CourseError: it is no course.
        OSError: it cannot be read.

    """
    if path.suffix.lower() == ".gpx":
        return _of_gpx(path)
    if path.suffix.lower() == ".csv":
        lines = [line for line in _text(path).splitlines() if line.strip()]
        lines = [line for line in lines if not line.lstrip().startswith("#")]
        if lines and re.match(r"\s*time", lines[0]) and not _is_rate_trace(lines[0]):
            return _of_table(path, lines)
    points = rates(path)
    if not points:
        raise CourseError(f"{path}: the trace has no points")
    first = float(points[0][0])
    values = tuple(float(rate) for _, rate in points)
    return Course(
        tuple(float(time) - first for time, _ in points),
        {f"{direction} rate": values for direction in directions},
        (None,) * len(points),
    )


def _text(path: Path) -> str:
    try:
        return read_text(path, MOST_BYTES)
    except ValueError as error:
        raise CourseError(f"{path}: it is no text: {error}") from error


def _is_rate_trace(heading: str) -> bool:
    names = [name.strip() for name in heading.split(",")]
    return len(names) == 2 and names[1].startswith("rate")


def _of_table(path: Path, lines: list[str]) -> Course:
    rows = csv.reader(lines, skipinitialspace=True)
    names = [name.strip() for name in next(rows)]
    columns = [_Column.of(name) for name in names]
    wrong = [name for name, column in zip(names, columns, strict=True) if column is None]
    if wrong:
        raise CourseError(
            f"{path}: `{wrong[0]}` is no column of a course; known are time, rate, delay, loss "
            f"(also uplink_… and downlink_…, and with a unit, as in rate_mbps), state, x_m, y_m, "
            f"longitude, latitude"
        )
    if len(set(names)) < len(names):
        raise CourseError(f"{path}: two columns have the same name")
    table: list[list[Any]] = []
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise CourseError(f"{path}: row {number} has {len(row)} values, not {len(names)}")
        if len(table) == MOST_POINTS:
            raise CourseError(f"{path}: more than {MOST_POINTS:,} points")
        try:
            table.append([c.read(cell.strip()) for c, cell in zip(columns, row, strict=True) if c])
        except ValueError as error:
            raise CourseError(f"{path}: row {number}: {error}") from error
    by_name = dict(zip(names, zip(*table, strict=True), strict=True)) if table else {}
    kinds = {column.kind: name for name, column in zip(names, columns, strict=True) if column}
    times = by_name.get(kinds["time"], ())
    if not times:
        raise CourseError(f"{path}: the course has no points")
    if None in times or any(b <= a for a, b in itertools.pairwise(times)):
        raise CourseError(f"{path}: times must ascend, and none may be missing")
    since = [time - times[0] for time in times]
    values = {
        f"{direction} {column.kind}": by_name[name]
        for name, column in zip(names, columns, strict=True)
        if column and column.kind in QUANTITIES
        for direction in column.directions
    }
    route: list[tuple[float, float, float]] = []
    for pair in _PLACES:
        if all(name in by_name for name in pair):
            placed = zip(since, *(by_name[name] for name in pair), strict=True)
            route = [(t, x, y) for t, x, y in placed if x is not None and y is not None]
            route = _projected(route) if pair[0] == "longitude" else route
    states = by_name[kinds["state"]] if "state" in kinds else (None,) * len(since)
    return Course(tuple(since), values, tuple(states), tuple(route))


@dataclass(frozen=True)
class _Column:
    kind: str
    directions: tuple[str, ...] = ()
    factor: float | None = None
    """Number of our units in a bare number; None if the cell has to have its unit."""

    @classmethod
    def of(cls, name: str) -> _Column | None:
        """Return the column of a name; None if there is no such one."""
        if name in ("x_m", "y_m", "latitude", "longitude", "state"):
            return cls(name, (), 1.0)
        side = next((side for side in ("uplink_", "downlink_") if name.startswith(side)), "")
        kind, _, ending = name.removeprefix(side).partition("_")
        if kind not in _ENDINGS or (ending and ending not in _ENDINGS[kind]) or side + kind == "":
            return None
        if kind == "time" and side:
            return None
        bare = {"loss": 1.0, "time": 1.0}.get(kind)
        return cls(kind, SIDES[side], _ENDINGS[kind][ending] if ending else bare)

    def read(self, cell: str) -> Any:
        """Return the value of a cell in our unit; None if it is empty.

        Raises:
            ValueError: it is none.

        """
        if not cell:
            return None
        if self.kind == "state":
            return cell
        found = _AMOUNT.fullmatch(cell)
        number = float(found[1]) if found else math.nan
        if not math.isfinite(number):
            raise ValueError(f"`{cell}` is no {self.kind}")
        factor = self.factor
        if found and found[2]:
            if self.kind == "loss":
                factor = 0.01 if found[2] == "%" else None
            elif self.kind in _BASE:
                quantity, per = _BASE[self.kind]
                unit = UNITS[quantity].get(found[2])
                factor = unit / per if unit else None
            else:
                factor = None
        if factor is None:
            raise ValueError(f"`{cell}` has no unit that fits a {self.kind}")
        value = number * factor
        if self.kind in QUANTITIES and (value < 0 or (self.kind == "loss" and value > 1)):
            raise ValueError(f"`{cell}` is no {self.kind}: it is out of range")
        return value


def _of_gpx(path: Path) -> Course:
    text = _text(path)
    # Without declarations nothing in it can expand.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise CourseError(f"{path}: a GPX file with declarations of its own is not read")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise CourseError(f"{path}: it is no GPX file: {error}") from error
    found: list[tuple[float, float, float]] = []
    for name in ("trkpt", "rtept"):
        for node in root.iter():
            if node.tag.rpartition("}")[2] == name and not (name == "rtept" and found):
                found.append(_gpx_point(path, node))
    if len(found) < 2:
        raise CourseError(f"{path}: a route needs two points with times")
    times = [time - found[0][0] for time, _, _ in found]
    if any(b <= a for a, b in itertools.pairwise(times)):
        raise CourseError(f"{path}: times must ascend")
    placed = [(t, x, y) for t, (_, x, y) in zip(times, found, strict=True)]
    return Course((0.0,), {}, (None,), tuple(_projected(placed)))


def _gpx_point(path: Path, node: ElementTree.Element) -> tuple[float, float, float]:
    time = next((one.text or "" for one in node if one.tag.rpartition("}")[2] == "time"), "")
    try:
        instant = datetime.fromisoformat(time.strip()).timestamp()
        place = float(node.get("lon", "")), float(node.get("lat", ""))
    except ValueError as error:
        raise CourseError(f"{path}: a point needs lat, lon and a time: {error}") from error
    if not (abs(place[0]) <= 180 and abs(place[1]) <= 90):
        raise CourseError(f"{path}: {place[1]}, {place[0]} is no place on the earth")
    return instant, *place


def _projected(places: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return metres east and north of the first place: the plane through it, as on a city's plan.

    The equirectangular projection; at a latitude of 60 degrees it is wrong by 0.03 % over 2 km.
    """
    if not places:
        return []
    _, longitude, latitude = places[0]
    narrow = math.cos(math.radians(latitude))
    return [
        (
            time,
            math.radians(x - longitude) * narrow * EARTH_RADIUS_M,
            math.radians(y - latitude) * EARTH_RADIUS_M,
        )
        for time, x, y in places
    ]
