"""Verdicts on the runs, before anything that the runs say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from airpath.report.material import Material

GRADES = {
    "trusted": "every packet left as the model gave it, within the bound",
    "suspect": "some packets did not leave as the model gave it",
    "invalid": "too many packets did not leave as the model gave it, or the workload never ran",
    "unknown": "no verdict: the run is active, or was killed",
}
"""The verdicts, the best first, and what each means."""


def build(material: Material) -> Section:
    """Return counts of the verdicts, and the reasons of each that is not the best."""
    counts = [
        (grade, meaning, sum(entry.run.verdict == grade for entry in material.entries))
        for grade, meaning in GRADES.items()
    ]
    doubtful = [entry for entry in material.entries if entry.run.verdict != "trusted"]
    body = fill("verdicts", counts=counts, doubtful=doubtful, total=len(material.entries))
    return Section("verdicts", "Verdicts", body)
