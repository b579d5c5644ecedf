# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reasons for untrusted runs, and advice: the engine's reasons, counted over many runs."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from airpath.run import Run, RunError

INSTEAD = "run fewer side by side (--jobs), allow more (--lateness-bound), or use --clock warp"
"""Advice where many live runs are late, besides the advice of each run itself."""

OF_LATENESS = {"late_emissions", "late_reads"}
"""The codes of reasons that have to do with time."""


def of_runs(runs: Iterable[Run]) -> str:
    """Say why runs are not trusted: codes with counts, an example, and what to do.

    Empty where all are trusted, or where none says why.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, tuple[str, str]] = {}
    for run in runs:
        if run.verdict == "trusted":
            continue
        details = run.verdict_details
        counts.update({detail.code for detail in details})
        for detail in details:
            examples.setdefault(detail.code, (detail.what, detail.mend))
    if not counts:
        return ""
    # Equal counts in a fixed order, so that the same runs are always told alike.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    what, mend = examples[ranked[0][0]]
    words = ", ".join(f"{code} in {count}" for code, count in ranked)
    text = f"{words}, such as: {what}; {mend}" if mend else f"{words}, such as: {what}"
    return f"{text}. {INSTEAD.capitalize()}" if OF_LATENESS & set(counts) else text


class InSet(Protocol):
    """A run of a set."""

    @property
    def set_name(self) -> str:
        """The set's name."""

    @property
    def run(self) -> Run:
        """The run."""


def of_sets(runs: Iterable[InSet]) -> dict[str, str]:
    """Say for each set that has several runs, none of them trusted, why."""
    sets: dict[str, list[Run]] = {}
    for one in runs:
        try:
            sets.setdefault(one.set_name, []).append(one.run)
        except (RunError, OSError):
            continue
    return {
        name: of_runs(members)
        for name, members in sets.items()
        if len(members) > 1 and all(run.verdict != "trusted" for run in members)
    }
