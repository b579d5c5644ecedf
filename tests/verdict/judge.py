# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Playing distortions and comparing the verdict with the truth."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass

from verdict.distortion import Distortion
from verdict.stage import NOBODY, NotHere, Seen, Sender, Stage

ATTEMPTS = 3
"""Number of times a distortion is tried until it gets through."""


@dataclass
class Judged:
    """Outcome of one distortion."""

    distortion: Distortion
    outcome: str
    """`told`, `not told`, `not reached`, `spared` (rightly trusted), `not here`."""
    seen: Seen | None
    attempts: int
    seconds: float
    why: str = ""

    @property
    def named(self) -> bool:
        """True if a reason names the distortion."""
        expected = self.distortion.codes
        codes = self.seen.codes if self.seen else []
        return any(code.startswith(start) for code in codes for start in expected)

    @property
    def failed(self) -> bool:
        """True if the bench fails by it."""
        return self.outcome in ("not told", "not reached")

    def row(self) -> list[str]:
        """Return it as a row of the table."""
        seen = self.seen
        if seen is None:
            return [self.distortion.name, self.distortion.what, "", self.why, self.outcome]
        reasons = ", ".join(seen.codes) or seen.first_reason or "-"
        return [
            self.distortion.name,
            self.distortion.what,
            seen.truth.what,
            f"{seen.grade}: {reasons}",
            self.outcome,
        ]


def missing(distortion: Distortion) -> str:
    """Return what this machine lacks for a distortion; empty if it has everything."""
    if (distortion.nobody or "root" in distortion.needs) and os.geteuid() != 0:
        return "only root can do that"
    programs = [need for need in distortion.needs if need not in ("root", "tun")]
    lacking = [name for name in programs if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} is not installed"
    if "tun" in distortion.needs and not _tun_opens(distortion.nobody):
        return "/dev/net/tun is closed to this user"
    return ""


def _tun_opens(nobody: bool) -> bool:
    prefix = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if nobody else []
    line = [*(["setpriv", *prefix] if nobody else []), "sh", "-c", ": <>/dev/net/tun"]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


def judge(distortion: Distortion, stage: Stage, attempts: int = ATTEMPTS) -> Judged:
    """Play a distortion until it gets through, at most so often, and compare truth and verdict."""
    begun = time.monotonic()

    def judged(outcome: str, seen: Seen | None, count: int, why: str = "") -> Judged:
        return Judged(distortion, outcome, seen, count, time.monotonic() - begun, why)

    if why := missing(distortion):
        return judged("not here", None, 0, why)
    seen = None
    for attempt in range(1, attempts + 1):
        try:
            seen = distortion.play(stage)
        except NotHere as error:
            return judged("not here", None, attempt, str(error))
        if distortion.own and seen.trusted:
            return judged("spared", seen, attempt)
        if seen.truth.distorted:
            return judged("not told" if seen.trusted else "told", seen, attempt)
        if distortion.uncertain and seen.trusted:
            return judged("spared", seen, attempt)
        if seen.note:
            return judged("not here", seen, attempt, seen.note)
    # A run that a good machine withstands need not be trusted on another.
    return judged("spared" if distortion.uncertain else "not reached", seen, attempts)


@dataclass
class Calm:
    """Outcome of undisturbed runs of one rate."""

    label: str
    runs: int
    trusted: int
    distorted: int
    """Number of runs distorted all the same, by other programs on the machine."""
    wrong: int
    """Number of these that were trusted."""
    longest: int
    """The most runs in a row until one was trusted."""


def calm(stage: Stage, interval_s: float, *, delay_ms: float = 20.0, count: int = 100) -> Seen:
    """Run without any disturbance."""
    return stage.datagrams(delay_ms=delay_ms, sender=Sender(count=count, interval_s=interval_s))


def calm_runs(stage: Stage, label: str, interval_s: float, runs: int, count: int) -> Calm:
    """Run undisturbed so often."""
    trusted = distorted = wrong = row = longest = 0
    for _ in range(runs):
        seen = calm(stage, interval_s, count=count)
        trusted += seen.trusted
        distorted += seen.truth.distorted
        wrong += seen.trusted and seen.truth.distorted
        row += 1
        longest = max(longest, row)
        if seen.trusted:
            row = 0
        if seen.folder:
            shutil.rmtree(seen.folder, ignore_errors=True)
    return Calm(label, runs, trusted, distorted, wrong, longest)
