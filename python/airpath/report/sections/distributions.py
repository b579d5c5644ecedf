"""How the runs differ: distributions over them, and of the delay of their packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.ticker import PercentFormatter

from airpath.plots import style
from airpath.plots.delay import one_way_delays
from airpath.report import gallery
from airpath.report.page import Section, fill
from airpath.report.sections.pictures import inline_svg
from airpath.run import DIRECTIONS, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from airpath.report.material import Entry, Material

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.SKY, style.PURPLE)
MARKERS = "osD^vP"
MOST_POINTS = 300
"""Points of the distribution of a run's delays."""

MOST_CURVES = 60
"""Runs whose delays are drawn, one curve each."""

Values = list[tuple[str, str, list[float]]]
"""What is shown, its unit, and a value for each run that has one."""


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
    pictures += _delays(groups)
    if not pictures:
        return None
    inline = [(name, inline_svg(picture, name)) for name, picture in pictures]
    left_out = max(len(material.entries) - MOST_CURVES, 0)
    body = fill("distributions", pictures=inline, left_out=left_out, most=MOST_CURVES, notes=notes)
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


def _delays(groups: dict[str, list[Entry]]) -> list[tuple[str, style.Picture]]:
    curves: dict[str, list[tuple[int, str, NDArray[np.float64]]]] = {}
    numbered = [
        (index, name, entry)
        for index, (name, entries) in enumerate(groups.items())
        for entry in entries
    ]
    for index, name, entry in numbered[:MOST_CURVES]:
        try:
            delays = one_way_delays(entry.run)
        except RunError as error:
            entry.run.notes.append(str(error))
            continue
        for direction in DIRECTIONS:
            found = delays.filter(pl.col("direction") == direction)["delay_ns"].to_numpy() / 1e6
            if len(found):
                curves.setdefault(direction, []).append((index, name, found))
    if not curves:
        return []
    with style.canvas(2.9) as figure:
        axes = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
        shares = np.linspace(0, 1, MOST_POINTS, dtype=np.float64)
        for axis, direction in zip(axes, [d for d in DIRECTIONS if d in curves], strict=True):
            many = len(curves[direction]) > 1
            labelled: set[str] = set()
            for index, name, found in curves[direction]:
                axis.plot(
                    np.quantile(found, shares, method="inverted_cdf"),
                    shares,
                    drawstyle="steps-post",
                    color=COLOURS[index % len(COLOURS)],
                    linewidth=0.8 if many else 1.2,
                    alpha=0.7 if many else 1,
                    label=None if name in labelled else name,
                )
                labelled.add(name)
            axis.set_title(style.DIRECTION_TEXTS[direction], loc="left")
            axis.set_xlabel("One-way delay (ms)")
            axis.yaxis.set_major_formatter(PercentFormatter(1))
        axes[0].set_ylabel("Share of packets, a curve a run")
        if len(groups) > 1:
            axes[0].legend(loc="lower right")
    return [("distribution-delays", style.Picture("distribution of delays", figure))]
