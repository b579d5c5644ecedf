# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The figures of emulators as bars with ranges, one panel for each figure."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = 3
ROOM = 1.35
"""Width of a panel as a multiple of its longest bar: digits stand behind bars."""
COLOURS = ["#8a8f98", "#0b6e99", "#c8553d", "#e09f3e", "#6a4c93", "#4f772d", "#33415c"]


def short(value: float) -> str:
    """Return a figure with as many digits as tell emulators apart."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def draw(
    figures: dict[str, dict[str, dict[str, list[float]]]], titles: dict[str, str], file: Path
) -> None:
    """Draw every figure: medians as bars, ranges as lines, the median in digits."""
    panels = [
        (titles[measure], figure, by_emulator)
        for measure, by_figure in figures.items()
        for figure, by_emulator in by_figure.items()
        # A row of zeros, as of losses, needs no picture.
        if any(value for values in by_emulator.values() for value in values)
    ]
    if not panels:
        return
    names = list(dict.fromkeys(name for _, _, by in panels for name in by))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    rows = -(-len(panels) // COLUMNS)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "airpath", "font.size": 9}):
        sheet = Figure(figsize=(12, 2.1 * rows), layout="constrained")
        for index, (title, figure, by_emulator) in enumerate(panels):
            axes = sheet.add_subplot(rows, COLUMNS, index + 1)
            for row, (name, values) in enumerate(by_emulator.items()):
                median = statistics.median(values)
                axes.barh(row, median, color=colours[name], height=0.7)
                axes.plot([min(values), max(values)], [row, row], color="black", linewidth=1.2)
                axes.annotate(
                    short(median), (max(values), row), (4, 0), textcoords="offset points",
                    va="center", fontsize=8,
                )  # fmt: skip
            axes.set_yticks(range(len(by_emulator)), list(by_emulator))
            axes.invert_yaxis()
            longest = max(value for values in by_emulator.values() for value in values)
            axes.set_xlim(0, ROOM * longest)
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.xaxis.set_major_formatter(lambda value, _: short(value))
            axes.set_title(f"{title}\n{figure}", fontsize=9, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
        sheet.savefig(file, metadata={"Date": None})
