# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The common parts of campaigns: seeds, and the storing and printing of findings."""

from __future__ import annotations

import random
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = ROOT / "fuzz" / "findings"
KEPT = 3
"""Of each way to fail so many inputs are kept and told."""


def drawn_seed() -> int:
    """Return a random seed."""
    return random.SystemRandom().randrange(1_000_000_007)


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process and of those that it starts."""
    size = megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass
class Campaign:
    """Numbers of tries and failures of a campaign."""

    name: str
    seed: int
    tried: int = 0
    begun: float = field(default_factory=time.monotonic)
    ways: dict[str, int] = field(default_factory=dict)

    def failed(self, what: str, kept: bytes | None = None, label: str = "") -> None:
        """Note a failure; keep its input and say so, unless there have been enough like it."""
        way = "".join(letter for letter in what if not letter.isdigit())[:120]
        self.ways[way] = self.ways.get(way, 0) + 1
        if self.ways[way] > KEPT:
            return
        place = label
        if kept is not None:
            FINDINGS.mkdir(parents=True, exist_ok=True)
            path = FINDINGS / f"{self.name}-{self.seed}-{label}".replace(" ", "_")
            path.write_bytes(kept)
            place = str(path)
        print(f"  {place}: {what[:2000]}", flush=True)

    @property
    def failures(self) -> int:
        """Number of tries that failed."""
        return sum(self.ways.values())

    def tell(self, more: str = "") -> int:
        """Print the line of the result; return the exit status."""
        seconds = time.monotonic() - self.begun
        rate = self.tried / max(seconds, 1e-9)
        print(
            f"{self.name}: tried {self.tried}, failures {self.failures} "
            f"(seed {self.seed}, {seconds:.1f} s, {rate:.1f}/s{more})",
            flush=True,
        )
        return 1 if self.failures else 0
