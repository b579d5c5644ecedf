# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Limits of modelling: the delay of a packet on a line against the errors of sleeps.

After figure 2 of Gurtov 1999. A packet whose transmission takes less time than a sleep is missed by
cannot be modelled packet by packet with that way of sleeping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from airpath.plots.style import BLACK, GREY, Picture, canvas
from airpath.plots.timing import look
from airpath.timing import PAPER_TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.timing import Report

PACKET_BYTES = (1500, 1000, 200, 25)
"""A full IP packet of today; an IP packet, an LLC frame and an RLC block of GPRS in the paper."""

RATES_BPS = (1e3, 1e9)
QUANTILE = 0.99


def delay_ms(packet_bytes: int, rates_bps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long a packet takes on a line, in ms."""
    return np.asarray(8e3 * packet_bytes / rates_bps, dtype=np.float64)


def levels_ms(report: Report) -> dict[str, float]:
    """Return below what 99 % of the errors of each way of sleeping lie, in ms.

    Of each the plain technique with the system's own settings, or what comes nearest.
    """
    found: dict[str, float] = {}
    for series in sorted(report.measured, key=lambda each: each.technique != "plain"):
        missed = look.magnitudes_ns(report, series)
        if len(missed):
            found.setdefault(series.method, float(np.quantile(missed, QUANTILE)) / 1e6)
    return found


def draw(reports: Sequence[Report]) -> list[Picture]:
    """Draw a panel for each measurement, to the same axes."""
    levels = [levels_ms(report) for report in reports]
    shown = [report for report, level in zip(reports, levels, strict=True) if level]
    if not shown:
        return []
    rows, across = look.columns(shown)
    with canvas(3.7 * rows + 0.8) as figure:
        # Beside each panel a strip for the names of its levels.
        axes = figure.subplots(
            rows, 2 * across, sharey=True, squeeze=False, width_ratios=[3, 1.7] * across
        )
        panels = [(row[2 * i], row[2 * i + 1]) for row in axes for i in range(across)]
        for panel, strip in panels[len(shown) :]:
            panel.set_visible(False)
            strip.set_visible(False)
        lowest = min(min(level.values()) for level in levels if level)
        low, high = min(lowest, 2e-4) / 2, 3e4
        axes[0, 0].set_yscale("log")
        axes[0, 0].set_ylim(low, high)
        for (panel, strip), report, title in zip(panels, shown, look.titles(shown), strict=False):
            _panel(panel, title)
            _levels(panel, strip, levels_ms(report), low, high)
        for row in axes:
            row[0].set_ylabel("Delay of a packet (ms)")
        look.heading(figure, "Delay of a packet, and what no way of sleeping can model")
    return [Picture("packet-delay", figure)]


def _panel(axis: Axes, title: str) -> None:
    rates = np.geomspace(*RATES_BPS, 2, dtype=np.float64)
    for index, size in enumerate(PACKET_BYTES):
        axis.plot(
            rates,
            delay_ms(size, rates),
            color=BLACK,
            linestyle=look.line(index),
            linewidth=1.1,
            label=f"{size} bytes",
            zorder=4,
        )
    axis.set_xscale("log")
    axis.set_xlim(*RATES_BPS)
    axis.set_xticks([1e3, 1e6, 1e9], ["1 kbit/s", "1 Mbit/s", "1 Gbit/s"])
    first, _, last = axis.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    axis.set_xlabel("Requested line rate")
    axis.set_title(title, loc="left")
    axis.legend(loc="upper right", framealpha=0.9, frameon=True, edgecolor="none")


def _levels(panel: Axes, strip: Axes, levels: dict[str, float], low: float, high: float) -> None:
    """Draw how far each way of sleeping misses, its name beside it; shade what none can model."""
    panel.axhspan(low, min(levels.values()), color=GREY, alpha=0.22, linewidth=0, zorder=1)
    entries = [(level, look.colour(name), name) for name, level in levels.items()]
    then = PAPER_TABLE[0]
    entries.append((then.absolute_mean_ms, GREY, "select() in 1999,\nmean (Gurtov)"))
    gap = (np.log10(high) - np.log10(low)) * 0.042
    places = spread_log([level for level, _, _ in entries], gap, low, high)
    for (level, colour, name), place in zip(entries, places, strict=True):
        dashes = ":" if colour == GREY and "1999" in name else "-"
        panel.axhline(level, color=colour, linewidth=0.9, linestyle=dashes, zorder=3, label="_")
        strip.plot([0, 0.09, 0.13], [level, place, place], color=colour, linewidth=0.7)
        if dashes == "-":
            strip.plot([0.17], [place], color=colour, marker=look.marker(name), markersize=3.2)
        strip.text(0.23, place, name, va="center", fontsize=6.5, linespacing=0.95)
    strip.set_xlim(0, 1)
    strip.axis("off")


def spread_log(levels: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move levels on a logarithmic axis apart for their names; ``gap`` is in decades."""
    inner = (np.log10(low) + gap, np.log10(high) - gap)
    moved = look.spread([float(np.log10(level)) for level in levels], gap, *inner)
    return [10**place for place in moved]
