# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The rate of a line whose packets wait in each way of sleeping, after figure 1 of Gurtov 1999."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from airpath.plots.style import BLACK, GREY, Picture, canvas
from airpath.plots.timing import look
from airpath.timing import TECHNIQUE_TEXTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from airpath.timing import LineRate, Report


def draw(reports: Sequence[Report]) -> list[Picture]:
    """Draw a picture for each size of packets, with a panel for each measurement."""
    sizes = sorted({rate.packet_bytes for report in reports for rate in report.line_rates})
    return [_picture(reports, size, alone=len(sizes) == 1) for size in sizes]


def _picture(reports: Sequence[Report], size: int, *, alone: bool) -> Picture:
    shown = {
        report.directory: [rate for rate in report.line_rates if rate.packet_bytes == size]
        for report in reports
    }
    reports = [report for report in reports if shown[report.directory]]
    every = [rate for rates in shown.values() for rate in rates]
    rows, across = look.columns(reports)
    names = look.methods(every)
    techniques = look.in_order(rate.technique for rate in every)
    with canvas(4.1 * rows + 0.9 + 0.16 * (len(names) + len(techniques)) / 3) as figure:
        axes = figure.subplots(
            2 * rows, across, sharex=True, sharey="row", squeeze=False, height_ratios=[3, 1] * rows
        )
        panels = [
            (axes[2 * row, i], axes[2 * row + 1, i]) for row in range(rows) for i in range(across)
        ]
        for above, below in panels[len(reports) :]:
            above.set_visible(False)
            below.set_visible(False)
        low = min(rate.requested_bits_per_second for rate in every) / 1e3
        high = max(rate.requested_bits_per_second for rate in every) / 1e3
        wide = high / low > 20
        lowest = min(rate.actual_bits_per_second for rate in every) / 1e3
        highest = max(rate.actual_bits_per_second for rate in every) / 1e3
        shares = [rate.actual_bits_per_second / rate.requested_bits_per_second for rate in every]
        for (above, below), report, title in zip(
            panels, reports, look.titles(reports), strict=False
        ):
            _curves(above, below, shown[report.directory])
            above.plot([low, high], [low, high], color=BLACK, linestyle="--", linewidth=0.8)
            below.axhline(1, color=BLACK, linestyle="--", linewidth=0.8)
            if wide:
                above.set_xscale("log")
                above.set_yscale("log")
                above.set_ylim(min(low, lowest) / 1.3, max(high, highest) * 1.3)
            else:
                above.set_ylim(0, max(high, highest) * 1.05)
            below.set_ylim(max(0.0, min(*shares, 1) - 0.08), max(*shares, 1) + 0.08)
            above.set_title(title, loc="left")
            below.set_xlabel("Requested line rate (kbit/s)")
            below.tick_params(labelbottom=True)
        for row in range(rows):
            axes[2 * row, 0].set_ylabel("Actual line rate (kbit/s)")
            axes[2 * row + 1, 0].set_ylabel("Actual / requested")
        legend: list[Artist] = look.handles(names)
        if len(techniques) > 1:
            legend += [
                Line2D(
                    [],
                    [],
                    color=GREY,
                    linestyle=look.technique_line(technique),
                    label=TECHNIQUE_TEXTS.get(technique, technique),
                )
                for technique in techniques
            ]
        legend.append(Line2D([], [], color=BLACK, linestyle="--", linewidth=0.8, label="ideal"))
        figure.legend(handles=legend, loc="outside lower left", ncols=4)
        look.heading(figure, f"Actual against requested line rate, packets of {size} bytes")
    return Picture("line-rate" if alone else f"line-rate-{size}", figure)


def _curves(above: Axes, below: Axes, rates: list[LineRate]) -> None:
    for key in dict.fromkeys((rate.method, rate.technique) for rate in rates):
        method, technique = key
        curve = sorted(
            (rate.requested_bits_per_second, rate.actual_bits_per_second)
            for rate in rates
            if (rate.method, rate.technique) == key
        )
        asked = [requested / 1e3 for requested, _ in curve]
        for axis, heights in (
            (above, [actual / 1e3 for _, actual in curve]),
            (below, [actual / requested for requested, actual in curve]),
        ):
            axis.plot(
                asked,
                heights,
                color=look.colour(method),
                linestyle=look.technique_line(technique),
                linewidth=1.0,
                marker=look.marker(method),
                markersize=3,
                markeredgewidth=0,
                label=f"{method}, {TECHNIQUE_TEXTS.get(technique, technique)}",
            )
