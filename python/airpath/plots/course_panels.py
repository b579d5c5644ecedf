# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of courses over time: bands of sets, in one panel while they are few."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from airpath.analysis.text import scale
from airpath.natural import natural_order
from airpath.plots import courses
from airpath.plots.kinds import COURSES
from airpath.plots.sheet import COLOURS, LINES, legend, sheet
from airpath.plots.style import GREY, Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.plots.courses import Courses
    from airpath.plots.kinds import Course
    from airpath.plots.style import Figure

MOST_TOGETHER = 3
"""Sets whose bands can be told apart in one panel."""

COLUMNS = 3
"""Panels beside one another where each set has its own."""


def draw_courses(found: Sequence[Courses], length_ns: int, kinds: Sequence[str]) -> list[Picture]:
    """Draw courses over time: of each set the median over replications, and the band of 5 to 95 %.

    Args:
        found: the courses of the replications.
        length_ns: how long they last.
        kinds: pictures, of ``COURSE_PICTURES``.

    """
    names = natural_order({one.set_name for one in found})
    pictures = []
    for name, kind in COURSES.items():
        shown = courses.places(found, name) if f"{name}-course" in kinds else []
        if not shown:
            continue
        banded = {place: _banded(found, (name, place), names) for place in shown}
        draw = _beside if len(names) > MOST_TOGETHER else _together
        pictures.append(Picture(f"{name}-course", draw(kind, banded, names, length_ns / 1e9)))
    return pictures


def _banded(
    found: Sequence[Courses], key: tuple[str, str], names: list[str]
) -> dict[str, NDArray[np.float64]]:
    """Return the bands of each set that has any."""
    by_set = {
        of: [one.values[key] for one in found if one.set_name == of and key in one.values]
        for of in names
    }
    return {of: courses.bands(rows) for of, rows in by_set.items() if rows}


def _together(
    kind: Course,
    banded: dict[str, dict[str, NDArray[np.float64]]],
    names: list[str],
    length_s: float,
) -> Figure:
    """Draw all sets in one panel for each place."""
    with sheet(len(banded), 2.4) as (figure, axes):
        for axis, (place, of_sets) in zip(axes, banded.items(), strict=True):
            divisor, unit = _scaled(kind, of_sets)
            _bands(axis, of_sets, divisor, names, length_s)
            axis.set_ylabel(f"{kind.text}, {place}\n({unit})")
            axis.set_xlim(0, length_s)
        legend(figure, axes, names, ": median, 5 to 95 %")
        axes[-1].set_xlabel(_time(length_s))
    return figure


def _beside(
    kind: Course,
    banded: dict[str, dict[str, NDArray[np.float64]]],
    names: list[str],
    length_s: float,
) -> Figure:
    """Draw each set in a panel of its own, to one scale, with the others' medians in grey."""
    rows_of_place = math.ceil(len(names) / COLUMNS)
    with sheet(rows_of_place * len(banded), 1.6, COLUMNS) as (figure, axes):
        for number, (place, of_sets) in enumerate(banded.items()):
            begin = number * rows_of_place * COLUMNS
            panels = axes[begin : begin + rows_of_place * COLUMNS]
            divisor, unit = _scaled(kind, of_sets)
            for axis in panels[len(names) :]:
                axis.set_visible(False)
            for index, (axis, name) in enumerate(zip(panels, names, strict=False)):
                for other, band in of_sets.items():
                    if other != name:
                        axis.step(
                            _begins(length_s),
                            np.append(band[1], band[1, -1]) / divisor,
                            where="post",
                            color=GREY,
                            alpha=0.45,
                            linewidth=0.6,
                        )
                if name in of_sets:
                    _bands(axis, {name: of_sets[name]}, divisor, names, length_s)
                axis.set_title(name, loc="left", fontsize="small")
                axis.set_xlim(0, length_s)
                if index % COLUMNS == 0:
                    axis.set_ylabel(f"{kind.text}, {place}\n({unit})")
            top = max(axis.get_ylim()[1] for axis in panels[: len(names)])
            for axis in panels[: len(names)]:
                axis.set_ylim(0, top)
        told = f"{_time(length_s)}; median, 5 to 95 %, medians of other sets in grey"
        figure.supxlabel(told, fontsize="medium")
    return figure


def _time(length_s: float) -> str:
    return f"Time since the run began (s), in steps of {length_s / courses.COURSE_BINS:.2g} s"


def _begins(length_s: float) -> NDArray[np.float64]:
    return np.linspace(0, length_s, courses.COURSE_BINS + 1)


def _scaled(kind: Course, of_sets: dict[str, NDArray[np.float64]]) -> tuple[float, str]:
    """Return the unit in which bands are drawn, and how much of their own unit it is."""
    finite = [band[np.isfinite(band)] for band in of_sets.values()]
    return scale(kind.unit, [max((float(band.max()) for band in finite if band.size), default=0.0)])


def _bands(
    axis: Axes,
    banded: dict[str, NDArray[np.float64]],
    divisor: float,
    names: list[str],
    length_s: float,
) -> None:
    """Draw the bands of sets."""
    begins = _begins(length_s)
    for name, band in banded.items():
        place = names.index(name)
        # The last value holds to the end of its interval.
        low, middle, high = np.column_stack([band, band[:, -1]]) / divisor
        axis.fill_between(
            begins,
            low,
            high,
            step="post",
            color=COLOURS[place % len(COLOURS)],
            alpha=0.18,
            linewidth=0,
        )
        axis.step(
            begins,
            middle,
            where="post",
            color=COLOURS[place % len(COLOURS)],
            linestyle=LINES[place % len(LINES)],
            label=name,
        )
    axis.set_ylim(0, None)
