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


def courses(run: Run, capacity_bps: float, window_s: float) -> tuple[NDArray[np.float64], Courses]:
    """Return times in seconds, and the course of each flow and of the link.

    Args:
        run: whose downlink has the flows, as users or as bearers of one.
        capacity_bps: of the link without errors.
        window_s: over which the average moves.

    """
    rows = run.path_events("delivered").filter(pl.col("direction").cast(pl.String) == "downlink")
    bearers = run.events.filter(pl.col("kind").cast(pl.String) == "dequeued").select(
        "pdu", named=pl.col("bearer").cast(pl.String)
    )
    rows = rows.join(bearers.unique("pdu"), on="pdu", how="left")
    name = pl.when(pl.col("named").fill_null("") == "").then(pl.col("user").cast(pl.String))
    rows = rows.with_columns(flow=name.otherwise(pl.col("named")))
    end_s = run.duration_ns / SECOND_NS
    times = np.arange(window_s, end_s, 0.1)

    def rate(bits: pl.DataFrame) -> NDArray[np.float64]:
        at = bits["time_ns"].to_numpy() / SECOND_NS
        total = np.concatenate([[0.0], np.cumsum(bits["bits"].to_numpy().astype(float))])
        upto = total[np.searchsorted(at, times, side="right")]
        before = total[np.searchsorted(at, times - window_s, side="right")]
        return np.asarray((upto - before) / window_s)

    rows = rows.sort("time_ns")
    found: Courses = {"Link": rate(rows) / capacity_bps}
    for flow, share in SHARES.items():
        found[flow] = rate(rows.filter(pl.col("flow") == flow)) / (share * capacity_bps)
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
    parser.add_argument("--capacity", type=float, default=800.0, help="of the link in kbit/s")
    parser.add_argument("--window", type=float, default=2.0, help="moving average, in seconds")
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    times, found = courses(load_run(options.folder), 1e3 * options.capacity, options.window)
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
