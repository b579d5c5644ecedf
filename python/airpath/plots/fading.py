# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A fading channel: ratios over time and resources, their distribution and correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator
from scipy.special import j0

from airpath.fading.statistics import (
    autocorrelation,
    distribution,
    frequency_theory,
    over_frequency,
    relative,
)
from airpath.plots.style import BLACK, BLUE, GREEN, ORANGE, VERMILLION, Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import HashableList

    from airpath.fading.table import Table

_MOST_SLOTS = 1500
_SHOWN_PERIODS = 25
"""Periods of the greatest Doppler frequency that are shown over time, where it is known."""
_LINES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, ":"))


def draw(table: Table, slots_per_second: float, name: str) -> Picture:
    """Draw a channel, beside theory where there is one."""
    doppler = table.theory.get("doppler_hz")
    periods = round(_SHOWN_PERIODS / doppler * slots_per_second) if doppler else _MOST_SLOTS
    shown = table.decibels[: min(max(periods, 100), _MOST_SLOTS)]
    end = len(shown) / slots_per_second
    with canvas(7.2) as figure:
        rows: list[HashableList[str]] = [
            ["time", "time"],
            ["map", "map"],
            ["distribution", "correlation"],
        ]
        panels = figure.subplot_mosaic(rows)
        _over_time(panels["time"], shown, end)
        _map(figure, panels["map"], shown, end)
        _distribution(panels["distribution"], table)
        if shown.shape[1] > 1 and len(table.theory.get("taps") or ()) != 1:
            _over_frequency(panels["correlation"], table)
        else:
            _over_lags(panels["correlation"], table, slots_per_second)
        slots, resources = table.decibels.shape
        figure.suptitle(
            f"{name}: {slots:,} slots, {resources} resource{'' if resources == 1 else 's'}",
            fontsize=9.5,
        )
    return Picture("fading", figure)


def _over_time(axis: Axes, shown: np.ndarray, end: float) -> None:
    times = np.arange(len(shown)) * end / len(shown)
    resources = shown.shape[1]
    chosen = sorted({0, resources // 2, resources - 1})
    for number, (colour, line) in zip(chosen, _LINES, strict=False):
        label = f"resource {number}"
        axis.plot(times, shown[:, number], color=colour, linestyle=line, linewidth=0.9, label=label)
    axis.set_xlim(0, end)
    axis.set_ylabel("SNR (dB)")
    # Above, where no fade reaches.
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0)


def _map(figure: Figure, axis: Axes, shown: np.ndarray, end: float) -> None:
    top = float(shown.max())
    image = axis.imshow(
        shown.T,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0, end, -0.5, shown.shape[1] - 0.5),
        # Deep fades would take all colours.
        vmin=max(float(shown.min()), top - 30),
        vmax=top,
        cmap="cividis",
    )
    axis.grid(visible=False)
    axis.yaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    axis.set_xlabel("Time (s)")
    axis.set_ylabel("Resource")
    figure.colorbar(image, ax=axis, label="SNR (dB)", pad=0.01)


def _distribution(axis: Axes, table: Table) -> None:
    powers = np.sort(relative(table), axis=None)
    shares = (np.arange(powers.size) + 1) / powers.size
    decibels = 10 * np.log10(powers)
    # Dense in the tail, which is what matters.
    places = np.unique(np.geomspace(1, powers.size, 3000).astype(int)) - 1
    axis.plot(decibels[places], shares[places], color=BLUE, linewidth=1.8, label="channel")
    low = max(float(decibels[0]), -40.0)
    grid = np.linspace(low, float(decibels[-1]) + 1, 300)
    known = distribution(table.theory, 10 ** (grid / 10))
    k = table.theory.get("k_factor")
    rayleigh = 1 - np.exp(-(10 ** (grid / 10)))
    axis.plot(grid, rayleigh, color=BLACK, linestyle="--", linewidth=1, label="Rayleigh")
    if known is not None and k:
        label = f"Rice, K = {10 * np.log10(k):.1f} dB"
        axis.plot(grid, known, color=VERMILLION, linestyle=":", linewidth=1.3, label=label)
    axis.set_yscale("log")
    axis.set_ylim(max(1e-4, 1 / powers.size), 1.3)
    axis.set_xlim(low, float(decibels[-1]) + 1)
    axis.set_xlabel("SNR relative to the mean (dB)")
    axis.set_ylabel("Share below")
    axis.legend(loc="lower right")


def _over_lags(axis: Axes, table: Table, slots_per_second: float) -> None:
    doppler = table.theory.get("doppler_hz")
    longest = round(2 / doppler * slots_per_second) if doppler else 100
    longest = min(max(longest, 10), len(table.decibels) - 1)
    lags = np.arange(longest + 1) / slots_per_second
    measured = autocorrelation(relative(table), longest)
    axis.plot(lags * 1e3, measured, color=BLUE, linewidth=1.8, label="channel")
    if doppler and table.theory.get("is_classical") and table.theory.get("mean_db") is not None:
        theory = j0(2 * np.pi * doppler * lags) ** 2
        axis.plot(lags * 1e3, theory, color=BLACK, linestyle="--", linewidth=1, label="J₀²")
    axis.set_xlabel("Lag (ms)")
    axis.set_ylabel("Correlation of power")
    axis.legend(loc="upper right")


def _over_frequency(axis: Axes, table: Table) -> None:
    theory = table.theory
    measured = over_frequency(relative(table))
    spacing = theory.get("spacing_hz")
    offsets = np.arange(len(measured)) * (spacing / 1e3 if spacing else 1)
    axis.plot(offsets, measured, "o-", color=BLUE, markersize=3, linewidth=1.2, label="channel")
    if spacing and theory.get("k_factor") == 0 and theory.get("mean_db") is not None:
        grid = np.linspace(0, offsets[-1], 300)
        known = frequency_theory(theory, grid * 1e3)
        axis.plot(grid, known, color=BLACK, linestyle="--", linewidth=1, label="taps: |R(Δf)|²")
    axis.set_xlabel("Distance (kHz)" if spacing else "Distance (resources)")
    axis.set_ylabel("Correlation of power")
    axis.legend(loc="upper right")
