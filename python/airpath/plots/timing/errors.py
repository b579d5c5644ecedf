# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Errors of requests: the share that is missed by more than a given time.

Both axes are logarithmic, so that the one request in a thousand is seen as well as the usual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from airpath.plots.style import GREY, Picture, canvas
from airpath.plots.timing import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.timing import Report

MOST_POINTS = 400
"""Points of a curve at most: evenly over the logarithm of the share."""


def draw(reports: Sequence[Report]) -> list[Picture]:
    """Draw a row of panels for each technique, a column for each measurement."""
    series = [each for report in reports for each in report.measured]
    if not series:
        return []
    techniques = look.in_order(each.technique_text for each in series)
    settings = look.in_order(each.setting for each in series)
    names = look.methods(series)
    # Beside one another as long as a panel is wide enough to be read; else a picture each.
    groups = [reports[i : i + look.MOST_COLUMNS] for i in range(0, len(reports), look.MOST_COLUMNS)]
    limits = _limits(reports)
    pictures = []
    for number, group in enumerate(groups, 1):
        height = 1.9 * len(techniques) + 0.9 + 0.16 * (len(names) + len(settings)) / 3
        with canvas(height) as figure:
            axes = figure.subplots(
                len(techniques), len(group), sharex=True, sharey=True, squeeze=False
            )
            for column, (report, title) in enumerate(zip(group, look.titles(group), strict=True)):
                for axis, technique in zip(axes[:, column], techniques, strict=True):
                    _panel(axis, report, technique, settings)
                    label = axis.text(
                        0.02, 0.04, technique, transform=axis.transAxes, fontweight="bold", zorder=6
                    )
                    label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
                    if column == 0:
                        axis.set_ylabel("Share of requests")
                axes[0, column].set_title(title, loc="left")
                axes[-1, column].set_xlabel("Missed by at least (µs)")
            axes[0, 0].set_xscale("log")
            axes[0, 0].set_yscale("log")
            axes[0, 0].set_xlim(*limits)
            legend: list[Artist] = look.handles(names)
            if len(settings) > 1:
                legend += [
                    Line2D([], [], color=GREY, linestyle=look.line(index), label=setting)
                    for index, setting in enumerate(settings)
                ]
            figure.legend(handles=legend, loc="outside lower left", ncols=4)
            look.heading(figure, "How far requests to sleep are missed")
        pictures.append(Picture("errors" if len(groups) == 1 else f"errors-{number}", figure))
    return pictures


def _limits(reports: Sequence[Report]) -> tuple[float, float]:
    """Return the limits of the time axis in µs, the same for every measurement."""
    ends = [
        look.magnitudes_ns(report, series)[[0, -1]]
        for report in reports
        for series in report.measured
        if report.samples_of(series).height
    ]
    low = min(float(end[0]) for end in ends) / look.NANOSECONDS_PER_MICROSECOND
    high = max(float(end[1]) for end in ends) / look.NANOSECONDS_PER_MICROSECOND
    return low / 1.5, high * 1.5


def _panel(axis: Axes, report: Report, technique: str, settings: list[str]) -> None:
    for series in report.measured:
        if series.technique_text != technique or report.samples_of(series).is_empty():
            continue
        missed, share = exceeded(look.magnitudes_ns(report, series))
        axis.plot(
            missed / look.NANOSECONDS_PER_MICROSECOND,
            share,
            drawstyle="steps-post",
            color=look.colour(series.method),
            linestyle=look.line(settings.index(series.setting)),
            linewidth=1.0,
            marker=look.marker(series.method),
            markersize=3,
            markeredgewidth=0,
            markevery=(0.05, 0.3),
            label=f"{series.method}, {series.setting}",
        )


def exceeded(ascending: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times, and the share of values that are at least as long, thinned out evenly."""
    total = len(ascending)
    ranks = total - np.geomspace(1, total, MOST_POINTS).round().astype(np.int64)
    ranks = np.unique(ranks)
    return ascending[ranks], (total - ranks) / total
