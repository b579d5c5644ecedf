# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Section of a failed test about its runs: verdict, drops, folder, and how to repeat each."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from airpath.extras import missing
from airpath.facts import DIRECTIONS, TRUSTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.testing.links import Outcome


def told(outcomes: Sequence[Outcome]) -> str:
    """Return the section of a failed test."""
    return "\n\n".join(_told(number, one) for number, one in enumerate(outcomes, 1))


def _told(number: int, outcome: Outcome) -> str:
    manifest = outcome.manifest
    scenario = manifest.get("scenario") or {}
    name = scenario.get("name") if isinstance(scenario, dict) else None
    how = f"{manifest.get('clock', 'live')}, seed {manifest.get('seed')}"
    ended = "by its time limit " if outcome.timed_out else ""
    verdict = outcome.verdict
    if verdict != TRUSTED and outcome.reasons:
        verdict += f": {'; '.join(outcome.reasons)}"
    lines = [
        f"run {number}   {name or 'a link of options'} ({how})",
        f"ended   {ended}with exit status {outcome.status} after {outcome.duration_s:.3f} s",
        f"verdict {verdict}",
        f"dropped {_drops(outcome)}",
        f"files   {outcome.folder}",
        f"repeat  {shlex.join(_repeated(outcome.command))}",
    ]
    printed = outcome.told_output()
    return "\n".join([*lines, printed] if printed else lines)


def _drops(outcome: Outcome) -> str:
    drops = outcome.drops
    return ", ".join(
        f"{way} {' '.join(f'{count} {cause}' for cause, count in causes.items()) or 'none'}"
        for way in DIRECTIONS
        for causes in [drops.get(way, {})]
    )


def _repeated(command: Sequence[str]) -> list[str]:
    """Return a command line without the files of the run, so that it can be given anew."""
    words = list(command)
    at = words.index("--out")
    words = words[:at] + words[at + 2 :]
    words.remove("--quiet")
    if "--server" in words:
        at = words.index("--server") + 1
        words[at] = words[at].partition("2>&1; ")[2]
    return words


def write_report(outcomes: Sequence[Outcome]) -> str:
    """Write the report page of each run beside its files; return a line for each."""
    if lacking := missing("report"):
        names = ", ".join(package.name for package in lacking)
        return f"no report: {names} not installed (pip install 'airpath[report]')"
    lines = []
    for outcome in outcomes:
        page = outcome.folder.parent / "report.html"
        start = "import sys; from airpath.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", start, "report", str(outcome.folder), "--out", str(page)]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        said = (done.stderr.strip().splitlines() or ["airpath report said nothing"])[-1]
        lines.append(f"report  {page}" if page.exists() else f"no report: {said}")
    return "\n".join(lines)
