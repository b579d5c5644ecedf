# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Table of the runs of users.toml: how many users of a cell a machine serves live.

Verdicts, the lateness of packets and processor time come from ``run.json`` of each run. Values are
medians over the replications, the greatest lateness is that of all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Figure = tuple["Callable[[Any], float]", "Callable[[list[float]], float]", int]
"""Value of a run's results, what is taken of several, and decimals."""

FIGURES: dict[str, Figure] = {
    "packets/s": (
        lambda run: run["timings"]["lateness"]["count"] / run["duration_ns"] * 1e9,
        statistics.median,
        0,
    ),
    "late packets (%)": (
        lambda run: (
            100 * run["timings"]["late_emissions"] / max(1, run["timings"]["lateness"]["count"])
        ),
        statistics.median,
        2,
    ),
    "lateness p50 (µs)": (lambda run: _lateness_us(run, "p50_ns"), statistics.median, 0),
    "p99": (lambda run: _lateness_us(run, "p99_ns"), statistics.median, 0),
    "p99.9": (lambda run: _lateness_us(run, "p999_ns"), statistics.median, 0),
    "max": (lambda run: _lateness_us(run, "max_ns"), max, 0),
    "loop (% of a core)": (
        lambda run: 100 * run["loop"]["processor_ns"] / run["duration_ns"],
        statistics.median,
        1,
    ),
    "of it busy waiting": (
        lambda run: 100 * run["loop"]["spun_ns"] / run["duration_ns"],
        statistics.median,
        1,
    ),
    "commands (% of a core)": (
        lambda run: (
            100
            * sum(run["ends"]["waits"][end]["processor_ns"] for end in ("client", "server"))
            / run["duration_ns"]
        ),
        statistics.median,
        1,
    ),
    "load of the machine": (
        lambda run: run["machine"]["load_hundredths"] / 100,
        statistics.median,
        1,
    ),
}


def _lateness_us(run: Any, key: str) -> float:
    return float(run["timings"]["lateness"][key]) / 1e3


def read(root: Path) -> dict[int, list[Any]]:
    """Return the results of all runs, by number of users."""
    found: dict[int, list[Any]] = defaultdict(list)
    for file in root.glob("runs/*/*/*/run.json"):
        about = json.loads((file.parent / "replication.json").read_text())
        found[int(about["network"].rpartition("-")[2])].append(
            json.loads(file.read_text())["results"]
        )
    return dict(sorted(found.items()))


def table(found: dict[int, list[Any]]) -> list[str]:
    """Return the lines of the table."""
    names = ["users", "verdicts", *FIGURES]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for users, runs in found.items():
        grades = Counter(run["verdict"]["grade"] for run in runs)
        words = [str(users), ", ".join(f"{count} {grade}" for grade, count in grades.items())]
        words += [
            f"{combine([value(run) for run in runs]):.{digits}f}"
            for value, combine, digits in FIGURES.values()
        ]
        lines.append(f"| {' | '.join(words)} |")
    return lines


def main(words: list[str] | None = None) -> None:
    """Print the table, and how often each reason was given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results/cell-users"))
    found = read(parser.parse_args(words).folder)
    print("\n".join(table(found)), "\n")
    for users, runs in found.items():
        reasons = Counter(
            reason["code"] for run in runs for reason in run["verdict"].get("reasons", [])
        )
        told = ", ".join(f"{code} ({count})" for code, count in reasons.items())
        print(f"{users} users: {told or 'nothing'}")


if __name__ == "__main__":
    main()
