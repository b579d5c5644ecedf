# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Differences between runs: distributions over them, and of the delay of their packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import PercentFormatter

from airpath.plots import sheet, style
from airpath.report import choice, gallery
from airpath.report.page import Section, fill
from airpath.run import DIRECTIONS, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.report.entry import Entry
    from airpath.report.material import Material

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.SKY, style.PURPLE)
MARKERS = "osD^vP"
Values = list[tuple[str, str, list[float]]]
"""Quantity, its unit, and a value for each run that has one."""


def build(material: Material) -> Section | None:
    """Return distributions over runs (of two runs upwards), and of delays."""
    groups: dict[str, list[Entry]] = {}
    for entry in material.entries:
        groups.setdefault(entry.run.name, []).append(entry)
    pictures = []
    notes: list[str] = []
    drawn = list(gallery.of_sets(material, notes))
    pictures += drawn
    if not drawn and len(material.entries) > 1:
        pictures += _over_runs(groups)
    pictures += _delays(material.entries)
    if not pictures:
        return None
    inline = [(name, material.drawings.later(picture, name)) for name, picture in pictures]
    number = len(material.entries)
    if number > choice.MOST_CURVES:
        notes.append(f"Delays are drawn of {choice.MOST_CURVES} of {number:,} runs, evenly chosen")
    body = fill("distributions", pictures=inline, notes=notes)
    return Section("distributions", "Distributions", body)


def quantities(entries: Sequence[Entry]) -> dict[str, list[float]]:
    """Return what is compared between runs: a value of each that has one."""
    found: dict[str, list[float]] = {"Duration (s)": [], "Drops (packets)": []}
    for entry in entries:
        found["Duration (s)"].append(entry.facts.duration_ns / 1e9)
        found["Drops (packets)"].append(sum(entry.facts.drops.values()))
        for direction, way in entry.facts.ways.items():
            name = f"Goodput, {direction} (kbit/s)"
            if way.goodput_bps is not None:
                found.setdefault(name, []).append(way.goodput_bps / 1e3)
            name = f"Median delay, {direction} (ms)"
            if way.delay_p50_ns is not None:
                found.setdefault(name, []).append(way.delay_p50_ns / 1e6)
    return {name: values for name, values in found.items() if values}


def steps(values: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distribution function of values: where it rises, and to which share."""
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    return ascending, np.arange(1, len(ascending) + 1, dtype=np.float64) / len(ascending)


def _over_runs(groups: dict[str, list[Entry]]) -> list[tuple[str, style.Picture]]:
    by_group = {name: quantities(entries) for name, entries in groups.items()}
    names = list(dict.fromkeys(name for found in by_group.values() for name in found))
    rows = (len(names) + 1) // 2
    with style.canvas(1.9 * rows + 0.5) as figure:
        axes = figure.subplots(rows, 2, squeeze=False, sharey=True)
        for axis in axes.flat[len(names) :]:
            axis.set_visible(False)
        for axis, name in zip(axes.flat, names, strict=False):
            for index, (group, found) in enumerate(by_group.items()):
                if name in found:
                    _curve(axis, found[name], index, group)
            axis.set_xlabel(name)
            axis.set_ylim(-0.03, 1.06)
            axis.yaxis.set_major_formatter(PercentFormatter(1))
        for row in axes:
            row[0].set_ylabel("Share of runs")
        if len(by_group) > 1:
            handles, labels = axes.flat[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower left", ncols=3)
    return [("distribution-runs", style.Picture("distribution of runs", figure))]


def _curve(axis: Axes, values: list[float], index: int, label: str) -> None:
    at, share = steps(values)
    axis.step(
        np.concatenate([at[:1], at]),
        np.concatenate([[0.0], share]),
        where="post",
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=3 if len(values) <= 50 else 0,
        markeredgewidth=0,
        label=f"{label} ({len(values)})",
    )


def _delays(entries: Sequence[Entry]) -> list[tuple[str, style.Picture]]:
    """Draw the distribution of each run's delays, coloured by set where there are few, else not."""
    by_set = list(dict.fromkeys(entry.set_name for entry in entries))
    names = by_set if 1 < len(by_set) <= choice.MOST_SETS else []
    shown = [
        (entry, delays)
        for entry in choice.evenly(entries, choice.MOST_CURVES)
        if (delays := _delays_of(entry))
    ]
    directions = [way for way in DIRECTIONS if any(way in delays for _, delays in shown)]
    if not directions:
        return []
    with style.canvas(2.9) as figure:
        axes = figure.subplots(1, len(directions), squeeze=False, sharey=True)[0]
        for axis, direction in zip(axes, directions, strict=True):
            curves = [(entry, delays[direction]) for entry, delays in shown if direction in delays]
            labelled: set[str] = set()
            for entry, found in curves:
                index = names.index(entry.set_name) if names else 0
                axis.plot(
                    found / 1e6,
                    np.linspace(0, 1, len(found)),
                    drawstyle="steps-post",
                    color=sheet.COLOURS[index % len(sheet.COLOURS)],
                    linestyle=sheet.LINES[index % len(sheet.LINES)],
                    linewidth=0.8 if len(curves) > 1 else 1.2,
                    alpha=0.7 if len(curves) > 1 else 1,
                    label=None if entry.set_name in labelled else entry.set_name,
                )
                labelled.add(entry.set_name)
            axis.set_title(style.DIRECTION_TEXTS[direction], loc="left")
            axis.set_xlabel("One-way delay (ms)")
            axis.yaxis.set_major_formatter(PercentFormatter(1))
        axes[0].set_ylabel("Share of packets, a curve a run")
        if names:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower left", ncols=2)
    return [("distribution-delays", style.Picture("distribution of delays", figure))]


def _delays_of(entry: Entry) -> dict[str, NDArray[np.float64]]:
    try:
        return entry.delays
    except RunError as error:
        entry.run.notes.append(str(error))
        return {}
