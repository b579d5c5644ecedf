# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures 11 and 12 of Eckhardt and Steenkiste 2002: what each flow gets of what it expects.

Draws a moving average of the throughput of each flow, as a share of its throughput without errors,
and above all flows that of the whole link, "Link", as a share of its capacity. Prints the means
over the sixths of the run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.run import load_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airpath.run import Run

SHARES = {"audio": 0.01, "video": 0.44, "ftp1": 0.275, "ftp2": 0.275}
"""Share of the link that each flow expects without errors."""
SECOND_NS = 1_000_000_000

Courses = dict[str, "NDArray[np.float64]"]
"""Share of the expected throughput, by flow, at each time."""


def courses(run: Run, window_s: float) -> tuple[NDArray[np.float64], Courses]:
    """Return times in seconds, and the course of each flow and of the link.

    Throughput is counted in packet slots, as in section 7 of the paper: frames that arrive, as a
    share of all frames that were sent in the window.

    Args:
        run: whose downlink has the flows, as users or as bearers of one.
        window_s: over which the average moves.

    """
    kind, way = pl.col("kind").cast(pl.String), pl.col("direction").cast(pl.String)
    frames = run.events.filter((way == "downlink") & kind.is_in(["frame_sent", "frame_lost"]))
    bearer = pl.col("bearer").cast(pl.String).fill_null("")
    flow = pl.when(bearer == "").then(pl.col("user").cast(pl.String)).otherwise(bearer)
    frames = frames.select("time_ns", flow=flow, kind=kind).sort("time_ns")
    times = np.arange(window_s, run.duration_ns / SECOND_NS, 0.1)

    def within(rows: pl.DataFrame) -> NDArray[np.float64]:
        at = rows["time_ns"].to_numpy() / SECOND_NS
        until = np.searchsorted(at, times, side="right")
        return np.asarray(until - np.searchsorted(at, times - window_s, side="right"), dtype=float)

    def arrived(rows: pl.DataFrame) -> NDArray[np.float64]:
        return within(rows.filter(kind == "frame_sent")) - within(rows.filter(kind == "frame_lost"))

    slots = within(frames.filter(kind == "frame_sent"))
    found: Courses = {"Link": arrived(frames) / slots}
    for name, share in SHARES.items():
        found[name] = arrived(frames.filter(pl.col("flow") == name)) / (share * slots)
    return times, found


def draw(times: NDArray[np.float64], found: Courses, picture: Path) -> None:
    """Draw a panel for each flow, the link above."""
    from airpath.files import make_folder
    from airpath.plots.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, Picture, canvas

    colours = dict(zip(found, (BLACK, BLUE, ORANGE, GREEN, PURPLE), strict=True))
    with canvas(6.4) as figure:
        axes = figure.subplots(len(found), 1, sharex=True)
        for axis, (flow, values) in zip(axes, found.items(), strict=True):
            axis.plot(times, 100 * values, color=colours[flow], linewidth=1)
            axis.axhline(100, color="black", linewidth=0.5, linestyle=":")
            axis.set_ylim(0, 1.1 * max(110.0, 100 * float(np.max(values))))
            axis.set_title(flow, loc="left")
        axes[-1].set_xlabel("time (s)")
        figure.supylabel("throughput (% of that without errors)")
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def main(words: list[str] | None = None) -> None:
    """Print the means and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of a run of figure11.toml or figure12.toml")
    parser.add_argument("--window", type=float, default=2.0, help="moving average, in seconds")
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    times, found = courses(load_run(options.folder), options.window)
    print(
        "| flow | first sixth | second | third | fourth | fifth | sixth | all (%) |\n"
        + "|---" * 8
        + "|"
    )
    for flow, values in found.items():
        parts = [f"{100 * float(part.mean()):.0f}" for part in np.array_split(values, 6)]
        print(f"| {flow} | {' | '.join(parts)} | {100 * float(values.mean()):.1f} |")
    if options.picture:
        draw(times, found, options.picture)


if __name__ == "__main__":
    main()
