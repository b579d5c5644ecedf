# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tables 2 and 3 of Eckhardt and Steenkiste 2002 from the runs of scheduling.toml.

Prints the rate of each flow with its 95 % interval, and what the paper gives. Throughput is the
sum, and efficiency its share of the 800 kbit/s that the medium carries without errors.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from airpath.analysis.intervals import mean_with_half_width

CAPACITY_KBPS = 800
PAPER = {
    "table2-effort": {"audio": 4, "video": 175, "ftp1": 110, "ftp2": 110},
    "table2-priority": {"audio": 8, "video": 350, "ftp1": 21, "ftp2": 21},
    "table2-elf": {"audio": 8, "video": 350, "ftp1": 21, "ftp2": 21},
    "table3-effort": {"video1": 100, "ftp1": 300, "video2": 50, "ftp2": 150},
    "table3-priority": {"video1": 100, "ftp1": 250, "video2": 100, "ftp2": 125},
    "table3-elf": {"video1": 100, "ftp1": 167, "video2": 100, "ftp2": 167},
}
"""Rates of flows in kbit/s as the paper gives them, by network of the experiment."""
ERRORS = {"fixed": "every second packet", "random-pervasive": "random", "random-by-place": "random"}
RUNS = "runs/*/*/*/replication.json"
TOTALS = {"table3-effort": 600, "table3-priority": 575, "table3-elf": 534}

Rates = dict[str, list[float]]
"""Rates in kbit/s by flow, one for each run."""


def read(root: Path) -> dict[tuple[str, str], Rates]:
    """Return the rates of each network and kind of errors."""
    found: dict[tuple[str, str], Rates] = defaultdict(lambda: defaultdict(list))
    for file in sorted(root.glob(RUNS)):
        about: dict[str, Any] = json.loads(file.read_text())
        results = json.loads((file.parent / "run.json").read_text())["results"]
        rates = found[about["network"], ERRORS[about["set_name"]]]
        for row in results["counters"]:
            if row["hop"] == "path" and row["direction"] == "downlink":
                bits = row["kinds"].get("delivered", {"bits": 0})["bits"]
                rates[row["user"]].append(1e6 * bits / results["duration_ns"])
    return found


def written(values: list[float]) -> str:
    """Return a mean with its interval."""
    mean = mean_with_half_width(values)
    return f"{mean.mean:.1f} ± {mean.half_width:.1f}" if mean.count > 1 else f"{mean.mean:.1f}"


def lines(cells: dict[tuple[str, str], Rates]) -> list[str]:
    """Return a table for each of the paper's."""
    found = []
    for table in ("table2", "table3"):
        flows = list(PAPER[f"{table}-effort"])
        found.append(f"| scheduler | errors | {' | '.join(flows)} | throughput | efficiency (%) |")
        found.append("|---" * (len(flows) + 4) + "|")
        for network, paper in PAPER.items():
            if not network.startswith(table):
                continue
            name = network.partition("-")[2]
            total = TOTALS.get(network, sum(paper.values()))
            words = " | ".join(str(paper[flow]) for flow in flows)
            found.append(
                f"| {name} | paper | {words} | {total} | {100 * total / CAPACITY_KBPS:.0f} |"
            )
            for (of, errors), rates in cells.items():
                if of != network:
                    continue
                sums = [sum(run) for run in zip(*(rates[flow] for flow in flows), strict=True)]
                share = [100 * one / CAPACITY_KBPS for one in sums]
                words = " | ".join(written(rates[flow]) for flow in flows)
                found.append(
                    f"| {name} | {errors} | {words} | {written(sums)} | {written(share)} |"
                )
        found.append("")
    return found


def main(words: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path("results/local-error-control-scheduling")
    parser.add_argument("folder", type=Path, nargs="?", default=default)
    options = parser.parse_args(words)
    print("\n".join(lines(read(options.folder))))


if __name__ == "__main__":
    main()
