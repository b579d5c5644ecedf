# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Look of sleep methods, the same in every picture, and the layout of their panels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from airpath.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from airpath.timing import Report, Series

# A family of calls has a colour, each of its members a mark.
_METHODS = {
    "select": (BLUE, "o"),
    "poll": (BLUE, "s"),
    "epoll_wait": (BLUE, "^"),
    "epoll_pwait2": (BLUE, "v"),
    "nanosleep": (ORANGE, "o"),
    "clock_nanosleep": (ORANGE, "s"),
    "clock_nanosleep_absolute": (ORANGE, "D"),
    "timerfd": (GREEN, "o"),
    "timerfd_absolute": (GREEN, "D"),
    "io_uring": (PURPLE, "p"),
    "posix_timer": (SKY, "P"),
    "rtc": (SKY, "X"),
    "busy": (VERMILLION, "o"),
    "busy_yield": (VERMILLION, "s"),
    "early_spin": (BLACK, "*"),
}
_OTHER_MARKERS = "1234+x"
_TECHNIQUES = ("plain", "slack", "pre_compensation", "slack_and_pre_compensation")
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1, 1.5)))
_FILLS: tuple[Any, ...] = ("full", "left", "top", "none")

NANOSECONDS_PER_MICROSECOND = 1e3
LEAST_NS = 1.0
"""Least value on logarithmic axes, the clock's own step; smaller ones are drawn here."""

MOST_COLUMNS = 2
"""Measurements side by side; more go below."""


def colour(method: str) -> str:
    """Return the colour of a way of sleeping."""
    return _METHODS[method][0] if method in _METHODS else GREY


def marker(method: str) -> str:
    """Return the mark of a way of sleeping; no two of a colour have the same."""
    if method in _METHODS:
        return _METHODS[method][1]
    return _OTHER_MARKERS[sum(method.encode()) % len(_OTHER_MARKERS)]


def line(index: int) -> Any:
    """Return the dashes of the index-th technique or setting."""
    return _LINES[index % len(_LINES)]


def technique_line(technique: str) -> Any:
    """Return the dashes of a technique."""
    return line(_technique_number(technique))


def technique_fill(technique: str) -> Any:
    """Return how the marks of a technique are filled."""
    return _FILLS[_technique_number(technique)]


def _technique_number(technique: str) -> int:
    return _TECHNIQUES.index(technique) if technique in _TECHNIQUES else len(_TECHNIQUES) - 1


def in_order(values: Iterable[str]) -> list[str]:
    """Return each value once, in the order of their first appearance."""
    return list(dict.fromkeys(values))


def methods(series: Iterable[Any]) -> list[str]:
    """Return the sleep methods, the known ones in their usual order and others behind."""
    found = in_order(each.method for each in series)
    usual = list(_METHODS)
    return sorted(found, key=lambda name: usual.index(name) if name in usual else len(usual))


def handles(names: Iterable[str], *, linestyle: Any = "-") -> list[Artist]:
    """Return what a legend shows of sleep methods."""
    return [
        Line2D(
            [],
            [],
            color=colour(name),
            marker=marker(name),
            markersize=4,
            linestyle=linestyle,
            linewidth=1.1,
            label=name,
        )
        for name in names
    ]


def titles(reports: Sequence[Report]) -> list[str]:
    """Return what stands over the panel of each measurement, told apart where names are equal."""
    names = [report.title for report in reports]
    if len(set(names)) == len(names):
        return names
    return [f"{report.directory}: {name}" for report, name in zip(reports, names, strict=True)]


def columns(reports: Sequence[Report]) -> tuple[int, int]:
    """Return rows and columns in which measurements stand side by side."""
    across = min(len(reports), MOST_COLUMNS)
    return math.ceil(len(reports) / across), across


def magnitudes_ns(report: Report, series: Series) -> NDArray[np.float64]:
    """Return how far each request was missed, either way, ascending."""
    errors = np.abs(report.errors_of(series).to_numpy().astype(np.float64))
    return np.sort(np.maximum(errors, LEAST_NS))


def heading(figure: Figure, text: str) -> None:
    """Put the title of a picture at its left; call it when the panels are drawn."""
    title = figure.suptitle(text, ha="left", fontsize=10.5, fontweight="bold")
    figure.draw_without_rendering()  # settles the layout, so that the title can be aligned
    title.set_x(min(axis.get_position().x0 for axis in figure.get_axes()))


def spread(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Move places apart until neighbours have a distance, within limits and in their order.

    Places too many for the limits keep equal distances, smaller ones.
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    distance = min(least, (high - low) / max(len(places) - 1, 1))
    moved: list[float] = []
    for rank, index in enumerate(order):
        # What lies above needs its room too.
        most = high - distance * (len(order) - 1 - rank)
        under = moved[-1] + distance if moved else low
        moved.append(min(max(places[index], under), most))
    result = [0.0] * len(places)
    for place, index in zip(moved, order, strict=True):
        result[index] = place
    return result


def write_names(
    axis: Axes,
    points: Sequence[tuple[float, float, str]],
    others: Sequence[tuple[float, float]] = (),
) -> None:
    """Write names beside points where they cover neither one another nor another named point.

    Places that cover none of the ``others`` either come first. A name without room is left out.
    The layout must be settled.
    """
    frame = axis.get_window_extent()
    spots = [tuple(axis.transData.transform((x, y))) for x, y, _ in points]
    crowd = [tuple(axis.transData.transform(point)) for point in others]
    taken: list[Any] = []
    for (x, y, name), own in zip(points, spots, strict=True):
        text = axis.annotate(name, (x, y), xytext=(5, 0), textcoords="offset points", fontsize=7)
        text.set_bbox({"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.4})
        text.set_in_layout(False)
        text.set_zorder(6)
        best: tuple[int, int] | None = None
        for number, place in enumerate(_PLACES):
            _move(text, place)
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            inside = inside and frame.y0 <= box.y0 and box.y1 <= frame.y1
            hidden = any(box.contains(*spot) for spot in spots if spot != own)
            if not inside or hidden or any(box.overlaps(other) for other in taken):
                continue
            covered = sum(bool(box.contains(*spot)) for spot in crowd)
            if best is None or (covered, number) < best:
                best = (covered, number)
        if best is None:
            text.remove()
            continue
        _move(text, _PLACES[best[1]])
        taken.append(text.get_window_extent())


def _move(text: Any, place: tuple[float, float]) -> None:
    dx, dy = place
    text.set_position(place)
    text.set_ha("left" if dx > 0 else "right" if dx < 0 else "center")
    text.set_va("center" if dy == 0 else "bottom" if dy > 0 else "top")


_PLACES = (
    (5, 0),
    (-5, 0),
    (0, 5),
    (0, -5),
    (5, 6),
    (5, -6),
    (-5, 6),
    (-5, -6),
    (8, 14),
    (8, -14),
    (30, 22),
    (30, -22),
)
"""Possible places of a name, in points from its own."""
