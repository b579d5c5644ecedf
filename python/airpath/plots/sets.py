# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures over many runs: distributions and CDFs of metrics by set, and courses with bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.analysis.requests import SIZES, transfers_only
from airpath.analysis.statistics import outliers, select_trusted
from airpath.analysis.text import scale, where
from airpath.analysis.titles import title
from airpath.natural import natural_order
from airpath.plots import courses
from airpath.plots.course_panels import draw_courses
from airpath.plots.kinds import COURSE_PICTURES
from airpath.plots.sheet import COLOURS, LINES, MARKERS, legend, sheet
from airpath.plots.style import (
    BLACK,
    GREY,
    Picture,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from airpath.analysis.folders import Replication
    from airpath.analysis.statistics import Selection

METRICS = ("elapsed_time", "transfer_time", "goodput", "retransmitted_segments")
"""Metrics that are drawn when nobody names any."""

MOST_NAMES = 3
"""Outliers named beside one another in a picture."""

ROOM_OF_A_NAME = 0.06
"""Share of an axis that the name of a run takes."""


def of_runs(
    runs: Sequence[Replication],
    kinds: Sequence[str],
    metrics: Sequence[str] | None = None,
    *,
    include_untrusted: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, Replication], None] | None = None,
    notes: list[str] | None = None,
    problems: list[str] | None = None,
) -> list[Picture]:
    """Measure runs and draw pictures of their sets; none if there is nothing to draw.

    Args:
        runs: the replications.
        kinds: of ``kinds.SETS``.
        metrics: names, as ``airpath.frame`` takes them; ``METRICS`` if there are none.
        include_untrusted: keep replications whose verdict is not trusted.
        jobs: how many processes measure, as ``frame`` takes it.
        progress: called before each run with its number from 0.
        notes: what readers must know is added here, such as which runs were left out.
        problems: what is damaged is added here, and the rest drawn.

    Raises:
        RunError: a run could not be read.
        UnknownMetricError: a name is no metric's.

    """
    trusted, selection = measured(
        runs,
        metrics,
        include_untrusted=include_untrusted,
        jobs=jobs,
        progress=progress,
        notes=notes,
        problems=problems,
    )
    if notes is not None:
        notes += selection.notes
    return draw(trusted, selection.table, kinds) if trusted else []


def measured(
    runs: Sequence[Replication],
    metrics: Sequence[str] | None,
    *,
    include_untrusted: bool,
    jobs: int | None = None,
    progress: Callable[[int, Replication], None] | None = None,
    notes: list[str] | None = None,
    problems: list[str] | None = None,
) -> tuple[list[Replication], Selection]:
    """Return the runs that enter pictures of sets, and their figures without those of requests.

    Arguments and errors are those of ``of_runs``; what was left out is in the selection's notes.
    """
    from airpath.analysis.table import frame

    chosen = list(metrics or METRICS)
    values = frame(
        runs, [*chosen, SIZES], jobs=jobs, progress=progress, notes=notes, problems=problems
    )
    from airpath.analysis.why import of_sets

    selection = select_trusted(
        transfers_only(values, chosen), include_untrusted=include_untrusted, why=of_sets(runs)
    )
    kept = set(selection.table.select("set", "run").iter_rows())
    return [one for one in runs if (one.set_name, one.name) in kept], selection


@dataclass(frozen=True)
class Mark:
    """Figures from elsewhere, drawn in the panels of their metric."""

    name: str
    metric: str
    direction: str
    """A direction, or "" for every."""
    median: float
    low: float | None = None
    high: float | None = None
    """Ends of the band about the median, if it is known."""


def draw(
    runs: Sequence[Replication],
    table: pl.DataFrame,
    kinds: Sequence[str],
    marks: Sequence[Mark] = (),
    names: Sequence[str] = (),
) -> list[Picture]:
    """Draw pictures of sets.

    Args:
        runs: the replications, for courses.
        table: their metrics (``airpath.analysis.frame``); each (metric, flow, direction, hop) is a
            panel.
        kinds: of ``kinds.SETS``.
        marks: figures from elsewhere to draw beside them.
        names: the sets in their order, if the table may lack some, so that colours stay theirs.

    """
    pictures = []
    keys = ["metric", "flow", "hop", "direction", "unit"]
    panels = [
        (key, part) for key, part in table.group_by(keys, maintain_order=True) if part.height > 1
    ]
    names = list(names) or natural_order(table["set"].unique())
    for kind, one in (("distribution", _strip), ("cdf", _cdf)):
        if kind not in kinds or not panels:
            continue
        with sheet(len(panels), row_inches(kind, len(names))) as (figure, axes):
            for axis, (key, part) in zip(axes, panels, strict=True):
                divisor, unit = scale(str(key[4]), part["value"].to_list())
                one(axis, part, names, divisor)
                axis.ticklabel_format(axis="x", useOffset=False)
                _mark(axis, marks, str(key[0]), str(key[3]), divisor)
                of = where(dict(zip(keys, map(str, key), strict=True)))
                axis.set_xlabel(
                    f"{title(str(key[0]))}{f', {of}' if of else ''}"
                    + (f" ({unit})" if unit else "")
                )
            if kind == "cdf":
                legend(figure, axes, names)
        pictures.append(Picture(kind, figure))
    over_time = [kind for kind in kinds if kind in COURSE_PICTURES]
    if over_time:
        read = courses.read(runs, [kind.removesuffix("-course") for kind in over_time])
        pictures += draw_courses(*read, over_time)
    return pictures


