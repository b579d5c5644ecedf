# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Actual against requested time of the first requests, after figure 3 of Gurtov 1999.

Below each panel stands how far the same requests were missed, which today's machines would hide in
the panel itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from airpath.plots.style import BLACK, Picture, canvas
from airpath.plots.timing import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from airpath.timing import Report, Series

REQUESTS = 100
"""Requests drawn of each series, as in the paper."""

COLUMNS = 4
MOST_PANELS = 16
LINEAR_US = 1.0
"""Misses up to here are on a linear scale, beyond on a logarithmic one."""


def draw(reports: Sequence[Report]) -> list[Picture]:
    """Draw a panel for each way of sleeping and technique, measurements side by side.

    Of settings the first is drawn, which is the system's own if it was measured.
    """
    techniques = look.in_order(each.technique for report in reports for each in report.measured)
    pictures = []
    for technique in techniques:
        limits = _limits(reports, technique)
        names = look.methods(
            each for report in reports for each in report.measured if each.technique == technique
        )
        shown = [
            (report, title, report.find(name, technique))
            for name in names
            for report, title in zip(reports, look.titles(reports), strict=True)
        ]
        columns = min(COLUMNS, len(shown)) if len(reports) == 1 else min(COLUMNS, len(reports))
        step = MOST_PANELS // columns * columns
        pages = [shown[start : start + step] for start in range(0, len(shown), step)]
        for number, page in enumerate(pages, 1):
            name = f"requests-{technique.replace('_', '-')}"
            name += f"-{number}" if len(pages) > 1 else ""
            pictures.append(_picture(name, page, columns, limits, several=len(reports) > 1))
    return pictures


_Place = tuple["Report", str, "Series | None"]


class _Limits(NamedTuple):
    """Range of the axes of all panels of a technique."""

    requested_ms: float
    actual_ms: float
    missed_us: float


def _limits(reports: Sequence[Report], technique: str) -> _Limits:
    longest, slept, missed = 0.0, 0.0, LINEAR_US
    for report in reports:
        for series in report.measured:
            rows = report.samples_of(series).head(REQUESTS)
            if series.technique != technique or rows.is_empty():
                continue
            requested, actual = rows["requested_ns"].to_numpy(), rows["actual_ns"].to_numpy()
            longest = max(longest, float(requested.max()) / 1e6)
            slept = max(slept, float(actual.max()) / 1e6)
            missed = max(missed, float(np.abs(actual - requested).max()) / 1e3)
    return _Limits(longest, slept, missed)


def _picture(
    name: str, page: Sequence[_Place], columns: int, limits: _Limits, *, several: bool
) -> Picture:
    rows = math.ceil(len(page) / columns)
    technique = next(series.technique_text for _, _, series in page if series is not None)
    with canvas(2.35 * rows + 0.8) as figure:
        axes = figure.subplots(
            2 * rows,
            columns,
            sharex=True,
            sharey="row",
            squeeze=False,
            height_ratios=[2.6, 1] * rows,
        )
        for axis in axes.flat:
            axis.set_visible(False)
        for index, (report, title, series) in enumerate(page):
            if series is None:
                continue
            row, column = divmod(index, columns)
            above, below = axes[2 * row, column], axes[2 * row + 1, column]
            _panel(above, below, report, series, limits)
            heading = series.method.replace("clock_nanosleep_absolute", "clock_nanosleep abs.")
            if several:
                heading = f"{title}\n{heading}"
            if series.setting != "default":
                heading += f"\n{series.setting}"
            above.set_title(heading, loc="left", fontsize=7.5)
            if column == 0 or not axes[2 * row, column - 1].get_visible():
                above.set_ylabel("Actual (ms)")
                below.set_ylabel("Missed by (µs)", fontsize=7.5)
                above.tick_params(labelleft=True)
                below.tick_params(labelleft=True)
            below.tick_params(labelbottom=True)
            if index + columns >= len(page):
                below.set_xlabel("Requested (ms)")
        look.heading(figure, f"Actual against requested sleeps, first {REQUESTS}: {technique}")
    return Picture(name, figure)


def _panel(above: Axes, below: Axes, report: Report, series: Series, limits: _Limits) -> None:
    rows = report.samples_of(series).head(REQUESTS)
    requested = rows["requested_ns"].to_numpy() / 1e6
    actual = rows["actual_ns"].to_numpy() / 1e6
    longest, slept, missed = limits
    look_of_marks: dict[str, Any] = {
        "linestyle": "",
        "marker": "o",
        "markersize": 2,
        "markeredgewidth": 0,
        "color": look.colour(series.method),
    }
    for axis in (above, below):
        axis.set_visible(True)
    above.plot([0, longest], [0, longest], color=BLACK, linestyle="--", linewidth=0.7, zorder=2)
    above.plot(requested, actual, label=series.method, zorder=3, **look_of_marks)
    above.set_xlim(-0.03 * longest, 1.03 * longest)
    above.set_ylim(-0.03 * slept, 1.03 * max(slept, longest))
    below.axhline(0, color=BLACK, linestyle="--", linewidth=0.7, zorder=2)
    below.plot(requested, (actual - requested) * 1e3, zorder=3, **look_of_marks)
    below.set_yscale("symlog", linthresh=LINEAR_US, linscale=0.5)
    below.set_ylim(-2 * missed, 2 * missed)
    # Ticks between show that the scale is logarithmic.
    decades = math.floor(math.log10(missed))
    ticks = sorted({-(10.0**decades), 0.0, 10.0 ** (decades // 2), 10.0**decades})
    below.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    below.minorticks_off()
    below.tick_params(labelsize=6.5)
