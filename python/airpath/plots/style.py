# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Common style of all pictures: colours, sizes, titles, marks of drops and of state changes."""

from __future__ import annotations

import io
import math
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.layout_engine import LayoutEngine, PlaceHolderLayoutEngine
from matplotlib.transforms import blended_transform_factory

from airpath.facts import CAUSES, NO_VERDICT, TRUSTED
from airpath.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.text import Text
    from numpy.typing import NDArray

    from airpath.run import Run

# Colours that people with any colour vision can tell apart (Okabe and Ito 2008).
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"
LIGHT_GREY = "#BBBBBB"
WHITE = "#FFFFFF"

PALE = (WHITE, YELLOW, LIGHT_GREY)
"""Colours whose marks have a dark edge."""

DIRECTION_COLOURS = {"uplink": ORANGE, "downlink": BLUE}
DIRECTION_TEXTS = {
    "uplink": "Uplink (client to server)",
    "downlink": "Downlink (server to client)",
}

NANOSECONDS_PER_SECOND = 1e9
WIDTH_INCHES = 7.2
"""Two columns of a paper."""
DOTS_PER_INCH = 200
SHOWN_DOTS_PER_INCH = 150
"""In notebooks: sharp on fine screens, and still small in the file."""
PAGE_DOTS_PER_INCH = 100

UNNAMED: dict[str, Any] = {"Software": None}
"""Metadata without the program that drew: the same picture has the same bytes."""
LINE_CHARACTERS = 105
"""Characters of small text that fit into a picture's width."""

MANY_MARKS = 20_000
"""From here on marks are drawn as pixels in vector formats too, lest files grow beyond use."""

