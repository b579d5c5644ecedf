"""Metrics over a swept parameter, with intervals, beside each value of the others.

Few combinations of the other parameters are lines of one panel. With more of them, one parameter's
values become columns, so that each panel keeps a number of lines that can be told apart.
"""

from __future__ import annotations

import math
import re
import textwrap
from typing import TYPE_CHECKING, Any, TypeVar, cast

import matplotlib as mpl
from matplotlib.figure import Figure

from airpath.analysis.text import scale, where
from airpath.plots.sets import COLOURS, LINES, MARKERS
from airpath.plots.style import SETTINGS, WIDTH_INCHES, Picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from matplotlib.axes import Axes

_KEYS = ["metric", "flow", "hop", "direction", "unit"]
_Any = TypeVar("_Any")
_AMOUNT = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([^0-9]*)\s*")

KIND = "sweep"
"""What these pictures are called where kinds of pictures are named."""

MOST_LINES = 6
"""Lines of a panel; beyond them nobody can tell one from another."""

MOST_COLUMNS = 6
"""Panels side by side."""

LOGARITHMIC_FROM = 8
"""Amounts of which the largest is so many times the least lie on a logarithmic axis."""

LABEL_CHARACTERS = 26
"""Of a line beside a panel."""

TICK_INCHES = 0.28
"""Room for the number at a tick of the horizontal axis."""


def axis_values(values: list[Any]) -> tuple[dict[str, float], str]:
    """Return where each value of a parameter lies on the axis, and the axis's unit.

    Amounts of one unit lie where their numbers are; others side by side, in their order.
    """
    texts = list(dict.fromkeys(str(value) for value in values))
    found = {text: _AMOUNT.fullmatch(text) for text in texts}
    units = {match[2].strip() if match else None for match in found.values()}
    if len(units) == 1 and None not in units:
        return {text: float(match[1]) for text, match in found.items() if match}, str(units.pop())
    return {text: float(place) for place, text in enumerate(texts)}, ""


