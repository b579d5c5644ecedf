# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A table and a picture of the runs of experiment.toml: four stations, one of them slow."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from airpath.analysis.intervals import mean_with_half_width

STATIONS = ("fast-1", "fast-2", "fast-3", "slow")
ORDERS = {
    "even": "all fast",
    "first-come": "first_come",
    "round-robin": "round_robin",
    "airtime": "airtime",
}
"""Networks of the experiment without their standard, and what to call them."""
STANDARDS = {"b": "802.11b, 11 and 1 Mbit/s", "n": "802.11n, 65 and 6.5 Mbit/s, aggregates"}

PACKET_BITS = 1500 * 8
DIFS_US, SIFS_US, SLOT_US, PREAMBLE_US = 50, 10, 20, 192
MEAN_BACKOFF_US = 15.5 * SLOT_US

Rates = dict[tuple[str, str], list[dict[str, float]]]
"""Throughput in Mbit/s by station, of each run, by standard and order."""


def read(folder: Path) -> Rates:
    """Return the throughput of each station in all runs that succeeded."""
    found: Rates = defaultdict(list)
    for file in sorted(folder.glob("runs/*/*/*/replication.json")):
        run = json.loads(file.read_text())
        if run["status"] == "succeeded":
            standard, order = run["network"].split("-", 1)
            rates = {one: run["metrics"][f"user_throughput/{one}/downlink"] for one in STATIONS}
            found[standard, order].append({name: rate / 1e6 for name, rate in rates.items()})
    return found


def packet_time_us(rate_mbps: float) -> float:
    """Return the time of a packet of 802.11b and half a TCP acknowledgement, without collisions.

    The access point's backoff passes while that of the stations does.
    """

    def exchange(length: int) -> float:
        answer = PREAMBLE_US + 14 * 8 / min(rate_mbps, 2)
        return DIFS_US + PREAMBLE_US + (length + 36) * 8 / rate_mbps + SIFS_US + answer

    return MEAN_BACKOFF_US + exchange(1500) + exchange(52) / 2


def expected_mbps(order: str) -> tuple[float, float]:
    """Return what a fast and the slow station of 802.11b get, after Heusse et al. 2003."""
    fast, slow = packet_time_us(11), packet_time_us(11 if order == "even" else 1)
    if order == "airtime":
        return PACKET_BITS / (4 * fast), PACKET_BITS / (4 * slow)
    each = PACKET_BITS / (3 * fast + slow)
    return each, each


def table(found: Rates) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| standard | order | a fast station (Mbit/s) | the slow one | all "
        "| expected: fast, slow |",
        "|---|---|---|---|---|---|",
    ]
    for standard in STANDARDS:
        for order, name in ORDERS.items():
            runs = found[standard, order]
            fast = mean_with_half_width([sum(run[s] for s in STATIONS[:3]) / 3 for run in runs])
            slow = mean_with_half_width([run["slow"] for run in runs])
            whole = mean_with_half_width([sum(run.values()) for run in runs])
            cells = [f"{one.mean:.2f} ± {one.half_width:.2f}" for one in (fast, slow, whole)]
            known = ", ".join(f"{one:.2f}" for one in expected_mbps(order))
            cells.append(known if standard == "b" else "")
            lines.append(f"| 802.11{standard} | {name} | {' | '.join(cells)} |")
    return lines


def draw(found: Rates, picture: Path) -> None:
    """Draw the throughput of each station by order, a panel for each standard."""
    from airpath.files import make_folder
    from airpath.plots.style import BLACK, BLUE, VERMILLION, Picture, canvas

    with canvas(3.2) as figure:
        panels = figure.subplots(1, len(STANDARDS))
        for axes, (standard, title) in zip(panels, STANDARDS.items(), strict=True):
            for place, station in enumerate(STATIONS):
                rates = [
                    mean_with_half_width([run[station] for run in found[standard, order]])
                    for order in ORDERS
                ]
                is_slow = station == "slow"
                axes.bar(
                    [column + (place - 1.5) * 0.2 for column in range(len(ORDERS))],
                    [one.mean for one in rates],
                    0.18,
                    yerr=[one.half_width for one in rates],
                    color=VERMILLION if is_slow else BLUE,
                    hatch="//" if is_slow else None,
                    edgecolor="white",
                    error_kw={"linewidth": 0.8},
                    label=("slow station" if is_slow else "fast stations") if place > 1 else None,
                )
            if standard == "b":
                for column, order in enumerate(ORDERS):
                    fast, slow = expected_mbps(order)
                    for offset, value in ((-0.1, fast), (0.3, slow)):
                        width = 0.3 if offset < 0 else 0.1
                        span = (column + offset - width, column + offset + width)
                        label = "Heusse et al." if column == 0 and offset < 0 else None
                        axes.plot(span, (value, value), color=BLACK, linewidth=1.2, label=label)
            axes.set_xticks(range(len(ORDERS)), list(ORDERS.values()), rotation=15)
            axes.set_title(title, loc="left")
        panels[0].set_ylabel("throughput (Mbit/s)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def main(words: list[str] | None = None) -> None:
    """Print the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results/wifi-anomaly"))
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    found = read(options.folder)
    print("\n".join(table(found)))
    if options.picture:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
