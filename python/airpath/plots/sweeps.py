# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics over what was swept, as small multiples: a column for each facet, a row for each metric.

One parameter lies on the axis, one tells the lines apart, all others make the facets. Where there
are none of these, metrics stand side by side too.
"""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import matplotlib as mpl
import numpy as np

from airpath.analysis.text import differing, scale, where
from airpath.analysis.titles import capital, title
from airpath.facts import UNITS
from airpath.plots.sheet import COLOURS, LINES, MARKERS
from airpath.plots.style import SETTINGS, WIDTH_INCHES, Figure, Picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    from matplotlib.axes import Axes

    Parameters = Mapping[str, Mapping[str, Any]]
    """Of each set, what distinguishes it from the others."""

_KEYS = ["metric", "flow", "hop", "direction", "unit"]
_AMOUNT = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*([^0-9]*)\s*")

MOST_LINES = 6
"""Lines of a panel, which can still be told apart where they cross."""

MOST_FACETS = 4
"""Panels side by side that can still be read in print."""

MOST_ROWS = 12
"""Metrics in one picture."""

LABEL_LETTERS = 20
"""Letters of a name beside a panel, which is not much higher than that."""

MOST_LETTERS = 70
"""Letters of the names below all panels of a row that have room without being turned."""

TICK_LETTERS = 18
"""Letters of a line of a name below a panel."""

MOST_KEYS = 2
"""Keys of a value such as `{ type = "codel", limit = "64 kB" }` that need no names."""

TICK_LINES = 3
"""Lines of such a name; what is longer is cut short."""

LINE_INCHES = 0.13
"""Height of such a line."""

LEAST_FOR_LOGARITHMS = 20
"""Greatest by least value from which an axis is logarithmic."""

NOT_SAID = "none"
"""The value of a parameter that a set does not have."""

FIGURES = "median, 95 % interval"

Item = TypeVar("Item")


def axis_values(values: Sequence[Any]) -> tuple[dict[str, float], str | None]:
    """Return where each value of a parameter lies on the axis, and the unit of their numbers.

    Amounts of one unit (which may be none, "") lie where their numbers are, and amounts of one
    quantity where they are in the least of their units; others side by side, in their order, and
    have no unit.
    """
    texts = list(dict.fromkeys(str(value) for value in values))
    found = {text: match for text in texts if (match := _AMOUNT.fullmatch(text))}
    if len(found) == len(texts):
        units = {match[2].strip() for match in found.values()}
        of_quantity = [known for known in UNITS.values() if units <= set(known)]
        factors = of_quantity[0] if of_quantity else dict.fromkeys(units, 1)
        if of_quantity or len(units) == 1:
            least = min(units, key=lambda unit: (factors[unit], unit))
            return {
                text: float(match[1]) * (factors[match[2].strip()] / factors[least])
                for text, match in found.items()
            }, least
    return {text: float(place) for place, text in enumerate(texts)}, None


def swept(parameters: Parameters) -> dict[str, list[str]]:
    """Return what takes several values (parameters, networks, workloads), with them, in order."""
    names = dict.fromkeys(key for of in parameters.values() for key in of if key != "set")
    found = {}
    for name in names:
        places, _ = axis_values([of.get(name, NOT_SAID) for of in parameters.values()])
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
    layout = arrange(swept(parameters), parameters, name)
    return _draw(summary, parameters, layout), layout.left_out


@dataclass(frozen=True)
class Layout:
    """Layout of a picture."""

    axis: str
    line: str
    """Key that tells the lines apart; empty if there is but one."""
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


def value_text(name: str, value: str) -> str:
    """Return a value as a reader takes it in: probabilities in per cent, tables without quotes.

    A table of few keys has no names of the usual ones: "tail_drop, 300 ms".
    """
    if value.startswith("{"):
        plain = value.strip("{} ").replace('"', "")
        usual = plain.count(" = ") <= MOST_KEYS
        return (re.sub(r"\b(type|limit) = ", "", plain) if usual else plain) or value
    if not name.endswith(".probability"):
        return value
    try:
        return f"{100 * float(value):g} %"
    except ValueError:
        return value


def _evenly(items: Sequence[Item], most: int) -> list[Item]:
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]


def _draw(summary: pl.DataFrame, parameters: Parameters, layout: Layout) -> Picture | None:
    values = [of.get(layout.axis, NOT_SAID) for of in parameters.values()]
    places, unit = axis_values(values)
    places = dict(sorted(places.items(), key=lambda item: item[1]))
    numeric = unit is not None
    metrics = _metrics(summary)
    if not metrics:
        return None
    of_set = {
        name: (
            str(of.get(layout.axis, NOT_SAID)),
            str(of.get(layout.line, NOT_SAID)) if layout.line else "",
            tuple(str(of.get(key, NOT_SAID)) for key in layout.facet),
        )
        for name, of in parameters.items()
    }
    with mpl.rc_context(cast("Any", SETTINGS)):
        names = [""] if numeric else [_named(text, layout.axis) for text in places]
        columns = _columns(len(metrics), len(layout.facets))
        is_turned = columns * sum(_letters(name) + 2 for name in names) > MOST_LETTERS
        # Turned names reach down by half of their length, which panels must not lose.
        lines_high = max(map(_letters, names)) / 3 if is_turned else 0
        lines_high += max(name.count("\n") for name in names)
        figure, rows = _grid(len(metrics), len(layout.facets), LINE_INCHES * lines_high)
        told = differing(summary.iter_rows(named=True))
        for axes, (key, part) in zip(rows, metrics, strict=True):
            divisor, name = scale(str(key["unit"]), part["median"].to_list())
            found = {of_set[str(row["set"])]: row for row in part.iter_rows(named=True)}
            for axis, facet in zip(axes, layout.facets, strict=True):
                for index, line in enumerate(layout.lines):
                    points = [
                        (place, found[text, line, facet])
                        for text, place in places.items()
                        if (text, line, facet) in found
                    ]
                    apart = index - (len(layout.lines) - 1) / 2 if not numeric else 0
                    _line(axis, points, divisor, index, line or FIGURES, apart, numeric=numeric)
            whose = where(key, told)
            name_lines = textwrap.wrap(capital(title(str(key["metric"]))), LABEL_LETTERS)
            lines = [*name_lines, *([whose] if whose else [])]
            lines.append(f"({name or 'ratio'})")
            axes[0].set_ylabel("\n".join(lines))
            # Nothing is cut off: differences are to be seen in proportion, and marks whole.
            axes[0].set_ylim(bottom=0, top=1.05 * max(axes[0].get_ylim()[1], 0) or 1)
        for axis, facet in zip(rows[0], layout.facets, strict=True):
            named = zip(layout.facet, facet, strict=True)
            axis.set_title(
                "\n".join(f"{short(key)} {value_text(key, value)}" for key, value in named)
            )
        drawn = [axis for axes in rows for axis in axes]
        for axis in drawn:
            if numeric:
                _ticks(axis, places, columns)
            else:
                _named_ticks(axis, places, names, is_turned=is_turned)
        for axis in drawn[-columns:]:
            axis.set_xlabel(f"{short(layout.axis)}{f' ({unit})' if unit else ''}")
        _legend(figure, drawn, layout)
    return Picture(f"sweep-{layout.axis.replace('.', '-')}", figure)


def _metrics(summary: pl.DataFrame) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Return the figures of each metric that has several; those that vary, unless none does."""
    found = [
        (dict(zip(_KEYS, key, strict=True)), part)
        for key, part in summary.group_by(_KEYS, maintain_order=True)
        if part["median"].count() > 1
    ]
    varying = [(key, part) for key, part in found if part["median"].drop_nulls().n_unique() > 1]
    return (varying or found)[:MOST_ROWS]