def swept(parameters: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the parameters that all sets have and that differ between them.

    Args:
        parameters: of each set, what distinguishes it from the others.

    """
    names = dict.fromkeys(key for of in parameters.values() for key in of)
    return [
        name
        for name in names
        if all(name in of for of in parameters.values()) and len(_values(parameters, name)) > 1
    ]


def draw(
    summary: pl.DataFrame, parameters: Mapping[str, Mapping[str, Any]], swept: str
) -> Picture | None:
    """Draw all metrics over one parameter.

    Args:
        summary: figures of the sets (``airpath.analysis.statistics.summarise``).
        parameters: of each set, what distinguishes it from the others; all have ``swept``.
        swept: the parameter on the axis.

    """
    if len(_values(parameters, swept)) < 2:
        return None
    metrics = [
        (dict(zip(_KEYS, key, strict=True)), part)
        for key, part in summary.group_by(_KEYS, maintain_order=True)
        # A metric that is zero everywhere, as of the direction without data, shows nothing.
        if part.height > 1 and (part["median"] != 0).any()
    ]
    if not metrics:
        return None
    layout = _Layout(parameters, swept)
    with mpl.rc_context(cast("Any", SETTINGS)):
        if layout.columns:
            columns = len(layout.columns)
            figure = Figure(figsize=(WIDTH_INCHES, 1.9 * len(metrics) + 0.7), layout="constrained")
            axes = figure.subplots(len(metrics), columns, squeeze=False, sharex=True, sharey="row")
            for number, ((key, part), row) in enumerate(zip(metrics, axes, strict=True)):
                for axis, column in zip(row, layout.columns, strict=True):
                    layout.panel(axis, part, key, column)
                    if number == 0:
                        axis.set_title(layout.title(column))
                    if number < len(metrics) - 1:
                        axis.set_xlabel("")
                    if axis is not row[0]:
                        axis.set_ylabel("")
                _begin_at_zero(row[0])
                name = f"{_name(key)} ({row[0].get_ylabel()})"
                row[0].set_ylabel(textwrap.fill(name, LABEL_CHARACTERS))
        else:
            rows = (len(metrics) + 1) // 2
            figure = Figure(figsize=(WIDTH_INCHES, 2.3 * rows + 0.5), layout="constrained")
            axes = figure.subplots(rows, 2, squeeze=False)
            for axis in axes.flat[len(metrics) :]:
                axis.set_visible(False)
            for axis, (key, part) in zip(axes.flat, metrics, strict=False):
                layout.panel(axis, part, key, None)
                _begin_at_zero(axis)
                axis.set_title(_name(key))
        handles = {
            label: handle
            for axis in axes.flat
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        if len(layout.lines) > 1:
            shown = [label for label in map(layout.label, layout.lines) if label in handles]
            figure.legend(
                [handles[label] for label in shown],
                shown,
                loc="outside lower left",
                ncols=min(
                    len(shown), max(1, int(WIDTH_INCHES / (0.45 + 0.075 * max(map(len, shown)))))
                ),
                title=layout.left_out,
                alignment="left",
            )
    return Picture(f"sweep-{swept.replace('.', '-')}", figure)


def _values(parameters: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Return the values of a parameter: by amount where they are amounts, else in their order."""
    texts = list(dict.fromkeys(str(of.get(name)) for of in parameters.values()))
    places, _ = axis_values(texts)
    return sorted(texts, key=places.__getitem__)


def _name(key: dict[str, Any]) -> str:
    whose = where(key)
    title = str(key["metric"]).replace("_", " ")
    return f"{title}, {whose}" if whose else title


def _begin_at_zero(axis: Axes) -> None:
    """Cut nothing off, once all is drawn: differences are to be seen in proportion."""
    axis.set_ylim(bottom=0, top=None if axis.get_ylim()[1] > 0 else 1)


class _Layout:
    """Which set is a point of which line, in which column."""

    def __init__(self, parameters: Mapping[str, Mapping[str, Any]], swept: str) -> None:
        self.parameters = parameters
        self.swept = swept
        self.ticks = _values(parameters, swept)
        self.places, self.unit = axis_values(self.ticks)
        self.numeric = bool(self.unit) or all(_AMOUNT.fullmatch(text) for text in self.ticks)
        least, most = min(self.places.values()), max(self.places.values())
        self.logarithmic = self.numeric and least > 0 and most / least >= LOGARITHMIC_FROM
        every = dict.fromkeys(key for of in parameters.values() for key in of)
        others = {key: _values(parameters, key) for key in every if key != swept}
        others = {key: values for key, values in others.items() if len(values) > 1}
        self.column = ""
        self.columns: list[str] = []
        if len(self._combinations(list(others))) > MOST_LINES and len(others) > 1:
            # As few columns as possible: they are narrow.
            self.column = min(others, key=lambda key: len(others[key]))
            self.columns = _some(others[self.column], MOST_COLUMNS)
            others.pop(self.column)
        self.within = list(others)
        lines = self._combinations(self.within)
        self.lines = _some(lines, MOST_LINES)
        self.left_out = (
            f"{len(self.lines)} of {len(lines)} lines, evenly chosen"
            if len(self.lines) < len(lines)
            else None
        )

    def _combinations(self, names: list[str]) -> list[tuple[str, ...]]:
        order = [{text: n for n, text in enumerate(_values(self.parameters, k))} for k in names]
        found = {self._line(of, names) for of in self.parameters.values()}
        return sorted(
            found, key=lambda line: [order[n].get(text, 0) for n, text in enumerate(line)]
        )

    @staticmethod
    def _line(of: Mapping[str, Any], names: list[str]) -> tuple[str, ...]:
        return tuple(str(of.get(name)) for name in names)

    def label(self, line: tuple[str, ...]) -> str:
        """Return what the legend says of a line."""
        pairs = zip(self.within, line, strict=True)
        return ", ".join(f"{key.rsplit('.', 1)[-1]} {value}" for key, value in pairs)

    def title(self, column: str) -> str:
        """Return what stands above a column."""
        return f"{self.column.rsplit('.', 1)[-1]} {column}".replace("congestion_control ", "")

    def panel(
        self, axis: Axes, part: pl.DataFrame, key: Mapping[str, Any], column: str | None
    ) -> None:
        """Draw one metric, of the sets of a column or of all."""
        by_set = {row["set"]: row for row in part.iter_rows(named=True)}
        divisor, unit = scale(str(key["unit"]), part["median"].to_list())
        for index, line in enumerate(self.lines):
            points = sorted(
                (
                    (self.places[str(of[self.swept])], by_set[name])
                    for name, of in self.parameters.items()
                    if name in by_set
                    and (column is None or str(of.get(self.column)) == column)
                    and self._line(of, self.within) == line
                ),
                key=lambda point: point[0],
            )
            self._draw_line(axis, points, divisor, index, self.label(line))
        axis.set_ylabel(unit or "ratio")
        axis.set_xlabel(f"{self.swept}{f' ({self.unit})' if self.unit else ''}")
        if self.columns:
            axis.set_xlabel(
                f"{self.swept.rsplit('.', 1)[-1]}{f' ({self.unit})' if self.unit else ''}"
            )
        if self.logarithmic:
            axis.set_xscale("log")
            axis.minorticks_off()
        room = WIDTH_INCHES / max(2, len(self.columns)) * 0.8
        shown = _apart([self.places[text] for text in self.ticks], room, self.logarithmic)
        names = {self.places[text]: text for text in self.ticks}
        axis.set_xticks(shown, [f"{place:g}" if self.numeric else names[place] for place in shown])

    def _draw_line(
        self,
        axis: Axes,
        points: list[tuple[float, dict[str, Any]]],
        divisor: float,
        index: int,
        label: str,
    ) -> None:
        if not points:
            return
        # Side by side by a hair, so that intervals of several lines at one place can be seen.
        aside = 0.012 * (index - (len(self.lines) - 1) / 2)
        least, most = min(self.places.values()), max(self.places.values())
        if self.logarithmic:
            places = [place * (most / least) ** aside for place, _ in points]
        else:
            places = [place + aside * (most - least) for place, _ in points]
        middle = [row["median"] / divisor for _, row in points]
        low = [
            0 if row["median_low"] is None else (row["median"] - row["median_low"]) / divisor
            for _, row in points
        ]
        high = [
            0 if row["median_high"] is None else (row["median_high"] - row["median"]) / divisor
            for _, row in points
        ]
        axis.errorbar(
            places,
            middle,
            yerr=[[max(each, 0) for each in low], [max(each, 0) for each in high]],
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=3 if self.columns else 3.5,
            linestyle=LINES[index % len(LINES)] if self.numeric else ":",
            capsize=1.5 if self.columns else 2.5,
            elinewidth=0.8,
            label=label or "median, 95 % interval",
        )


def _some(items: list[_Any], most: int) -> list[_Any]:
    """Return so many items at most, the first and the last among them, evenly chosen."""
    if len(items) <= most:
        return items
    return [items[round(n * (len(items) - 1) / (most - 1))] for n in range(most)]


def _apart(places: list[float], room_inches: float, logarithmic: bool) -> list[float]:
    """Return the places whose numbers fit beside one another on an axis so wide."""
    at = [math.log(place) if logarithmic else place for place in places]
    span = (max(at) - min(at)) or 1.0
    shown: list[float] = []
    last = -math.inf
    for here, place in zip(at, places, strict=True):
        if (here - last) / span * room_inches >= TICK_INCHES:
            shown.append(place)
            last = here
    return shown