def row_inches(kind: str, number: int) -> float:
    """Return how high the panel of one metric is with a number of sets."""
    return 0.9 + 0.32 * number if kind == "distribution" else 2.4


def _mark(axis: Axes, marks: Sequence[Mark], metric: str, direction: str, divisor: float) -> None:
    """Draw each mark of a metric as a line over the panel's height, with its band."""
    for mark in marks:
        if mark.metric != metric or mark.direction not in ("", direction):
            continue
        if mark.low is not None and mark.high is not None:
            axis.axvspan(
                mark.low / divisor, mark.high / divisor, color=GREY, alpha=0.18, linewidth=0
            )
        axis.axvline(mark.median / divisor, color=BLACK, linestyle=(0, (5, 2)), linewidth=1.1)
        axis.annotate(
            mark.name,
            (mark.median / divisor, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            annotation_clip=False,
        )


def _of_set(part: pl.DataFrame, name: str) -> pl.DataFrame:
    return part.filter(pl.col("set") == name)


def _strip(axis: Axes, part: pl.DataFrame, names: list[str], divisor: float) -> None:
    """Draw a box and every point of each set; outliers bear the name of their run."""
    for place, name in enumerate(names):
        rows = _of_set(part, name)
        values = rows["value"].to_numpy() / divisor
        if not len(values):
            continue
        colour = COLOURS[place % len(COLOURS)]
        axis.boxplot(
            values,
            positions=[place],
            orientation="horizontal",
            widths=0.55,
            showfliers=False,
            medianprops={"color": BLACK, "linewidth": 1.4},
            boxprops={"color": GREY},
            whiskerprops={"color": GREY},
            capprops={"color": GREY},
        )
        axis.plot(
            values,
            _heights(place, len(values)),
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            markersize=3.4,
            markeredgewidth=0,
            color=colour,
            alpha=0.75,
        )
    for place, name in enumerate(names):
        rows = _of_set(part, name)
        if rows.height:
            _name_outliers(axis, rows, place, divisor)
    labels = [f"{name} ({_of_set(part, name).height})" for name in names]
    axis.set_yticks(range(len(names)), labels)
    axis.set_ylim(len(names) - 0.5, -0.5)


def _heights(place: int, count: int) -> np.ndarray:
    """Return heights side by side rather than at random: the same runs give the same picture."""
    return place + 0.3 * (np.arange(count) % 5 - 2) / 2


def _name_outliers(axis: Axes, rows: pl.DataFrame, place: int, divisor: float) -> None:
    """Write the names of outliers beside them, of those that lie close together in one text."""
    values = rows["value"].to_numpy() / divisor
    heights = _heights(place, len(values))
    left, right = axis.get_xlim()
    low = values < np.median(values)
    groups: list[list[int]] = []
    for row in sorted(outliers(rows["value"].to_numpy()), key=values.__getitem__):
        near = groups and values[row] - values[groups[-1][-1]] < ROOM_OF_A_NAME * (right - left)
        if near and low[row] == low[groups[-1][-1]]:
            groups[-1].append(row)
        else:
            groups.append([row])
    for group in groups:
        # Away from the box, which lies between low and high ones.
        is_low = bool(low[group[0]])
        at = values[group[0 if is_low else -1]]
        # Beside the axis there is no room: to the other side, towards the box.
        to_left = is_low and at - left > ROOM_OF_A_NAME * (right - left)
        runs = [rows["run"][row].removeprefix("replication-") for row in sorted(group)]
        more = [f"{len(runs) - MOST_NAMES} more"] if len(runs) > MOST_NAMES else []
        axis.annotate(
            ", ".join(runs[:MOST_NAMES] + more),
            (at, heights[group].min()),
            xytext=(-4 if to_left else 4, 1),
            textcoords="offset points",
            horizontalalignment="right" if to_left else "left",
            fontsize=6.5,
            color="#444444",
        )


def _cdf(axis: Axes, part: pl.DataFrame, names: list[str], divisor: float) -> None:
    """Draw the share of replications at or below each value."""
    for place, name in enumerate(names):
        values = np.sort(_of_set(part, name)["value"].to_numpy()) / divisor
        if not len(values):
            continue
        axis.step(
            np.concatenate([values[:1], values]),
            np.arange(len(values) + 1) / len(values),
            where="post",
            color=COLOURS[place % len(COLOURS)],
            linestyle=LINES[place % len(LINES)],
            label=name,
        )
    axis.set_ylabel("Share of replications")
    axis.set_ylim(0, 1.02)
