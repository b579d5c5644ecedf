# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Emulators side by side: ``scripts/bench --only rivals``.

Every emulator that is installed is measured in every round, one after the other, so that what else
the machine does meets all of them. Tables have the median of the rounds and their range.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TypeVar

from rivals.emulators import Emulator, all_of
from rivals.measures import MEASURES, Measure, Options
from rivals.picture import draw, short

T = TypeVar("T")
Figures = dict[str, dict[str, dict[str, list[float]]]]
"""By name of the measure, of the figure, and of the emulator: one value for each round."""


def main() -> int:
    """Measure, print tables, write JSON and a picture; the status is 1 if a measure failed."""
    parser = argparse.ArgumentParser(prog="scripts/bench --only rivals", description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--traffic", type=Path, required=True, help="the program airpath-bench")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each measurement")
    parser.add_argument("--measures", help="names of measures, separated by commas")
    parser.add_argument("--emulators", help="names of emulators, separated by commas")
    parser.add_argument("--quick", action="store_true", help="two rounds of a second")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 2, 1.0
    if os.geteuid() != 0:
        sys.exit("scripts/bench --only rivals: needs root, as it makes networks; run it with sudo")
    if not shutil.which("iperf3"):
        sys.exit("scripts/bench --only rivals: needs iperf3: apt-get install iperf3")
    measures = _chosen(parser, arguments.measures, {one.name: one for one in MEASURES})
    known = {one.name: one for one in all_of(arguments.engine)}
    emulators = _chosen(parser, arguments.emulators, known)
    missing = {one.name: one.missing() for one in emulators}
    here = [one for one in emulators if not missing[one.name]]
    options = Options(arguments.traffic, arguments.seconds)
    figures, failures = measure(here, measures, options, arguments.rounds)
    missing = {name: why for name, why in missing.items() if why}
    print("\n".join(tables(figures, measures)))
    for name, why in missing.items():
        print(f"not measured: {name} ({why})")
    for failure in failures:
        print(f"failed: {failure}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {
        "format": 1,
        "kernel": platform.release(),
        "processors": os.cpu_count(),
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "load_at_end": os.getloadavg()[0],
        "missing": missing,
        "failures": failures,
        "figures": figures,
    }
    file = arguments.out / "rivals.json"
    file.write_text(json.dumps(content, indent=1) + "\n")
    picture = arguments.out / "rivals.svg"
    draw(figures, {one.name: one.title for one in measures}, picture)
    print(f"written: {file}, {picture}")
    return 1 if failures else 0


def _chosen(parser: argparse.ArgumentParser, names: str | None, known: dict[str, T]) -> list[T]:
    if names is None:
        return list(known.values())
    for name in names.split(","):
        if name not in known:
            parser.error(f"there is no {name!r}; there are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def measure(
    emulators: list[Emulator], measures: list[Measure], options: Options, rounds: int
) -> tuple[Figures, list[str]]:
    """Measure round by round; return the figures, and what failed and why."""
    figures: Figures = {}
    failures = []
    total, done, begun = rounds * len(measures) * len(emulators), 0, time.monotonic()
    for _ in range(rounds):
        for one in measures:
            for emulator in emulators:
                done += 1
                if not emulator.only(one.setting):
                    continue
                spent = time.monotonic() - begun
                print(f"\r{done}/{total} {spent:.0f} s: {one.name}, {emulator.name}        ",
                      end="", file=sys.stderr, flush=True)  # fmt: skip
                try:
                    told = _once(emulator, one, options)
                except (RuntimeError, subprocess.SubprocessError, OSError, KeyError) as error:
                    failures.append(f"{one.name}, {emulator.name}: {error}")
                    continue
                for name, value in told.items():
                    by_emulator = figures.setdefault(one.name, {}).setdefault(name, {})
                    by_emulator.setdefault(emulator.name, []).append(value)
    print("\r" + " " * 72 + "\r", end="", file=sys.stderr)
    return figures, failures


def _once(emulator: Emulator, one: Measure, options: Options) -> dict[str, float]:
    # Mahimahi runs as nobody, who may not enter a TMPDIR of root's own.
    with tempfile.TemporaryDirectory(prefix="rivals-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with emulator.between(one.setting, Path(folder)) as ends:
            return one.run(ends, Path(folder), options)


def tables(figures: Figures, measures: list[Measure]) -> list[str]:
    """Return a table in Markdown: a row for each figure, a column for each emulator."""
    names = {name for by in figures.values() for one in by.values() for name in one}
    columns = [one for one in _order(figures) if one in names]
    lines = [
        "| measured | figure | " + " | ".join(columns) + " |",
        "|---|---|" + "---|" * len(columns),
    ]
    for measured in measures:
        for figure, by_emulator in figures.get(measured.name, {}).items():
            cells = [_cell(by_emulator.get(name, [])) for name in columns]
            lines.append(f"| {measured.title} | {figure} | {' | '.join(cells)} |")
    return lines


def _order(figures: Figures) -> list[str]:
    seen: dict[str, None] = {}
    for by_figure in figures.values():
        for by_emulator in by_figure.values():
            seen.update(dict.fromkeys(by_emulator))
    return list(seen)


def _cell(values: list[float]) -> str:
    if not values:
        return "-"
    if len(set(values)) == 1:
        return short(values[0])
    return f"{short(statistics.median(values))} ({short(min(values))} to {short(max(values))})"


if __name__ == "__main__":
    sys.exit(main())
