# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures 1, 3, 8 and 9 of Eckhardt and Steenkiste 2002 from the runs of experiment.toml.

Prints the throughput of each cell with its range over the repetitions, as in the paper, and draws.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BURST = "network.radio.downlink.errors.burst"
EVERY = "network.radio.downlink.errors.every"
ENVIRONMENT = "network.radio.link.errors.environment"
POLICY = "network.radio.link.entity.policy"
ENVIRONMENTS = ("office", "walking", "adjacent", "table", "walls")
POLICIES = ("bold", "light", "robust", "flex")
FIGURE_1 = {
    ("figure-1", "tcp"): "Linux TCP",
    ("figure-1", "tcp-1996"): "Linux TCP without SACK, RACK and timestamps, window 16 kB",
    ("figure-1-virtual", "tcp-virtual"): "TCP of virtual time, window 16 kB",
}
"""Sets and workloads of Figure 1, and what to call them."""
LOSS_BURST = 5
"""Packets in a burst of Figure 3."""
RUNS = "runs/*/*/*/replication.json"


@dataclass(frozen=True)
class Cell:
    """Throughputs of the repetitions of one setting, in kilobytes a second; 0 where none ended."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean of the repetitions."""
        return sum(self.values) / len(self.values)

    @property
    def text(self) -> str:
        """Mean, and range of observations."""
        if max(self.values) - min(self.values) < 0.05:
            return f"{self.mean:.1f}"
        return f"{self.mean:.1f} ({min(self.values):.1f} to {max(self.values):.1f})"


Key = tuple[str, str, tuple[Any, ...]]
"""Set, workload, and values of the parameters."""


def read(*roots: Path) -> dict[Key, Cell]:
    """Return the throughput of each cell; a transfer that did not end has 0."""
    found: dict[Key, list[float]] = defaultdict(list)
    for file in sorted(file for root in roots for file in root.glob(RUNS)):
        about: dict[str, Any] = json.loads(file.read_text())
        parameters = about["parameters"]
        values = tuple(
            parameters[name] for name in (BURST, EVERY, ENVIRONMENT, POLICY) if name in parameters
        )
        goodput = about["metrics"].get("program_goodput/transfer", 0.0)
        done = about["status"] == "succeeded" or about["workload"] == "udp"
        found[about["set_name"], about["workload"], values].append(goodput / 8e3 if done else 0.0)
    return {key: Cell(tuple(values)) for key, values in found.items()}


def numbers(cells: dict[Key, Cell], of_set: str) -> list[int]:
    """Return the values of the one parameter of a set."""
    return sorted(values[0] for name, _, values in cells if name == of_set)


def lines(cells: dict[Key, Cell]) -> list[str]:
    """Return the tables."""
    found = []
    clean = cells.get(("clean", "tcp", ()))
    if clean:
        udp = cells.get(("clean", "udp", ()))
        found += [f"No errors: TCP {clean.text} kB/s, UDP {udp.text if udp else '-'} kB/s.", ""]
    bursts = sorted({values[0] for of_set, _, values in cells if of_set.startswith("figure-1")})
    if bursts:
        found += ["Figure 1, no local retransmission (kB/s):", ""]
        found += [f"| lost of 100 packets | {' | '.join(FIGURE_1.values())} |"]
        found += ["|---" * (1 + len(FIGURE_1)) + "|"]
    for number in bursts:
        here = [cells.get((*key, (number,))) for key in FIGURE_1]
        found.append(f"| {number} | {' | '.join(cell.text if cell else '-' for cell in here)} |")
    found.append("")
    if numbers(cells, "figure-3"):
        found += ["Figure 3: persistent local retransmission (kB/s):", ""]
        found += ["| lost | packet loss (%) | TCP |", "|---|---|---|"]
    for number in numbers(cells, "figure-3"):
        throughput = cells["figure-3", "tcp", (number,)].text
        found.append(
            f"| {LOSS_BURST} of {number} | {100 * LOSS_BURST / number:.0f} | {throughput} |"
        )
    found.append("")
    for workload in ("tcp", "udp"):
        table = {key[2]: cell for key, cell in cells.items() if key[:2] == ("figure-8", workload)}
        if table:
            found += [f"{workload.upper()} by environment and policy (kB/s):", ""]
            found += [f"| environment | {' | '.join(POLICIES)} |", "|---" * 5 + "|"]
        for environment in ENVIRONMENTS if table else ():
            row = [
                table[environment, policy].text if (environment, policy) in table else "-"
                for policy in POLICIES
            ]
            found.append(f"| {environment} | {' | '.join(row)} |")
        found.append("")
    competing = cells.get(("figure-6", "tcp", ()))
    if competing:
        found.append(f"Figure 6: 100 lost after every 400: TCP {competing.text} kB/s.")
    return found


