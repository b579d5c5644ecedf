# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Answer before everything else: the question, what came out, pictures of it, and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.analysis.text import differing
from airpath.report import gallery, sentences
from airpath.report.page import Section, fill
from airpath.report.sections.verdicts import GRADES

if TYPE_CHECKING:
    from airpath.report.material import Material
    from airpath.report.sentences import Sentence

MOST_SENTENCES = 6
"""Sentences that one can take in; the others are folded."""

MOST_RUNS = 6
"""Runs of a page without sets that have a sentence each."""


def build(material: Material) -> Section:
    """Return the answer: the first thing on the page."""
    found, open_questions = _sentences(material)
    question = material.presentation.question
    counts = [
        (grade, number)
        for grade in GRADES
        if (number := sum(entry.run.verdict == grade for entry in material.entries))
    ]
    tests = sum(one.effect.p is not None for one in material.measured.comparisons)
    body = fill(
        "answer",
        question="" if question == material.title else question,
        sentences=found[:MOST_SENTENCES],
        more=found[MOST_SENTENCES:],
        open_questions=open_questions,
        compared=len(material.measured.comparisons),
        tests=tests,
        pictures=[
            (name, material.drawings.later(picture, name), entry)
            for name, picture, entry in gallery.of_answer(material)
        ],
        counts=counts,
        total=len(material.entries),
    )
    return Section("answer", "Answer", body, folded=False)


def _sentences(material: Material) -> tuple[list[Sentence], list[Sentence]]:
    """Return what the data support, and what they leave open."""
    measured = material.measured
    compared = measured.comparisons
    if compared:
        told = differing(measured.tested)
        supported = [sentences.sentence(one, told) for one in compared if one.supported]
        return supported, sentences.not_told_apart(compared, told)
    if len(material.entries) > 1 and not measured.main.is_empty():
        return sentences.of_sets(measured.tested_summary, 2 * MOST_SENTENCES), []
    return [sentences.of_run(entry) for entry in material.entries[:MOST_RUNS]], []
