# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Number of parallel replications, found out by measuring how many stay trusted."""

from __future__ import annotations

import math
import os
import resource
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airpath.facts import NOT_TRUSTED, TRUSTED

MOST = 1000
"""No more than this side by side, whatever the machine is."""

STEP = 1.5
"""From one number to the next, while all are trusted, and back while nothing is known below."""

FILES_EACH = 8
"""Open files of this process for each replication, amply."""

FILES_APART = 64
"""Open files of this process for everything else, amply."""

MEMORY_EACH_BYTES = 64 << 20
"""Assumed need of a replication while none has been looked at."""

MEMORY_SHARE = 0.1
"""Of the machine's memory that is left to others."""


@dataclass
class Jobs:
    """Current number of parallel replications, and the known limits.

    Steps up once as many runs as run side by side have been trusted in full company, and down when
    a run that had company becomes suspect; what was suspect at a number is not tried again. A cell
    whose run is suspect even when it is alone has no say: its reason is another one.
    """

    now: int
    """Number of live ones."""

    automatic: bool
    most: int = 0
    """Number of those in virtual time, which nothing disturbs: as many as at first."""

    bound: int = MOST
    """Number that the machine can hold."""

    rerun: int = 0
    """Number of runs that became suspect and were run again."""

    _suspect: list[tuple[str, int]] = field(default_factory=list)
    """Cell and number side by side, of runs with company."""

    _excused: set[str] = field(default_factory=set)
    """Cells whose last run that was alone was suspect."""

    _trusted: dict[int, int] = field(default_factory=dict)
    """By number side by side: trusted runs since the last suspect one there."""

    def __post_init__(self) -> None:
        """Remember the number at first."""
        if self.automatic:
            self.now = max(1, min(self.now, self.bound))
        self.most = self.most or self.now

    @classmethod
    def of(cls, text: str) -> Jobs:
        """Read --jobs: a number, or auto.

        Raises:
            ValueError: it is neither.

        """
        if text == "auto":
            processors = max(1, len(os.sched_getaffinity(0)))
            return cls(processors, automatic=True, bound=bound_by_files())
        if not text.isdecimal() or not 1 <= int(text) <= MOST:
            message = f"--jobs {text}: a number from 1 to {MOST}, or auto"
            raise ValueError(message)
        return cls(int(text), automatic=False)

    def use(self, number: int) -> None:
        """Take a number that others know, such as that of the workers of a cluster."""
        self.now = self.most = self.bound = max(1, min(number, MOST))
        self.automatic = False

    @property
    def all_trusted_at(self) -> int | None:
        """The greatest number at which as many runs were trusted, and none below it suspect."""
        first = self.first_suspect_at or MOST + 1
        return max(
            (n for n, runs in self._trusted.items() if n < first and runs >= n), default=None
        )

    @property
    def first_suspect_at(self) -> int | None:
        """The least number at which a run became suspect that would not have been alone."""
        return min((n for _, n in self._suspect), default=None)

    def judged(self, verdict: str, side_by_side: int, cell: str) -> str:
        """Take note of the verdict of a live run; return what to tell about it, if anything.

        Args:
            verdict: the run's.
            side_by_side: how many ran beside one another while it ran, itself included.
            cell: which combination it is a replication of.

        """
        if verdict in NOT_TRUSTED:
            if side_by_side > 1:
                return self._disturbed(verdict, side_by_side, cell)
            return self._alone(verdict, cell)
        if verdict == TRUSTED:
            return self._undisturbed(side_by_side, cell)
        return ""

    def _disturbed(self, verdict: str, side_by_side: int, cell: str) -> str:
        if cell in self._excused:
            return ""
        self._suspect.append((cell, side_by_side))
        self._trusted.pop(side_by_side, None)
        # Those that ran beside it may report as well: one step down for all of them.
        if not self.automatic or side_by_side > self.now:
            return ""
        self.now = self._known_good(below=side_by_side)
        return f"{self.now} at a time from now on, as a run became {verdict} at {side_by_side}"

    def _alone(self, verdict: str, cell: str) -> str:
        self._excused.add(cell)
        kept = [one for one in self._suspect if one[0] != cell]
        if not self.automatic or len(kept) == len(self._suspect):
            return ""
        self._suspect = kept
        ceiling = min(self.bound, (self.first_suspect_at or MOST + 1) - 1)
        good = [n for n, runs in self._trusted.items() if n <= ceiling and runs >= n]
        again = min(ceiling, max(good, default=self.most))
        if again <= self.now:
            return ""
        self.now = again
        return f"{self.now} at a time from now on, as {cell} is {verdict} even when it runs alone"

    def _undisturbed(self, side_by_side: int, cell: str) -> str:
        if side_by_side > 1:
            self._excused.discard(cell)
        self._trusted[side_by_side] = self._trusted.get(side_by_side, 0) + 1
        if not self.automatic or side_by_side < self.now or self._trusted[side_by_side] < self.now:
            return ""
        further = math.ceil(self.now * STEP)
        if self.first_suspect_at is not None:  # half of the way to it: each try may cost runs
            further = (self.now + self.first_suspect_at) // 2
        further = min(further, self.bound)
        if further <= self.now:
            return ""
        before, self.now = self.now, further
        return f"{self.now} at a time from now on, as all were trusted at {before}"

    def short(self, running: int, why: str) -> str:
        """Take note that the machine could not hold one more than so many; say so once."""
        if running >= self.bound:
            return ""
        self.bound = max(1, running)
        self.now, self.most = min(self.now, self.bound), min(self.most, self.bound)
        return f"{self.bound} at a time at most from now on: {why}"

    def _known_good(self, below: int) -> int:
        """Return the number to step down to."""
        good = [n for n, runs in self._trusted.items() if n < below and runs >= n]
        least = (self.first_suspect_at or below) - 1
        return max(1, min(least, max(good, default=math.floor(below / STEP))))

    def summary(self) -> dict[str, Any]:
        """Return what was found, for programs."""
        return {
            "automatic": self.automatic,
            "at_last": self.now,
            "all_trusted_at": self.all_trusted_at,
            "first_suspect_at": self.first_suspect_at,
            "rerun": self.rerun,
        }

    def words(self) -> str:
        """Return what was found, for people; nothing where nothing was looked for."""
        if not self.automatic:
            return ""
        parts = []
        if self.all_trusted_at is not None:
            parts.append(f"all trusted at {self.all_trusted_at}")
        if self.first_suspect_at is not None:
            parts.append(f"the first suspect at {self.first_suspect_at}")
        if self.rerun:
            parts.append(f"{self.rerun} run again")
        return f"live runs side by side: {', '.join(parts)}" if parts else ""


def bound_by_files() -> int:
    """Return how many replications this process has open files for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    return max(1, min(MOST, (soft - FILES_APART) // FILES_EACH))


class Memory:
    """True if the machine's memory holds one replication more, by the need of those that run."""

    def __init__(self, meminfo: Path = Path("/proc/meminfo")) -> None:
        """Look at how much there is before anything runs."""
        self.meminfo = meminfo
        total, self.at_first = self._read()
        self.kept = total * MEMORY_SHARE

    def holds_one_more(self, running: int) -> bool:
        """Say whether another may begin beside so many; one always may."""
        if running == 0:
            return True
        _, available = self._read()
        each = max(MEMORY_EACH_BYTES, (self.at_first - available) / running)
        return available - each >= self.kept

    def _read(self) -> tuple[int, int]:
        """Return total and available bytes; plenty where the kernel does not tell."""
        try:
            lines = dict(line.split(":", 1) for line in self.meminfo.read_text().splitlines())
            found = [int(lines[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable")]
        except (OSError, KeyError, ValueError):
            return 0, 1 << 60
        return found[0], found[1]