def draw(cells: dict[Key, Cell], picture: Path) -> None:
    """Draw Figures 1, 3, 8 and 9."""
    from airpath.files import make_folder
    from airpath.plots.style import BLUE, GREEN, ORANGE, PURPLE, Picture, canvas

    def curve(
        axis: Axes, key: tuple[str, str], share: float | None, colour: str, mark: str
    ) -> None:
        found = sorted(values[0] for *of, values in cells if tuple(of) == key)
        here = [cells[*key, (number,)] for number in found]
        at = [share / number if share else number for number in found]
        low = [cell.mean - min(cell.values) for cell in here]
        high = [max(cell.values) - cell.mean for cell in here]
        means = [cell.mean for cell in here]
        axis.errorbar(
            at, means, yerr=[low, high], color=colour, marker=mark, markersize=4, capsize=3,
            label=FIGURE_1.get(key),
        )  # fmt: skip
        axis.set_xlabel("packets lost (%)")
        axis.set_ylabel("TCP throughput (kB/s)")
        axis.set_ylim(bottom=0)

    def bars(axis: Axes, workload: str) -> None:
        for index, (policy, colour) in enumerate(
            zip(POLICIES, (BLUE, ORANGE, GREEN, PURPLE), strict=True)
        ):
            here = [cells.get(("figure-8", workload, (name, policy))) for name in ENVIRONMENTS]
            means = [cell.mean if cell else 0 for cell in here]
            at = [place + 0.2 * (index - 1.5) for place in range(len(ENVIRONMENTS))]
            axis.bar(at, means, 0.2, color=colour, label=policy.upper())
        axis.set_xticks(range(len(ENVIRONMENTS)), ENVIRONMENTS)
        axis.margins(y=0.25)
        axis.set_ylabel(f"{workload.upper()} throughput (kB/s)")

    def against(axis: Axes) -> None:
        marks = dict(zip(POLICIES, ("o", "s", "^", "D"), strict=True))
        colours = dict(zip(POLICIES, (BLUE, ORANGE, GREEN, PURPLE), strict=True))
        most = 1.0
        for policy in POLICIES:
            udp = [cells.get(("figure-8", "udp", (name, policy))) for name in ENVIRONMENTS]
            tcp = [cells.get(("figure-8", "tcp", (name, policy))) for name in ENVIRONMENTS]
            both = [(u.mean, t.mean) for u, t in zip(udp, tcp, strict=True) if u and t]
            most = max([most, *(max(pair) for pair in both)])
            axis.plot(
                [u for u, _ in both], [t for _, t in both], marks[policy], color=colours[policy],
                markersize=5, label=policy.upper(),
            )  # fmt: skip
        axis.plot([0, most], [0, most], color="black", linewidth=0.7, linestyle="--")
        axis.set_xlabel("UDP throughput (kB/s)")
        axis.set_ylabel("TCP throughput (kB/s)")
        axis.legend()

    with canvas(6.2) as figure:
        (one, three), (eight, nine) = figure.subplots(2, 2)
        looks = zip(FIGURE_1, (BLUE, GREEN, ORANGE), ("o", "^", "s"), strict=True)
        for key, colour, mark in looks:
            curve(one, key, None, colour, mark)
        one.legend(fontsize=6)
        one.set_title("Figure 1: bursts of 1 to 8 in 100, not repaired", loc="left")
        curve(three, ("figure-3", "tcp"), 100 * LOSS_BURST, BLUE, "o")
        three.set_title("Figure 3: bursts of 5, repaired by the link", loc="left")
        bars(eight, "tcp")
        eight.legend(ncols=2)
        eight.set_title("Figure 8: environments and policies", loc="left")
        against(nine)
        nine.set_title("Figure 9: TCP against UDP", loc="left")
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def main(words: list[str] | None = None) -> None:
    """Print the tables and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folders", type=Path, nargs="*", default=[Path("results/local-error-control")]
    )
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    cells = read(*options.folders)
    print("\n".join(lines(cells)))
    if options.picture:
        draw(cells, options.picture)


if __name__ == "__main__":
    main()
