# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Command `airpath report`: reads, writes the page whole or not at all, says what went wrong."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.files import check_place, make_folder, write_whole
from airpath.report import write_report
from airpath.report.files import write_figures, write_tables, write_xplot
from airpath.report.material import load_material
from airpath.run import RunError
from airpath.status import DAMAGED, DONE, fail
from airpath.store.fetch import fetched
from airpath.store.url import Url
from airpath.workers import Crew, WorkerError, other_processes

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "report.html"

BETWEEN_TOLD_S = 0.2
"""On a terminal."""
BETWEEN_LINES_S = 10.0
"""Elsewhere, as in a log."""


def write(
    directories: Sequence[Path | Url],
    *,
    out: Path | None,
    title: str | None,
    pictures: int,
    figures: Path | None = None,
    file_format: str = "png",
    csv: Path | None = None,
    xplot: Path | None = None,
    experiment: Path | None = None,
) -> int:
    """Write the page, and files where folders are named; print all paths; return the status."""
    if pictures < 0:
        return fail("report", f"--pictures {pictures} must not be negative")
    target = out or Path(NAME)
    if out is None and len(directories) == 1 and isinstance(directories[0], Path):
        target = directories[0] / NAME
    if target.is_dir():
        return fail("report", f"--out {target} is a folder; name a file")
    progress = Progress()
    try:
        for folder in (out.parent if out else None, figures, csv, xplot):
            if folder is not None:
                make_folder(folder)
        if target.parent.is_dir():
            check_place(target)
        with Crew(other_processes()) as crew:
            material = load_material(
                fetched(directories, "report"),
                title,
                pictures,
                experiment=experiment,
                progress=progress.tell,
                crew=crew,
            )
            page = write_report(material, progress.begin)
        files: list[Path] = []
        if figures is not None:
            progress.begin("figures")
            files += write_figures(material, figures, file_format)
        if csv is not None:
            progress.begin("tables")
            files += write_tables(material, csv)
        if xplot is not None:
            progress.begin("xplot")
            files += write_xplot(material, xplot)
        write_whole(target, page)
    except (RunError, WorkerError, OSError) as error:
        progress.end()
        return fail("report", error)
    progress.end()
    for path in [*files, target]:
        print(path)
    for what in material.damage:
        print(f"airpath report: {what}", file=sys.stderr)
    return DAMAGED if material.damage else DONE


class Progress:
    """Tells on stderr what is being made and how long that will take.

    In one line on a terminal; else a line from time to time.
    """

    def __init__(self) -> None:
        """Begin to count."""
        self.is_terminal = sys.stderr.isatty()
        self.told_at = time.monotonic()
        self.what = ""
        self.since = self.told_at

    def begin(self, what: str) -> None:
        """Say what is being made."""
        self.tell(what, 0, 0)

    def tell(self, what: str, done: int, total: int) -> None:
        """Say how much is done of what is being made."""
        now = time.monotonic()
        if what != self.what:
            self.what, self.since = what, now
        pause = BETWEEN_TOLD_S if self.is_terminal else BETWEEN_LINES_S
        if now - self.told_at < pause and not (self.is_terminal and total == 0):
            return
        self.told_at = now
        text = what
        if total:
            text += f" {done:,} of {total:,}"
            # One of them says little of the others; what starting took is in it.
            if done > 1 and now - self.since > 1:
                left_s = (now - self.since) * (total - done) / done
                text += f", about {_duration(left_s)} left"
        line = f"airpath report: {text}"
        if self.is_terminal:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave nothing on the terminal."""
        if self.is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
