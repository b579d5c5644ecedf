# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Verdicts on the runs, before anything that the runs say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.facts import NO_VERDICT, TRUSTED, VERDICTS
from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from airpath.report.material import Material

GRADES = VERDICTS | {NO_VERDICT: "no verdict: the run is active, or was killed"}
"""The verdicts, the best first, and what each means."""


def build(material: Material) -> Section:
    """Return counts of the verdicts, and the reasons of each that is not the best."""
    counts = [
        (grade, meaning, sum(entry.run.verdict == grade for entry in material.entries))
        for grade, meaning in GRADES.items()
    ]
    doubtful = [entry for entry in material.entries if entry.run.verdict != TRUSTED]
    body = fill("verdicts", counts=counts, doubtful=doubtful, total=len(material.entries))
    return Section("verdicts", "Verdicts", body)
