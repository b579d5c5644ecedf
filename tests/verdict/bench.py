# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The whole suite as a table: what was done to runs, what that did, and what their verdicts said.

Usage: python -m verdict.bench [--engine FILE] [--only NAME,…] [--quick] [--out FOLDER]
Run it with `tests` on PYTHONPATH; `scripts/bench --only verdict` does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

from verdict.distortion import Distortion
from verdict.distortions import ALL
from verdict.judge import Calm, Judged, calm_runs, judge
from verdict.stage import stage

RATES = (("10 packets/s", 0.1, 20), ("100 packets/s", 0.01, 150), ("1000 packets/s", 0.001, 1500))
CALM_RUNS = 50
HEADS = ["distortion", "what", "truth", "verdict", "outcome"]


def main() -> int:
    """Play everything and print it; the exit status is 1 if a verdict was wrong."""
    parser = argparse.ArgumentParser(prog="scripts/bench --only verdict", description=__doc__)
    parser.add_argument("--engine", type=Path, default=Path("target/release/airpath-engine"))
    parser.add_argument(
        "--only", help="distortions by the beginnings of their names; `calm` for calm runs"
    )
    parser.add_argument(
        "--quick", action="store_true", help="those that always get through; few calm runs"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-results"), metavar="FOLDER")
    arguments = parser.parse_args()
    wanted = tuple(arguments.only.split(",")) if arguments.only else ("",)
    chosen = [
        one for one in ALL if one.name.startswith(wanted) and (one.sure or not arguments.quick)
    ]
    if not chosen and not any("calm".startswith(one) for one in wanted):
        known = ", ".join(one.name for one in ALL)
        parser.error(f"there is no distortion {arguments.only}; there are {known} and calm")
    begun = time.monotonic()
    table = play(arguments.engine, chosen)
    rates = []
    if any("calm".startswith(one) for one in wanted):
        rates = calm_table(arguments.engine, 5 if arguments.quick else CALM_RUNS)
    arguments.out.mkdir(parents=True, exist_ok=True)
    content = {
        "format": 1,
        "kernel": platform.release(),
        "processors": os.cpu_count(),
        "seconds": round(time.monotonic() - begun, 1),
        "distortions": [as_json(one) for one in table],
        "calm": [asdict(one) for one in rates],
    }
    path = arguments.out / "verdict.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    failed = [one.distortion.name for one in table if one.failed]
    wrong = sum(one.wrong for one in rates)
    reached = sum(one.outcome in ("told", "not told") for one in table)
    told = sum(one.outcome == "told" for one in table)
    print(f"\n{told} of {reached} distortions that got through were told; {path}")
    unnamed = [one.distortion.name for one in table if one.outcome == "told" and not one.named]
    if unnamed:
        print(f"told, but by no reason that names it: {', '.join(unnamed)}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    if wrong:
        print(f"failed: {wrong} calm runs were trusted although the machine distorted them")
    return 1 if failed or wrong else 0


def play(engine: Path, chosen: list[Distortion]) -> list[Judged]:
    """Play distortions, those of an ordinary user last, and print each as it is done."""
    table = []
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|", flush=True)
    for nobody in (False, True):
        with stage(engine, nobody=nobody) as here:
            for one in chosen:
                if one.nobody == nobody:
                    table.append(judge(one, here))
                    print("| " + " | ".join(table[-1].row()) + " |", flush=True)
    return table


def calm_table(engine: Path, runs: int) -> list[Calm]:
    """Run undisturbed at some rates, and print how many were trusted."""
    rows = []
    heads = ["calm runs", "trusted", "distorted all the same", "of these trusted", "until trusted"]
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    with stage(engine) as here:
        for label, interval_s, count in RATES:
            one = calm_runs(here, label, interval_s, runs, count)
            rows.append(one)
            print(
                f"| {label} | {one.trusted} of {one.runs} | {one.distorted} | {one.wrong} "
                f"| {one.longest} at most |",
                flush=True,
            )
    return rows


def as_json(one: Judged) -> dict[str, object]:
    """Return one distortion as JSON."""
    seen = one.seen
    return {
        "name": one.distortion.name,
        "what": one.distortion.what,
        "outcome": one.outcome,
        "attempts": one.attempts,
        "seconds": round(one.seconds, 1),
        "why": one.why,
        "named": one.named,
        "truth": seen.truth.what if seen else None,
        "distorted": seen.truth.distorted if seen else None,
        "grade": seen.grade if seen else None,
        "codes": seen.codes if seen else [],
        "first_reason": seen.first_reason if seen else "",
    }


if __name__ == "__main__":
    sys.exit(main())
