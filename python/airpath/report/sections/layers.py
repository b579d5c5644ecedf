# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The layers of links with a protocol of their own, which the reader can zoom and move in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.colors import to_hex

from airpath.facts import FILES
from airpath.layers import largest_flows, layers_of
from airpath.plots import style
from airpath.report import choice
from airpath.report.opener import Opener
from airpath.report.page import Section, data, fill
from airpath.run import RunError, contradictions_named

if TYPE_CHECKING:
    from pathlib import Path

    from markupsafe import Markup

    from airpath.layers import Layers
    from airpath.report.material import Material

MOST_RUNS = 16
"""Runs with layers on the page, unless ``--pictures`` asks for more or an experiment names them."""

MOST_BINS = 1_500
"""Bins of time of a curve: some one a pixel. Of a bin at most four points are kept."""

MOST_BINS_ON_PAGE = 12_000
"""Bins of a curve, over all pictures of the page together: so many for each of its curves."""

LEAST_BINS = 200

MOST_PICTURES = 6
"""Pictures of a run: hops and directions."""

MOST_FLOWS = 4
"""Flows at the sockets with marks of their own, as in the picture."""

MOST_RESETS = 1_000


@dataclass
class Diagram:
    """One picture on the page."""

    identity: str
    label: str
    content: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def data(self) -> Markup:
        """Its content for the script."""
        return data(self.content)


@dataclass(frozen=True)
class Task:
    """Layers of one run."""

    directory: Path
    number: int
    duration_ns: int
    most_bins: int
    """Bins of a curve, over all pictures of the run together."""
    opener: Opener = field(default_factory=Opener)


@dataclass
class Drawn:
    """The layers of one run."""

    diagrams: list[Diagram]
    total: int
    """Its hops and directions; the first are drawn."""
    notes: list[str]


def build(material: Material) -> Section | None:
    """Return the layers of runs with a link log: those an experiment names, or some of each set."""
    able = [
        entry for entry in material.with_diagrams if (entry.run.directory / FILES["link"]).exists()
    ]
    most = max(MOST_RUNS, material.most_pictures)
    named = material.presentation.captions
    chosen = able if named else choice.first_of_sets(able, most)
    most_bins = MOST_BINS_ON_PAGE // max(len(chosen), 1)
    tasks = [
        Task(entry.run.directory, entry.number, entry.facts.duration_ns, most_bins, entry.opener)
        for entry in chosen
    ]

    def tell(done: int, total: int) -> None:
        material.progress("layers", done, total)

    groups = []
    for entry, drawn in zip(chosen, material.crew.each(draw_run, tasks, tell), strict=True):
        entry.run.notes += [note for note in drawn.notes if note not in entry.run.notes]
        if drawn.diagrams:
            groups.append((entry, drawn.diagrams, drawn.total))
    if not groups:
        return None
    left_out = len(able) - len(chosen)
    return Section("layers", "Layers of links", fill("layers", groups=groups, left_out=left_out))


def draw_run(task: Task) -> Drawn:
    """Return the layers of a run."""
    run = task.opener.open(task.directory)
    try:
        with contradictions_named(run.directory):
            every = layers_of(run)
            shown = every[:MOST_PICTURES]
            share = task.most_bins // max(len(shown), 1)
            bins = min(max(share, LEAST_BINS), MOST_BINS)
            diagrams = [
                diagram(layers, f"layers-{task.number}-{number}", task.duration_ns, bins)
                for number, layers in enumerate(shown, 1)
            ]
    except RunError as error:
        return Drawn([], 0, [*run.notes, str(error)])
    return Drawn(diagrams, len(every), run.notes)


