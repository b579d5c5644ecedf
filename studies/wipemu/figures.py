# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures 4 to 7 of Alfredsson et al. 2006 from the runs of experiment.toml.

Prints the mean time of the download and the share of segments that TCP sent again, each with its
95 % interval, over the number of link retransmissions; draws throughput and TCP retransmissions.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.analysis.intervals import mean_with_half_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

BYTES = 3_000_000
SEGMENT_BYTES = 1460
PARAMETER = "network.radio.downlink.entity.retransmissions"
RUNS = "runs/*/*/*/replication.json"
SETS = {"model": "TCP of virtual time", "tcp": "Linux TCP in warp"}


@dataclass(frozen=True)
class Download:
    """One download."""

    elapsed_s: float
    repeated_segments: float

    @property
    def throughput_kbps(self) -> float:
        """Throughput over the whole download."""
        return 8 * BYTES / self.elapsed_s / 1e3

    @property
    def repeated_percent(self) -> float:
        """Segments that TCP sent again, of all that it sent."""
        return 100 * self.repeated_segments / (BYTES / SEGMENT_BYTES + self.repeated_segments)


Cells = dict[tuple[str, str, int], list[Download]]
"""By set, network and number of link retransmissions."""


def read(*roots: Path) -> Cells:
    """Return the downloads that succeeded, of one or more folders of results."""
    found: Cells = defaultdict(list)
    for file in sorted(file for root in roots for file in root.glob(RUNS)):
        about: dict[str, Any] = json.loads(file.read_text())
        if about["status"] != "succeeded":
            continue
        # The program's figures, or those of the workload of virtual time.
        names = (key.partition("/") for key in about["metrics"])
        told = {
            metric: about["metrics"][f"{metric}/{of}"]
            for metric, _, of in names
            if of in ("download", "tcp-1")
        }
        place = about["set_name"], about["network"], about["parameters"][PARAMETER]
        found[place].append(Download(told["program_elapsed"], told["program_retransmissions"]))
    return found


def table(cells: Cells, of_set: str, value: Callable[[Download], float], digits: int) -> list[str]:
    """Return the lines of a table of means with intervals: networks over retransmissions."""
    numbers = sorted({number for name, _, number in cells if name == of_set})
    networks = list(dict.fromkeys(network for name, network, _ in cells if name == of_set))
    lines = [f"| {SETS[of_set]} | {' | '.join(map(str, numbers))} |"]
    lines.append("|---" * (1 + len(numbers)) + "|")
    for network in networks:
        words = []
        for number in numbers:
            here = [value(one) for one in cells.get((of_set, network, number), [])]
            mean = mean_with_half_width(here) if here else None
            spread = f" ± {mean.half_width:.{digits}f}" if mean and mean.count > 1 else ""
            words.append(f"{mean.mean:.{digits}f}{spread}" if mean else "-")
        lines.append(f"| `{network}` | {' | '.join(words)} |")
    counts = [len(runs) for (name, _, _), runs in cells.items() if name == of_set]
    return [*lines, "", f"Replications: {min(counts)} to {max(counts)} of each cell."]


PANELS = (
    ("Figure 4: fixed modulation", ("bpsk", "qam4", "qam8"), False),
    ("Figure 5: adaptive modulation", ("adaptive", "adaptive-error", "qam4"), False),
    ("Figure 6: retransmissions by TCP", ("adaptive", "adaptive-error", "qam4"), True),
    ("Figure 7: best of 25 resources", ("best", "best-error", "adaptive"), False),
)
"""Title, networks, and whether the panel is of retransmissions."""


def draw(cells: Cells, picture: Path) -> None:
    """Draw the four figures: Linux with marks and bars, the TCP of virtual time dashed."""
    from airpath.files import make_folder
    from airpath.plots.style import (
        BLACK,
        BLUE,
        GREEN,
        ORANGE,
        PURPLE,
        SKY,
        VERMILLION,
        Picture,
        canvas,
    )

    looks = {
        "bpsk": (GREEN, "^"), "qam4": (BLACK, "s"), "qam8": (PURPLE, "v"),
        "adaptive": (BLUE, "o"), "adaptive-error": (VERMILLION, "D"),
        "best": (SKY, "o"), "best-error": (ORANGE, "D"),
    }  # fmt: skip

    def line(axis: Axes, of_set: str, network: str, *, repeated: bool) -> None:
        numbers = sorted(n for name, of, n in cells if (name, of) == (of_set, network))
        runs = [cells[of_set, network, number] for number in numbers]
        values = [
            [one.repeated_percent if repeated else one.throughput_kbps for one in here]
            for here in runs
        ]
        means = [mean_with_half_width(here) for here in values]
        heights = [one.mean for one in means]
        colour, mark = looks[network]
        if of_set == "model":
            axis.plot(numbers, heights, color=colour, linestyle="--", linewidth=0.9)
            return
        bars = [one.half_width if one.count > 1 else 0 for one in means]
        axis.errorbar(
            numbers, heights, yerr=bars, color=colour, marker=mark, markersize=4, capsize=2,
            linewidth=1.2, label=network,
        )  # fmt: skip

    with canvas(6.4) as figure:
        axes = figure.subplots(2, 2, sharex=True).flat
        for axis, (title, networks, repeated) in zip(axes, PANELS, strict=True):
            for network in networks:
                for of_set in SETS:
                    line(axis, of_set, network, repeated=repeated)
            axis.set_title(title, loc="left")
            unit = "segments sent again (%)" if repeated else "throughput (kbit/s)"
            axis.set_ylabel(f"TCP {unit}")
            axis.set_ylim(bottom=0)
            axis.legend()
        for axis in figure.get_axes()[2:]:
            axis.set_xlabel("greatest number of link retransmissions")
        figure.suptitle("Lines with marks: Linux TCP in warp. Dashed: the TCP of virtual time.")
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def main(words: list[str] | None = None) -> None:
    """Print the tables and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*", default=[Path("results/wipemu")])
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    cells = read(*options.folders)
    for of_set in SETS:
        if any(name == of_set for name, _, _ in cells):
            print("Time of the download in seconds:\n")
            print("\n".join(table(cells, of_set, lambda one: one.elapsed_s, 0)))
            print("\nSegments that TCP sent again, in percent:\n")
            print("\n".join(table(cells, of_set, lambda one: one.repeated_percent, 2)), "\n")
    if options.picture:
        draw(cells, options.picture)


if __name__ == "__main__":
    main()
