"""Metrics over what was swept, as small multiples: a column for each facet, a row for each metric.

One parameter lies on the axis, one tells the lines apart, all others make the facets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import matplotlib as mpl
import numpy as np

from airpath.analysis.text import scale, where
from airpath.plots import sweeps
from airpath.plots.sets import COLOURS, LINES, MARKERS
from airpath.plots.style import SETTINGS, WIDTH_INCHES, Figure, Picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    from matplotlib.axes import Axes

    Parameters = Mapping[str, Mapping[str, Any]]
    """Of each set, what distinguishes it from the others."""

KIND = "sweep"
"""What these pictures are called where kinds of pictures are named."""

_KEYS = ["metric", "flow", "hop", "direction", "unit"]

MOST_LINES = 6
"""Lines of a panel, which can still be told apart where they cross."""

MOST_FACETS = 4
"""Panels side by side that can still be read in print."""

MOST_ROWS = 12
"""Metrics in one picture."""

LEAST_FOR_LOGARITHMS = 20
"""Greatest by least value from which an axis is logarithmic."""

NOT_SAID = "none"
"""The value of a parameter that a set does not have."""

Item = TypeVar("Item")


def swept(parameters: Parameters) -> dict[str, list[str]]:
    """Return what takes several values (parameters, networks, workloads), with them, in order."""
    names = dict.fromkeys(key for of in parameters.values() for key in of if key != "set")
    found = {}
    for name in names:
        places, _ = sweeps.axis_values([of.get(name, NOT_SAID) for of in parameters.values()])
        if len(places) > 1:
            found[name] = sorted(places, key=places.__getitem__)
    return found


def draw_all(summary: pl.DataFrame, parameters: Parameters) -> Iterator[tuple[Picture, str]]:
    """Yield a picture for each parameter that takes several values, and what it leaves out.

    Args:
        summary: figures of the sets (``airpath.analysis.statistics.summarise``).
        parameters: of each set, what distinguishes it from the others.

    """
    for name in swept(parameters):
        picture, left_out = draw_over(summary, parameters, name)
        if picture is not None:
            yield picture, left_out


def draw_over(
    summary: pl.DataFrame, parameters: Parameters, name: str
) -> tuple[Picture | None, str]:
    """Draw all metrics over one parameter; return the picture, if any, and what it leaves out.

    Args:
        summary: figures of the sets (``airpath.analysis.statistics.summarise``).
        parameters: of each set, what distinguishes it from the others.
        name: the parameter on the axis, of ``swept(parameters)``.

    """
    values = swept(parameters)
    others = [len(values[other]) for other in values if other != name]
    is_simple = len(others) <= 1 and max(others, default=1) <= MOST_LINES
    if is_simple and all(name in of for of in parameters.values()):
        return sweeps.draw(summary, parameters, name), ""
    layout = arrange(values, parameters, name)
    return _draw(summary, parameters, layout), layout.left_out


@dataclass(frozen=True)
class Layout:
    """What lies where in a picture."""

    axis: str
    line: str
    """What tells the lines apart; empty if there is but one."""
    lines: list[str]
    facet: list[str]
    """The parameters that make the facets."""
    facets: list[tuple[str, ...]]
    """Their values, one each."""
    left_out: str


def arrange(values: Mapping[str, Sequence[str]], parameters: Parameters, axis: str) -> Layout:
    """Choose what tells lines and facets apart: lines by what has most values, up to six."""
    others = sorted((name for name in values if name != axis), key=lambda name: len(values[name]))
    few = [name for name in others if len(values[name]) <= MOST_LINES]
    line = few[-1] if few else (others or [""])[0]
    facet = [name for name in values if name not in (axis, line)]
    combinations = {
        tuple(str(of.get(name, NOT_SAID)) for name in facet) for of in parameters.values()
    }
    ordered = sorted(
        combinations,
        key=lambda each: [values[n].index(v) for n, v in zip(facet, each, strict=True)],
    )
    lines = list(values.get(line, [""]))
    shown_lines, shown_facets = _evenly(lines, MOST_LINES), _evenly(ordered, MOST_FACETS)
    left_out = []
    if len(shown_lines) < len(lines):
        left_out.append(f"{len(shown_lines)} of {len(lines)} values of {short(line)}")
    if len(shown_facets) < len(ordered):
        names = " and ".join(short(name) for name in facet)
        left_out.append(f"{len(shown_facets)} of {len(ordered)} values of {names}")
    words = f"over {short(axis)}, {' and '.join(left_out)} are drawn" if left_out else ""
    return Layout(axis, line, shown_lines, facet, shown_facets, words)


def short(name: str) -> str:
    """Return the name of a parameter as a legend shows it: what tells it from most others."""
    words = name.split(".")
    # "probability" or "rate" alone would not say of what.
    return " ".join(words[-2:] if len(words) > 3 or words[-1] == "limit" else words[-1:])


def _evenly(items: Sequence[Item], most: int) -> list[Item]:
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]


def _draw(summary: pl.DataFrame, parameters: Parameters, layout: Layout) -> Picture | None:
    places, unit = sweeps.axis_values([of.get(layout.axis, NOT_SAID) for of in parameters.values()])
    places = dict(sorted(places.items(), key=lambda item: item[1]))
    numeric = [text for text in places if _is_number(text)] == list(places) or bool(unit)
    rows = [
        (dict(zip(_KEYS, key, strict=True)), part)
        for key, part in summary.group_by(_KEYS, maintain_order=True)
        if part.height > 1 and part["median"].n_unique() > 1
    ][:MOST_ROWS]
    if not rows:
        return None
    of_set = {
        name: (
            str(of.get(layout.axis, NOT_SAID)),
            str(of.get(layout.line, NOT_SAID)) if layout.line else "",
            tuple(str(of.get(key, NOT_SAID)) for key in layout.facet),
        )
        for name, of in parameters.items()
    }
    columns = len(layout.facets)
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure = Figure(
            figsize=(WIDTH_INCHES, (1.75 if columns > 1 else 2.1) * len(rows) + 0.8),
            layout="constrained",
        )
        grid = figure.subplots(len(rows), columns, squeeze=False, sharey="row", sharex=True)
        for axes, (key, part) in zip(grid, rows, strict=True):
            divisor, name = scale(str(key["unit"]), part["median"].to_list())
            found = {of_set[str(row["set"])]: row for row in part.iter_rows(named=True)}
            for axis, facet in zip(axes, layout.facets, strict=True):
                for index, line in enumerate(layout.lines):
                    points = [
                        (place, found[text, line, facet])
                        for text, place in places.items()
                        if (text, line, facet) in found
                    ]
                    _line(axis, points, divisor, index, line, numeric=numeric)
            whose = where(key)
            title = str(key["metric"]).replace("_", " ").capitalize()
            lines = [title, *([whose] if whose else []), f"({name or 'ratio'})"]
            axes[0].set_ylabel("\n".join(lines))
            # Nothing is cut off: differences are to be seen in proportion.
            axes[0].set_ylim(bottom=0, top=None if axes[0].get_ylim()[1] > 0 else 1)
        for axis, facet in zip(grid[0], layout.facets, strict=True):
            named = zip(layout.facet, facet, strict=True)
            axis.set_title("\n".join(f"{short(key)} {value}" for key, value in named))
        label = f"{short(layout.axis)}{f' ({unit})' if unit else ''}"
        for axis in grid[-1]:
            axis.set_xlabel(label)
            _ticks(axis, places, columns, numeric=numeric)
        known = {
            text: handle
            for axis in grid.flat
            for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        shown = [line for line in layout.lines if line in known]
        if layout.line and shown:
            figure.legend(
                [known[line] for line in shown],
                shown,
                loc="outside lower left",
                title=f"{short(layout.line)} (median, 95 % interval)",
                alignment="left",
                ncols=6,
            )
    return Picture(f"sweep-{layout.axis.replace('.', '-')}", figure)


def _ticks(axis: Axes, places: Mapping[str, float], columns: int, *, numeric: bool) -> None:
    if not numeric:
        axis.set_xticks(list(places.values()), list(places), rotation=30, ha="right")
        return
    values = sorted(places.values())
    spread: Callable[[float], float] = float
    if values[0] > 0 and values[-1] / values[0] >= LEAST_FOR_LOGARITHMS:
        spread = math.log
        axis.set_xscale("log")
    # Labels that lie over one another help nobody: the least room is what a number takes.
    least = (spread(values[-1]) - spread(values[0])) * 0.045 * columns
    shown: list[float] = []
    for place in values:
        if not shown or spread(place) - spread(shown[-1]) >= least:
            shown.append(place)
    axis.set_xticks(shown, [f"{place:g}" for place in shown])
    axis.set_xticks([], minor=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line(
    axis: Axes,
    points: Sequence[tuple[float, Mapping[str, Any]]],
    divisor: float,
    index: int,
    label: str,
    *,
    numeric: bool,
) -> None:
    """Draw medians with a band of their 95 % intervals, or with bars between unlike things."""
    if not points:
        return
    at = np.array([place for place, _ in points])
    middle, low, high = (
        np.array([np.nan if row[name] is None else row[name] / divisor for _, row in points])
        for name in ("median", "median_low", "median_high")
    )
    colour = COLOURS[index % len(COLOURS)]
    look: dict[str, Any] = {
        "color": colour,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 3,
        "markeredgewidth": 0,
        "linestyle": LINES[index % len(LINES)] if numeric else "none",
        "label": label,
    }
    if numeric:
        axis.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
        axis.plot(at, middle, **look)
        return
    # Side by side by a hair, so that bars of several lines at one place can be seen.
    shift = 0.08 * (index - (MOST_LINES - 1) / 2)
    reach = np.nan_to_num([middle - low, high - middle]).clip(0)
    axis.errorbar(at + shift, middle, yerr=reach, capsize=2, elinewidth=0.8, **look)
