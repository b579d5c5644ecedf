# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Cost of accuracy: errors of a sleep method over its processor time for each sleep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from airpath.plots.style import GREY, Picture, canvas
from airpath.plots.timing import look
from airpath.timing import TECHNIQUE_TEXTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from airpath.timing import Report, Series

QUANTILE = 0.99


@dataclass(frozen=True)
class Point:
    """One series in the picture."""

    series: Series
    processor_us: float
    missed_us: float

    @property
    def name(self) -> str:
        """Label beside it."""
        words = [self.series.method]
        if self.series.technique != "plain":
            words.append(f"with {self.series.technique_text}")
        if self.series.setting != "default":
            words.append(f"({self.series.setting})")
        return " ".join(words)


def draw(reports: Sequence[Report]) -> list[Picture]:
    """Draw a panel for each measurement, to the same axes."""
    shown = [report for report in reports if report.measured]
    if not shown:
        return []
    rows, across = look.columns(shown)
    names = look.methods(series for report in shown for series in report.measured)
    techniques = look.in_order(each.technique for report in shown for each in report.measured)
    with canvas(3.4 * rows + 1.0 + 0.16 * (len(names) + len(techniques)) / 3) as figure:
        axes = figure.subplots(rows, across, sharex=True, sharey=True, squeeze=False)
        for axis in axes.flat[len(shown) :]:
            axis.set_visible(False)
        axes.flat[0].set_xscale("log")
        axes.flat[0].set_yscale("log")
        axes.flat[0].margins(0.12)
        drawn = []
        for axis, report, title in zip(axes.flat, shown, look.titles(shown), strict=False):
            found = points(report)
            drawn.append((found, _panel(axis, found)))
            axis.set_title(title, loc="left")
            axis.set_xlabel("Processor time for each sleep (µs)")
            axis.tick_params(labelbottom=True)
        for row in axes:
            row[0].set_ylabel("99 % are missed by less than (µs)")
        legend: list[Artist] = look.handles(names, linestyle="")
        if len(techniques) > 1:
            legend += [
                Line2D(
                    [],
                    [],
                    color=GREY,
                    marker="o",
                    markersize=5,
                    linestyle="",
                    fillstyle=look.technique_fill(technique),
                    label=TECHNIQUE_TEXTS.get(technique, technique),
                )
                for technique in techniques
            ]
        legend.append(Line2D([], [], color=GREY, linewidth=0.9, label="nothing better for less"))
        figure.legend(handles=legend, loc="outside lower left", ncols=4)
        look.heading(figure, "What accuracy costs")
        for axis, (found, best) in zip(axes.flat, drawn, strict=False):
            look.write_names(
                axis,
                [(point.processor_us, point.missed_us, point.name) for point in best],
                [(point.processor_us, point.missed_us) for point in found],
            )
    return [Picture("cost", figure)]


def points(report: Report) -> list[Point]:
    """Return a point for each series that was measured."""
    found = []
    for series in report.measured:
        assert series.measured is not None
        missed = look.magnitudes_ns(report, series)
        if not len(missed):
            continue
        found.append(
            Point(
                series,
                max(series.measured.processor_ns_per_sleep, look.LEAST_NS)
                / look.NANOSECONDS_PER_MICROSECOND,
                float(np.quantile(missed, QUANTILE)) / look.NANOSECONDS_PER_MICROSECOND,
            )
        )
    return found


def front(found: Sequence[Point]) -> list[Point]:
    """Return those than which none is both more accurate and cheaper, the cheapest first."""
    best: list[Point] = []
    for point in sorted(found, key=lambda each: (each.processor_us, each.missed_us)):
        if not best or point.missed_us < best[-1].missed_us:
            best.append(point)
    return best


def _panel(axis: Axes, found: Sequence[Point]) -> list[Point]:
    best = front(found)
    axis.plot(
        [point.processor_us for point in best],
        [point.missed_us for point in best],
        drawstyle="steps-post",
        color=GREY,
        linewidth=0.9,
        zorder=2,
    )
    for point in found:
        axis.plot(
            [point.processor_us],
            [point.missed_us],
            linestyle="",
            color=look.colour(point.series.method),
            marker=look.marker(point.series.method),
            fillstyle=look.technique_fill(point.series.technique),
            markerfacecoloralt="white",
            markersize=5,
            markeredgewidth=0.7,
            label=point.name,
            zorder=3,
        )
    return best