def _named(text: str, name: str) -> str:
    """Return a value that is no amount, in lines as short as its place below an axis."""
    plain = value_text(name, text).replace('"', "")
    lines = textwrap.wrap(plain, TICK_LETTERS, max_lines=TICK_LINES, placeholder=" …")
    return "\n".join(lines) or text


def _letters(name: str) -> int:
    """Return the letters of the longest line of a name."""
    return max(map(len, name.split("\n")))


def _grid(metrics: int, facets: int, names_inches: float) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure, and the panels of each metric: one for each facet.

    Below a row of panels there is room for names of some height; of facets below the last row only.
    """
    alone = facets == 1
    columns = _columns(metrics, facets)
    rows = -(-metrics * facets // columns)
    height = (2.1 if alone else 1.75) * rows + 0.8 + names_inches * (rows if alone else 1)
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=False if alone else "row")
    if not alone:
        for axis in grid[:-1].flat:
            axis.tick_params(labelbottom=False)
        return figure, grid.tolist()
    for axis in grid.flat[metrics:]:
        axis.set_visible(False)
    return figure, [[axis] for axis in grid.flat[:metrics]]


def _columns(metrics: int, facets: int) -> int:
    return facets if facets > 1 else min(metrics, 2)


def _legend(figure: Figure, drawn: Sequence[Axes], layout: Layout) -> None:
    known = {
        text: handle
        for axis in drawn
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    shown = [line for line in layout.lines if (line or FIGURES) in known]
    figure.legend(
        [known[line or FIGURES] for line in shown],
        [value_text(layout.line, line) if line else FIGURES for line in shown],
        loc="outside lower left",
        title=f"{short(layout.line)} ({FIGURES})" if layout.line else None,
        alignment="left",
        ncols=MOST_LINES,
    )


def _named_ticks(
    axis: Axes, places: Mapping[str, float], names: Sequence[str], *, is_turned: bool
) -> None:
    axis.set_xticks(list(places.values()), names)
    # Marks and bars keep their halves at either edge.
    axis.margins(x=0.5 / max(len(places), 1))
    if is_turned:
        axis.tick_params("x", labelrotation=30)
        for label in axis.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _ticks(axis: Axes, places: Mapping[str, float], columns: int) -> None:
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


def _line(
    axis: Axes,
    points: Sequence[tuple[float, Mapping[str, Any]]],
    divisor: float,
    index: int,
    label: str,
    apart: float,
    *,
    numeric: bool,
) -> None:
    """Draw medians with a band of their 95 % intervals, or with bars between unlike things.

    Bars stand ``apart`` steps beside their place, so that those of several lines can be seen.
    """
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
    reach = np.nan_to_num([middle - low, high - middle]).clip(0)
    axis.errorbar(at + 0.08 * apart, middle, yerr=reach, capsize=2, elinewidth=0.8, **look)
