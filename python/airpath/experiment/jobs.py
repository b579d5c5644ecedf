"""How many replications run side by side, and when a suspect one is run again."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass
class Jobs:
    """How many at a time; found out by trying where nobody said."""

    now: int
    """How many that run live."""

    automatic: bool
    most: int = 0
    """How many that run in virtual time, which nothing disturbs: as many as at first."""

    def __post_init__(self) -> None:
        """Remember the number at first."""
        self.most = self.most or self.now

    @classmethod
    def of(cls, text: str) -> Jobs:
        """Read --jobs: a number, or auto.

        Raises:
            ValueError: it is neither.

        """
        if text == "auto":
            return cls(max(1, len(os.sched_getaffinity(0))), automatic=True)
        if not text.isdecimal() or not 1 <= int(text) <= 1024:
            message = f"--jobs {text}: a number from 1 to 1024, or auto"
            raise ValueError(message)
        return cls(int(text), automatic=False)

    def judged(self, verdict: str, side_by_side: int) -> str:
        """Take note of a verdict; return what to tell about it, if anything.

        A run that was alone is suspect for another reason than the number of those beside it.
        """
        if verdict not in ("suspect", "invalid"):
            return ""
        if not self.automatic or side_by_side <= 1 or self.now <= 1:
            return ""
        # Those that ran beside it may report as well: one step down for all of them.
        if side_by_side <= self.now:
            self.now = max(1, side_by_side - 1)
            return f"{self.now} at a time from now on, as runs side by side became {verdict}"
        return ""
