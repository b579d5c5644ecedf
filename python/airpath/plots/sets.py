"""Pictures over many runs: distributions and CDFs of metrics by set, and courses with bands."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from airpath.analysis.statistics import outliers
from airpath.analysis.text import scale
from airpath.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SETTINGS,
    SKY,
    VERMILLION,
    WIDTH_INCHES,
    Picture,
)
from airpath.run import DIRECTIONS, load_run
from airpath.tcp import goodput_events

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from airpath.analysis.folders import Replication

COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE, BLACK, GREY)
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

METRICS = ("elapsed_time", "transfer_time", "goodput", "retransmitted_segments")
"""What is drawn when nobody names metrics."""

COURSE_BINS = 100
KINDS = ("distribution", "cdf", "goodput-course")


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
) -> list[Picture]:
    """Draw pictures of sets.

    Args:
        runs: the replications, for courses.
        table: their metrics (``airpath.analysis.frame``); each (metric, flow, direction, hop) is a
            panel.
        kinds: of ``KINDS``.
        marks: figures from elsewhere to draw beside them.

    """
    pictures = []
    keys = ["metric", "flow", "hop", "direction", "unit"]
    panels = [
        (key, part) for key, part in table.group_by(keys, maintain_order=True) if part.height > 1
    ]
    names = sorted(table["set"].unique().to_list())
    for kind, one in (("distribution", _strip), ("cdf", _cdf)):
        if kind not in kinds or not panels:
            continue
        with _sheet(len(panels), 0.9 + 0.32 * len(names) if kind == "distribution" else 2.4) as (
            figure,
            axes,
        ):
            for axis, (key, part) in zip(axes, panels, strict=True):
                divisor, unit = scale(str(key[4]), part["value"].to_list())
                one(axis, part, names, divisor)
                _mark(axis, marks, str(key[0]), str(key[3]), divisor)
                of = " ".join(str(word) for word in key[1:4] if word)
                axis.set_xlabel(
                    f"{str(key[0]).replace('_', ' ')}{f', {of}' if of else ''}"
                    + (f" ({unit})" if unit else "")
                )
        pictures.append(Picture(kind, figure))
    if "goodput-course" in kinds:
        pictures += _courses(runs, names)
    return pictures


@contextmanager
def _sheet(rows: int, row_inches: float) -> Iterator[tuple[Figure, list[Axes]]]:
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure = Figure(figsize=(WIDTH_INCHES, row_inches * rows + 0.3), layout="constrained")
        yield figure, list(figure.subplots(rows, 1, squeeze=False)[:, 0])


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
        # Points side by side rather than at random places: the same runs give the same picture.
        spread = place + 0.3 * (np.arange(len(values)) % 5 - 2) / 2
        axis.plot(
            values,
            spread,
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            markersize=3.4,
            markeredgewidth=0,
            color=colour,
            alpha=0.75,
        )
        for row in outliers(rows["value"].to_numpy()):
            axis.annotate(
                rows["run"][row].removeprefix("replication-"),
                (values[row], spread[row]),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize=6.5,
                color="#444444",
            )
    labels = [f"{name} ({_of_set(part, name).height})" for name in names]
    axis.set_yticks(range(len(names)), labels)
    axis.set_ylim(len(names) - 0.5, -0.5)


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
            label=f"{name} ({len(values)})",
        )
    axis.set_ylabel("Share of replications")
    axis.set_ylim(0, 1.02)
    axis.legend(loc="lower right")


def _courses(runs: Sequence[Replication], names: list[str]) -> list[Picture]:
    """Draw TCP goodput over time: the median over replications, and the band of 5 to 95 %."""
    arrivals = [
        (one.set_name, direction, goodput_events(run, direction), run.duration_ns)
        for one in runs
        for run in [load_run(one.directory)]
        for direction in DIRECTIONS
    ]
    most = {
        direction: max(
            (int(e["bytes"].to_numpy().sum()) for _, d, e, _ in arrivals if d == direction),
            default=0,
        )
        for direction in DIRECTIONS
    }
    used = [way for way in DIRECTIONS if most[way] and most[way] >= 0.1 * max(most.values())]
    if not used:
        return []
    end = max(duration for _, _, _, duration in arrivals) / 1e9
    edges: np.ndarray = np.linspace(0, end, COURSE_BINS + 1)
    with _sheet(len(used), 2.4) as (figure, axes):
        for axis, direction in zip(axes, used, strict=True):
            bands = {}
            for name in names:
                rates = [
                    np.histogram(
                        events["time_ns"].to_numpy() / 1e9,
                        edges,
                        weights=events["bytes"].to_numpy(),
                    )[0]
                    * 8
                    / np.diff(edges)
                    for of, way, events, _ in arrivals
                    if (of, way) == (name, direction)
                ]
                if rates:
                    bands[name] = np.percentile(np.array(rates), [5, 50, 95], axis=0)
            top = max(float(band.max()) for band in bands.values())
            divisor, unit = scale("bit/s", [top])
            for name, (low, middle, high) in bands.items():
                place = names.index(name)
                colour = COLOURS[place % len(COLOURS)]
                axis.fill_between(
                    edges[:-1],
                    low / divisor,
                    high / divisor,
                    step="post",
                    color=colour,
                    alpha=0.18,
                    linewidth=0,
                )
                axis.step(
                    edges[:-1],
                    middle / divisor,
                    where="post",
                    color=colour,
                    linestyle=LINES[place % len(LINES)],
                    label=f"{name}: median, 5 to 95 %",
                )
            axis.set_ylabel(f"Goodput, {direction} ({unit})")
            axis.legend(loc="upper right")
            axis.set_ylim(0, None)
        axes[-1].set_xlabel(f"Time since the run began (s), in steps of {end / COURSE_BINS:.2g} s")
    return [Picture("goodput-course", figure)]
