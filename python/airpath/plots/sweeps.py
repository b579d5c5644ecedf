"""Metrics over a swept parameter: one line for each combination of the others, with intervals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl

from airpath.analysis.text import scale, where
from airpath.plots.sets import COLOURS, LINES, MARKERS
from airpath.plots.style import SETTINGS, WIDTH_INCHES, Figure, Picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from matplotlib.axes import Axes

_KEYS = ["metric", "flow", "hop", "direction", "unit"]
_AMOUNT = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([^0-9]*)\s*")

MOST_LINES = 12
"""Lines of a panel; beyond them nobody can tell one from another."""


MOST_LETTERS = 36
"""Of all names below an axis together; longer ones would lie over one another, and are slanted."""


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


def draw(
    summary: pl.DataFrame, parameters: Mapping[str, Mapping[str, Any]], swept: str
) -> Picture | None:
    """Draw all metrics over one parameter.

    Args:
        summary: figures of the sets (``airpath.analysis.statistics.summarise``).
        parameters: of each set, what distinguishes it from the others; all have ``swept``.
        swept: the parameter on the axis.

    """
    places, unit = axis_values([of[swept] for of in parameters.values()])
    if len(places) < 2:
        return None
    numeric = bool(unit) or all(_AMOUNT.fullmatch(text) for text in places)
    lines: dict[str, list[str]] = {}
    for name, of in parameters.items():
        others = {key: value for key, value in of.items() if key != swept}
        differing = {
            key: value
            for key, value in others.items()
            if len({str(each.get(key)) for each in parameters.values()}) > 1
        }
        text = ", ".join(f"{key.rsplit('.', 1)[-1]} {value}" for key, value in differing.items())
        lines.setdefault(text, []).append(name)
    panels = [
        (dict(zip(_KEYS, key, strict=True)), part)
        for key, part in summary.group_by(_KEYS, maintain_order=True)
        if part.height > 1
    ]
    if not panels:
        return None
    rows = (len(panels) + 1) // 2
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure = Figure(figsize=(WIDTH_INCHES, 2.3 * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, 2, squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (key, part) in zip(axes.flat, panels, strict=False):
            by_set = {row["set"]: row for row in part.iter_rows(named=True)}
            divisor, name = scale(str(key["unit"]), part["median"].to_list())
            for index, (text, names) in enumerate(list(lines.items())[:MOST_LINES]):
                points = sorted(
                    (places[str(parameters[one][swept])], by_set[one])
                    for one in names
                    if one in by_set
                )
                _line(axis, points, divisor, index, len(lines), text, numeric=numeric)
            whose = where(key)
            title = str(key["metric"]).replace("_", " ")
            axis.set_title(f"{title}, {whose}" if whose else title)
            axis.set_ylabel(name or "ratio")
            # Nothing is cut off: differences are to be seen in proportion.
            axis.set_ylim(bottom=0, top=None if axis.get_ylim()[1] > 0 else 1)
            axis.set_xlabel(f"{swept}{f' ({unit})' if unit else ''}")
            labels = [f"{place:g}" for place in places.values()] if numeric else list(places)
            is_crowded = not numeric and sum(map(len, labels)) > MOST_LETTERS
            axis.set_xticks(
                list(places.values()),
                labels,
                rotation=30 if is_crowded else 0,
                ha="right" if is_crowded else "center",
            )
        if len(lines) > 1:
            handles, labels = axes.flat[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower left", ncols=3)
    return Picture(f"sweep-{swept.replace('.', '-')}", figure)


def _line(
    axis: Axes,
    points: list[tuple[float, dict[str, Any]]],
    divisor: float,
    index: int,
    count: int,
    label: str,
    *,
    numeric: bool,
) -> None:
    if not points:
        return
    # Side by side by a hair, so that intervals of several lines at one place can be seen.
    span = max(abs(points[-1][0] - points[0][0]), 1.0)
    shift = 0.012 * span * (index - (count - 1) / 2)
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
        [place + shift for place, _ in points],
        middle,
        yerr=[[max(each, 0) for each in low], [max(each, 0) for each in high]],
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=3.5,
        linestyle=LINES[index % len(LINES)] if numeric else ":",
        capsize=2.5,
        elinewidth=0.8,
        label=label or "median, 95 % interval",
    )