def diagram(layers: Layers, identity: str, duration_ns: int, bins: int) -> Diagram:
    """Return the layers of one direction as the script draws them, with so many bins a curve."""
    notes: list[str] = []
    panels = [
        panel | {"series": kept}
        for panel in _panels(layers, notes, bins)
        if (kept := [series for series in panel["series"] if series["count"]])
    ]
    resets = layers.frames.sent.filter(
        pl.col("event").cast(pl.String).is_in(["reset", "disconnected"])
    )
    content = {
        "end": duration_ns // 1000,
        "panels": panels,
        "resets": (resets["time_ns"] // 1000).head(MOST_RESETS).to_list(),
        "states": [
            [time_ns // 1000, state] for time_ns, state in layers.run.state_changes() if time_ns > 0
        ],
    }
    return Diagram(identity, f"{layers.hop}, {layers.direction}", content, notes)


def _panels(layers: Layers, notes: list[str], bins: int) -> list[dict[str, Any]]:
    """Return the panels from above; those without data have empty series."""

    def series(
        name: str, rows: pl.DataFrame, value: pl.Expr, colour: str, shape: str = "", size: float = 2
    ) -> dict[str, Any]:
        points = rows.select("time_ns", value=value).drop_nulls()
        return {"name": name, "colour": to_hex(colour), "shape": shape, "size": size} | binned(
            points, name, notes, is_line=not shape, bins=bins
        )

    sent, arrived = layers.frames.sent, layers.frames.arrived
    numbered = sent.drop_nulls("number")
    number = pl.col("number").cast(pl.Int64)

    def frames(rows: pl.DataFrame, event: str) -> pl.DataFrame:
        return rows.filter((pl.col("event") == event) & pl.col("number").is_not_null())

    sockets, flows = layers.sockets, largest_flows(layers.sockets, MOST_FLOWS)
    at_sockets = [
        series(
            f"{flow.split()[0] if len(flows) == 1 else flow} {event}",
            sockets.filter((pl.col("flow") == flow) & (pl.col("event") == event)),
            pl.col("last") / 1000,
            colour,
            shape,
            size,
        )
        for flow, shape in zip(flows, ("circle", "cross", "plus", "triangle_down"), strict=False)
        for event, colour, size in (("sent", style.GREY, 2), ("received", style.GREEN, 1.2))
    ]
    tcp = [
        series("cwnd", layers.tcp, pl.col("cwnd"), style.BLUE),
        series("ssthresh", layers.tcp, pl.col("ssthresh"), style.ORANGE),
    ]
    delay = pl.col("delay_ns") / 1e9
    packets = [series("packets", layers.delays, delay, style.GREEN, "circle", 1.5)]
    packets += [
        series(
            f"dropped, {mark.text}",
            layers.drops.filter(pl.col("cause") == cause),
            pl.lit(0.0),
            mark.line_colour,
            mark.shape,
            4,
        )
        for cause, mark in style.drop_styles(layers.drops["cause"]).items()
    ]
    of_link = [
        series("frames sent", frames(numbered, "sent"), number, style.GREY, "circle", 1.2),
        series(
            "frames repeated", frames(numbered, "repeated"), number, style.ORANGE, "triangle_up", 3
        ),
        series("frames damaged", frames(arrived, "damaged"), number, style.VERMILLION, "cross", 3),
        series("V(A), acknowledged", sent, pl.col("acknowledged"), style.BLUE),
        series("V(R), delivered", arrived, pl.col("delivered"), style.GREEN),
    ]
    waiting = [
        series("frames not acknowledged", sent, pl.col("outstanding"), style.BLUE),
        series("packets queued", layers.queue, pl.col("queue_packets"), style.ORANGE),
    ]
    label = "Frames, N(S)" if layers.frames.numbered else "Frames, counted"
    return [
        {"label": "Sockets (kB)", "ratio": 3, "zero": False, "resets": False, "series": at_sockets},
        {"label": "TCP (segments)", "ratio": 2.5, "zero": True, "resets": False, "series": tcp},
        {"label": "Delay (s)", "ratio": 2.5, "zero": True, "resets": False, "series": packets},
        {"label": label, "ratio": 5, "zero": False, "resets": True, "series": of_link},
        {"label": "Waiting", "ratio": 2.5, "zero": True, "resets": False, "series": waiting},
    ]


def binned(
    points: pl.DataFrame, name: str, notes: list[str], *, is_line: bool, bins: int = MOST_BINS
) -> dict[str, Any]:
    """Return ``time`` (steps, in µs), ``value`` and the ``count`` of all points.

    Of many points only the first, the last, the least and the greatest of each bin of time are
    kept, so that no extreme is lost, and a line has its shape.
    """
    count = points.height
    if is_line:
        changed = pl.col("value").ne_missing(pl.col("value").shift(1))
        points = points.filter(changed | (pl.int_range(pl.len()) == pl.len() - 1))
    if points.height > 4 * bins:
        points, width_ns = _extremes(points, bins)
        notes.append(
            f"{name}: of {count:,} points the first, the last, the least and the greatest within "
            f"{width_ns / 1e6:.3g} ms are drawn"
        )
    times = (points["time_ns"] // 1000).to_list()
    values = points["value"].cast(pl.Float64).to_list()
    return {
        "count": count,
        "time": np.diff(times, prepend=0).tolist() if times else [],
        "value": [int(value) if value == int(value) else round(value, 6) for value in values],
    }


def _extremes(points: pl.DataFrame, bins: int) -> tuple[pl.DataFrame, int]:
    begin, end = int(points["time_ns"][0]), int(points["time_ns"][-1])
    width = (end - begin) // bins + 1
    row, value = pl.col("row"), pl.col("value")
    kept = (
        points.with_row_index("row")
        .group_by((pl.col("time_ns") - begin) // width, maintain_order=True)
        .agg(
            pl.concat_list(
                row.first(), row.gather(value.arg_min()).first(),
                row.gather(value.arg_max()).first(), row.last(),
            ).alias("rows")
        )["rows"].explode().unique().sort()
    )  # fmt: skip
    return points[kept.cast(pl.Int64).to_list()], width