SETTINGS: dict[str, Any] = {
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.1,
    "svg.hashsalt": "airpath",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
"""Under these matplotlib draws and saves."""


@dataclass(frozen=True)
class Span:
    """The part of a run that is drawn, in seconds; ``None`` means from its start, or to its end."""

    begin: float | None = None
    end: float | None = None

    def limits(self, run: Run) -> tuple[float, float]:
        """Return begin and end on the time axis, in seconds."""
        begin = self.begin if self.begin is not None else 0.0
        end = self.end if self.end is not None else run.duration_ns / NANOSECONDS_PER_SECOND
        return begin, max(end, begin + 1e-6)

    def limits_ns(self) -> tuple[float, float]:
        """Return both ends in nanoseconds; without limits, infinities."""
        begin = -math.inf if self.begin is None else self.begin * NANOSECONDS_PER_SECOND
        return begin, math.inf if self.end is None else self.end * NANOSECONDS_PER_SECOND


class Figure(MatplotlibFigure):
    """A figure that notebooks show by themselves: pyplot, which would, keeps every figure."""

    heading: Text | None = None
    """Title at the left edge of the panels, whose place is known once they are laid out."""

    def settle(self) -> None:
        """Lay the panels out, once: every drawing of an unsettled figure would do it anew."""
        engine = self.get_layout_engine()
        if engine is None:
            return
        with mpl.rc_context(cast("Any", SETTINGS)):
            engine.execute(self)
            if self.heading is not None:
                self.heading.set_x(self.get_axes()[0].get_position().x0)
            self.set_layout_engine("none")

    def get_layout_engine(self) -> LayoutEngine | None:
        """Return what lays the panels out; none once they are settled.

        With a placeholder matplotlib draws everything twice, for a layout that does not change.
        """
        engine = super().get_layout_engine()
        return None if isinstance(engine, PlaceHolderLayoutEngine) else engine

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Save the figure, settled."""
        self.settle()
        super().savefig(*arguments, **options)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture, and the size at which a notebook shows it, in pixels of a page."""
        content = io.BytesIO()
        with mpl.rc_context(cast("Any", SETTINGS)):
            self.savefig(
                content, format="png", dpi=SHOWN_DOTS_PER_INCH, metadata={"Software": None}
            )
        width, height = (round(inches * PAGE_DOTS_PER_INCH) for inches in self.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}


@dataclass(frozen=True)
class Picture:
    """A finished figure and the name of its file, without suffix."""

    name: str
    figure: Figure

    def save(self, directory: Path, file_format: str, *, name: str = "") -> Path:
        """Write the picture into a folder that exists, as ``name`` if given; return its path."""
        path = directory / f"{name or self.name}.{file_format}"
        # No date inside: the same run yields the same file.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(file_format)
        content = io.BytesIO()
        with mpl.rc_context(cast("Any", SETTINGS)):
            self.figure.savefig(content, format=file_format, dpi=DOTS_PER_INCH, metadata=metadata)
        write_whole(path, content.getvalue())
        return path


Marker = str | tuple[int, int, float]
"""A marker of matplotlib: its name, or corners, kind and angle of a star."""


@dataclass(frozen=True)
class DropStyle:
    """Mark of drops by one cause."""

    marker: Marker
    colour: str
    text: str
    shape: str
    """The marker, as the engine names it."""

    @property
    def line_colour(self) -> str:
        """The colour for thin lines on white, where the lightest colours would not be seen."""
        return {WHITE: "#444444", YELLOW: "#B5A600"}.get(self.colour, self.colour)


_MARKERS: dict[str, Marker] = {
    "triangle_down": "v",
    "triangle_left": "<",
    "triangle_up": "^",
    "thin_diamond": "d",
    "diamond": "D",
    "star": "*",
    "cross": "X",
    "square": "s",
    "plus": "P",
    "circle": "o",
    "pentagon": "p",
    "triangle_right": ">",
    "octagon": "8",
    "four_star": (4, 1, 0),
    "three_star": (3, 1, 0),
    "six_star": (6, 1, 0),
    "eight_star": (8, 1, 0),
}
"""The names in matplotlib of the shapes of ``airpath facts``."""

_COLOURS = {
    "black": BLACK,
    "orange": ORANGE,
    "sky": SKY,
    "yellow": YELLOW,
    "grey": GREY,
    "light_grey": LIGHT_GREY,
}

_DROP_STYLES = {
    cause.name: DropStyle(_MARKERS[cause.shape], _COLOURS[cause.colour], cause.text, cause.shape)
    for cause in CAUSES.values()
}
_OTHER_DROP_MARKERS: tuple[tuple[Marker, str], ...] = (
    ((7, 1, 0), "seven_star"),
    ((9, 1, 0), "nine_star"),
)
"""Of causes that this version does not know; hexagons are damaged packets."""


def drop_styles(causes: Iterable[str]) -> dict[str, DropStyle]:
    """Return a style for each cause; a known cause looks the same in every picture."""
    found = set(causes)
    styles = {cause: style for cause, style in _DROP_STYLES.items() if cause in found}
    for index, cause in enumerate(sorted(found - set(styles))):
        marker, shape = _OTHER_DROP_MARKERS[index % len(_OTHER_DROP_MARKERS)]
        text = cause.replace("_", " ") or "no cause given"
        styles[cause] = DropStyle(marker, LIGHT_GREY, text, shape)
    return styles


@contextmanager
def panels(
    run: Run,
    span: Span,
    title: str,
    rows: int = 1,
    *,
    row_inches: float = 3.9,
    ratios: Sequence[float] | None = None,
    detail: str = "",
    time_label: str = "Time since the run began (s)",
    shares_time: bool = True,
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Set up a figure of panels over a common time axis, and finish it after the body.

    Args:
        run: whose name, verdict and state changes are shown.
        span: the part of the run on the time axis.
        title: what the picture shows.
        rows: number of panels.
        row_inches: height of a panel on average.
        ratios: heights of the panels to one another; equal by default.
        detail: what small print says first.
        time_label: what the time axis shows.
        shares_time: the horizontal axis is the time of the run, the same for all panels.

    """
    with mpl.rc_context(cast("Any", SETTINGS)):
        height = row_inches * rows + 0.9
        figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        axes = list(
            figure.subplots(rows, 1, sharex=shares_time, squeeze=False, height_ratios=ratios)[:, 0]
        )
        yield figure, axes
        if shares_time:
            begin, end = span.limits(run)
            margin = 0.01 * (end - begin)
            axes[-1].set_xlim(begin - margin, end + margin)
            axes[-1].set_xlabel(time_label)
            _mark_states(run, axes, begin, end)
        _title(figure, run, title, detail)


@contextmanager
def stack(rows: int, *, row_inches: float) -> Iterator[tuple[Figure, list[Axes]]]:
    """Set up a figure of panels that belong to no run, over a common horizontal axis."""
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure = Figure(figsize=(WIDTH_INCHES, row_inches * rows + 0.4), layout="constrained")
        yield figure, list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])


@contextmanager
def canvas(height_inches: float) -> Iterator[Figure]:
    """Set up an empty figure that belongs to no run, for panels of the caller's own layout."""
    with mpl.rc_context(cast("Any", SETTINGS)):
        yield Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")


def clear_legends(figure: Figure) -> None:
    """Raise the upper ends of panels whose legends are at their tops, so that they cover nothing.

    The figure has to be complete: legends are as high as the layout leaves them.
    """
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure.draw_without_rendering()
        for axis in figure.get_axes():
            legend = axis.get_legend()
            if legend is None:
                continue
            shown = legend.get_window_extent().transformed(axis.transAxes.inverted())
            low, high = axis.get_ylim()
            axis.set_ylim(low, low + (high - low) / max(shown.y0, 0.2))


def _title(figure: Figure, run: Run, title: str, detail: str) -> None:
    small = [detail] if detail else []
    seed = run.manifest.get("seed")
    if seed is not None:
        small.append(f"seed {seed}")
    if run.manifest:
        small.append(f"{run.clock} clock")
    congestion_control = run.settings.get("congestion_control")
    # Flows that asked for one of their own are not what the run was set to.
    several = run.tcp_state["congestion_control"].drop_nulls().n_unique() > 1
    named = isinstance(congestion_control, str) and congestion_control in detail
    recorded = run.manifest.get("tcp_state")
    without_tcp = isinstance(recorded, dict) and recorded.get("sockets") == 0
    if isinstance(congestion_control, str) and not several and not named and not without_tcp:
        small.append(congestion_control)
    lines = [" · ".join(small)]
    if run.verdict not in (TRUSTED, NO_VERDICT):
        verdict = f"Verdict {run.verdict}: {'; '.join(run.verdict_reasons) or 'no reason given'}"
        lines += textwrap.wrap(verdict, LINE_CHARACTERS)[:3]
    top = figure.get_axes()[0]
    top.set_title("\n".join(lines), loc="left", color="#444444", pad=14, linespacing=1.4)
    whose = f"{run.name}, {run.user}" if run.user else run.name
    figure.heading = figure.suptitle(
        f"{whose}: {title}", ha="left", fontsize=10.5, fontweight="bold"
    )


def _mark_states(run: Run, axes: Sequence[Axes], begin: float, end: float) -> None:
    changes = [
        (time_ns / NANOSECONDS_PER_SECOND, state)
        for time_ns, state in run.state_changes()
        if begin <= time_ns / NANOSECONDS_PER_SECOND <= end and time_ns > 0
    ]
    for axis in axes:
        for time, _state in changes:
            axis.axvline(time, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.5)
    top = axes[0]
    place = blended_transform_factory(top.transData, top.transAxes)
    last = -np.inf
    for time, state in changes:
        if time - last < 0.05 * (end - begin):  # a label over another helps nobody
            continue
        last = time
        top.text(
            time,
            1.005,
            state or "state change",
            transform=place,
            ha="center",
            va="bottom",
            fontsize=7.5,
            color="#444444",
        )


def seconds(times_ns: pl.Series) -> NDArray[np.float64]:
    """Return times in seconds."""
    return times_ns.to_numpy() / NANOSECONDS_PER_SECOND


def within(frame: pl.DataFrame, run: Run, span: Span) -> pl.DataFrame:
    """Return the rows whose time_ns lies in the span."""
    import polars as pl

    begin, end = span.limits(run)
    low, high = int(begin * NANOSECONDS_PER_SECOND), int(end * NANOSECONDS_PER_SECOND)
    return frame.filter(pl.col("time_ns").is_between(low, high))


def mark_drops(
    axis: Axes,
    times: NDArray[np.float64],
    heights: NDArray[np.float64] | float,
    style: DropStyle,
    label: str,
    **options: Any,
) -> None:
    """Draw drops by one cause."""
    settings: dict[str, Any] = {
        "linestyle": "none",
        "marker": style.marker,
        "markersize": 4.8,
        "markerfacecolor": style.colour,
        # Light marks would not be seen on white without an edge.
        "markeredgecolor": "#444444" if style.colour in PALE else WHITE,
        "markeredgewidth": 0.6 if style.colour in PALE else 0.4,
        "zorder": 5,
    } | options
    settings["rasterized"] = len(times) > MANY_MARKS
    axis.plot(times, np.broadcast_to(heights, times.shape), label=label, **settings)


def time_unit(largest_ns: float) -> tuple[float, str]:
    """Return the divisor and name of the unit in which a time in nanoseconds reads best."""
    for divisor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if largest_ns >= divisor:
            return divisor, unit
    return 1.0, "ns"


def bytes_unit(largest: float) -> tuple[float, str]:
    """Return the divisor and name of the unit in which a number of bytes reads best."""
    for divisor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= divisor:
            return divisor, unit
    return 1.0, "B"


def rate_unit(largest: float) -> tuple[float, str]:
    """Return the divisor and name of the unit in which a rate in bit/s reads best."""
    for divisor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if largest >= divisor:
            return divisor, unit
    return 1.0, "bit/s"


def count(number: int, thing: str) -> str:
    """Return "1 thing" or "2,000 things"."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
