# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figure 5 of Eckhardt and Steenkiste 2002 from the runs of surface.toml.

Compares the measured loss of packets with p^(n+1) for independent errors, and with the Markov chain
of the channel and the tries for bursts. Prints both, and draws the surfaces.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRIES = "network.radio.link.entity.retransmissions"
PROBABILITY = "network.radio.downlink.errors.probability"
GOOD_TO_BAD = "network.radio.downlink.errors.good_to_bad"
BAD_TO_GOOD = 0.2
PACKETS = 4000
"""Packets of each run."""
METRIC = "loss_ratio/downlink"
RUNS = "runs/*/*/*/replication.json"

Surface = dict[tuple[float, int], list[float]]
"""Loss of packets in each run, by loss of the link and number of retransmissions."""


def independent(loss: float, retransmissions: int) -> float:
    """Return the loss of packets where errors are independent."""
    return float(loss ** (retransmissions + 1))


def in_bursts(loss: float, retransmissions: int) -> float:
    """Return the loss of packets where all frames in the bad state of the channel are lost.

    The chain has the state of the channel and the number of the try. A packet is lost if its last
    try is; another packet begins after a success, or after its last try.
    """
    good_to_bad = BAD_TO_GOOD * loss / (1 - loss)
    step = np.array([[1 - good_to_bad, good_to_bad], [BAD_TO_GOOD, 1 - BAD_TO_GOOD]])
    tries = retransmissions + 1
    # State of the channel in the first try of a packet, from one packet to the next: it is good
    # after a success, and one step behind the last try otherwise.
    after_success = step[0]
    after_loss = step[1]
    stays = step[1, 1] ** (tries - 1)
    first = np.array([[*after_success], [*(stays * after_loss + (1 - stays) * after_success)]])
    bad = first[0, 1] / (first[0, 1] + first[1, 0])
    return float(bad * stays)


def read(root: Path) -> dict[str, Surface]:
    """Return the surface of each set."""
    found: dict[str, Surface] = defaultdict(lambda: defaultdict(list))
    for file in sorted(root.glob(RUNS)):
        about: dict[str, Any] = json.loads(file.read_text())
        parameters = about["parameters"]
        if about["set_name"] == "independent":
            loss = parameters[PROBABILITY]
        else:
            loss = parameters[GOOD_TO_BAD] / (parameters[GOOD_TO_BAD] + BAD_TO_GOOD)
        found[about["set_name"]][loss, parameters[TRIES]].append(about["metrics"][METRIC])
    return found


def lines(of_set: str, surface: Surface) -> list[str]:
    """Return the table of a set: measured and computed loss in percent."""
    theory = independent if of_set == "independent" else in_bursts
    numbers = sorted({number for _, number in surface})
    found = [f"| loss of the link, {of_set} (%) | {' | '.join(map(str, numbers))} |"]
    found.append("|---" * (1 + len(numbers)) + "|")
    for loss in sorted({loss for loss, _ in surface}):
        words = []
        for number in numbers:
            runs = surface.get((loss, number), [])
            if not runs:
                words.append("-")
                continue
            words.append(f"{100 * sum(runs) / len(runs):.2f} ({100 * theory(loss, number):.2f})")
        found.append(f"| {100 * loss:.0f} | {' | '.join(words)} |")
    return found


def furthest(of_set: str, surface: Surface) -> float:
    """Return the greatest distance from the computed loss, in standard errors.

    They are binomial for independent errors, and those of the mean of the runs for bursts. Cells in
    which fewer than 20 losses are expected are left out.
    """
    theory = independent if of_set == "independent" else in_bursts
    worst = 0.0
    for (loss, number), runs in surface.items():
        expected = theory(loss, number)
        packets = PACKETS * len(runs)
        if expected * packets < 20 or len(runs) < 2:
            continue
        spread = math.sqrt(expected * (1 - expected) / packets)
        if of_set != "independent":
            spread = float(np.std(runs, ddof=1)) / math.sqrt(len(runs))
        worst = max(worst, abs(sum(runs) / len(runs) - expected) / spread)
    return worst


def draw(surfaces: dict[str, Surface], picture: Path) -> None:
    """Draw end-to-end loss over the loss of the link, a line for each number of retransmissions."""
    from airpath.files import make_folder
    from airpath.plots.style import Picture, canvas

    def panel(axis: Axes, of_set: str, surface: Surface) -> None:
        theory = independent if of_set == "independent" else in_bursts
        numbers = sorted({number for _, number in surface})
        shades = np.linspace(0.15, 0.85, len(numbers))
        at = np.linspace(0.01, 0.9 if of_set == "independent" else 0.5, 60)
        for number, shade in zip(numbers, shades, strict=True):
            colour = (0, 0.45 * shade, shade)
            axis.plot(
                100 * at,
                [100 * theory(float(loss), number) for loss in at],
                color=colour,
                linewidth=0.9,
            )
            losses = sorted(loss for loss, of in surface if of == number)
            means = [
                100 * sum(surface[loss, number]) / len(surface[loss, number]) for loss in losses
            ]
            axis.plot(
                [100 * loss for loss in losses],
                means,
                "o",
                color=colour,
                markersize=3.5,
                label=str(number),
            )
        axis.set_title(
            "Independent errors" if of_set == "independent" else "Bursts of five", loc="left"
        )
        axis.set_xlabel("frames lost on the link (%)")
        axis.set_ylabel("packets lost (%)")
        axis.axhline(1, color="black", linewidth=0.6, linestyle=":")
        axis.legend(title="retransmissions", ncols=2)

    with canvas(3.2) as figure:
        axes = figure.subplots(1, len(surfaces), squeeze=False)[0]
        for axis, (of_set, surface) in zip(
            axes, sorted(surfaces.items(), reverse=True), strict=True
        ):
            panel(axis, of_set, surface)
        figure.suptitle("Marks: measured. Lines: computed. Dotted: 1 %.")
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def main(words: list[str] | None = None) -> None:
    """Print the tables and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path("results/local-error-control-surface")
    parser.add_argument("folder", type=Path, nargs="?", default=default)
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    surfaces = read(options.folder)
    print("Loss of packets in percent, measured (computed), by number of retransmissions:\n")
    for of_set, surface in sorted(surfaces.items(), reverse=True):
        print("\n".join(lines(of_set, surface)))
        print(f"\nGreatest distance: {furthest(of_set, surface):.1f} standard errors.\n")
    if options.picture:
        draw(surfaces, options.picture)


if __name__ == "__main__":
    main()
