# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures over sets of replications, for the page and for files."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from airpath.experiment.shown import Selector
from airpath.natural import natural_order
from airpath.plots import draw as draw_run
from airpath.plots import sets, sweeps
from airpath.plots.course_panels import draw_courses
from airpath.plots.kinds import COURSE_PICTURES
from airpath.plots.style import Span
from airpath.report import asked
from airpath.report.choice import MOST_SETS, groups, side_by_side_sets
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from airpath.plots.style import Picture
    from airpath.report.entry import Entry
    from airpath.report.material import Material

MOST_TESTED = 2
"""Metrics of the picture that shows the answer."""

OF_SHARES = ("jain_fairness", "goodput_overlap")
"""Beginnings of the metrics of how flows share a link."""

PAGE_INCHES = 8.5
"""Share of a picture's height for panels, if it is to print on A4 at its full width."""


def of_sets(material: Material, notes: list[str]) -> Iterator[tuple[str, Picture]]:
    """Yield distributions, distribution functions and courses, with a name for each picture."""
    drawn = side_by_side_sets(material.sets, material.parameters)
    for group, members in groups(material.sets).items():
        many = [name for name, entries in members.items() if len(entries) > 1]
        shown = [name for name in many if name in drawn]
        if len(many) > len(shown):
            notes.append(
                f"{group or 'sets'}: {len(shown)} of {len(many)} sets are drawn side by side, which"
                f" differ in one parameter where there are such; Sweeps has all, and airpath plot"
                f" FOLDER draws any"
            )
        table = material.measured.main.filter(pl.col("set").is_in(shown))
        if table.is_empty():
            continue
        kept = set(table.select("set", "run").iter_rows())
        # A metric that is the same everywhere shows nothing.
        keys = ["metric", "flow", "direction", "hop"]
        varied = table.filter(pl.col("value").n_unique().over(keys) > 1)
        marks = _marks(material, shown)
        # Boxes show every value; functions are for what the page is about.
        tested = _tested(material, varied)
        pictures = [*by_pages("distribution", varied, marks), *by_pages("cdf", tested, marks)]
        found = [
            entry.courses
            for name in shown
            for entry in members[name]
            if entry.courses is not None and (name, entry.name) in kept
        ]
        if found:
            pictures += draw_courses(found, drawn[shown[0]], COURSE_PICTURES)
        for picture in pictures:
            yield identity("sets", group, picture.name), picture


def by_pages(kind: str, table: pl.DataFrame, marks: Sequence[sets.Mark]) -> Iterator[Picture]:
    """Draw metrics in as many pictures as keep readable in print, each no higher than a page."""
    keys = ["metric", "flow", "hop", "direction", "unit"]
    metrics = table.select(keys).unique(maintain_order=True)
    names = natural_order(table["set"].unique())
    rows = max(1, int(PAGE_INCHES / sets.row_inches(kind, len(names))))
    for number, first in enumerate(range(0, metrics.height, rows), start=1):
        part = table.join(
            metrics.slice(first, rows), on=keys, how="semi", nulls_equal=True, maintain_order="left"
        )
        for picture in sets.draw([], part, (kind,), marks, names):
            yield replace(picture, name=f"{kind}-{number}") if number > 1 else picture


def _marks(material: Material, shown: Collection[str]) -> list[sets.Mark]:
    """Return the references that stand beside any of the sets shown."""
    found = []
    for one in material.presentation.beside:
        if not set(one.sets) & set(shown):
            continue
        for text in one.reference.metrics:
            selector, figure = Selector(text), one.reference.metrics[text]
            found.append(
                sets.Mark(
                    one.reference.name,
                    selector.name,
                    selector.direction,
                    figure.median,
                    figure.p10,
                    figure.p90,
                )
            )
    return found


def of_sweeps(material: Material, notes: list[str]) -> Iterator[tuple[str, Picture]]:
    """Yield the metrics over each network, workload and parameter that takes several values."""
    measured = material.measured
    for group, members in groups(material.sets).items():
        parameters = {
            name: material.parameters[name] for name in members if name in material.parameters
        }
        summary = measured.summary.filter(pl.col("set").is_in(list(parameters)))
        for picture, note in sweeps.draw_all(summary, parameters):
            if note:
                notes.append(f"{group}: {note}" if group else note)
            yield identity("", group, picture.name), picture


def of_answer(material: Material) -> Iterator[tuple[str, Picture, Entry | None]]:
    """Yield the pictures that show what came out, each with the run that it is of, if it is one.

    They are what the comparisons test over what was swept, the run that an experiment names or the
    only one, and all runs by set.
    """
    measured = material.measured
    for contrast in measured.contrasts:
        members = {each.first for each in contrast.strata}
        group = {str(material.parameters.get(name, {}).get("set", "")) for name in members}
        parameters = {
            name: of for name, of in material.parameters.items() if of and {of["set"]} == group
        }
        if contrast.factor not in sweeps.swept(parameters):
            continue
        of_group = pl.col("set").is_in(list(parameters))
        summary = _tested(material, measured.summary.filter(of_group), MOST_TESTED)
        picture, _ = sweeps.draw_over(summary, parameters, contrast.factor)
        if picture is not None:
            yield "answer-sweep", picture, None
        break
    course = _course_of_answer(material)
    if course is not None:
        yield "answer-course", *course
    many = [name for name, entries in material.sets.items() if len(entries) > 1]
    shown = [name for name in many if len(many) <= MOST_SETS]
    values = _tested(material, measured.main.filter(pl.col("set").is_in(shown)), 1)
    # What was swept is seen without boxes, where a course takes their place.
    if values.height > 1 and not (course is not None and measured.contrasts):
        for picture in sets.draw([], values, ("distribution",), _marks(material, shown), shown):
            yield "answer-distribution", picture, None


def _course_of_answer(material: Material) -> tuple[Picture, Entry] | None:
    """Return a picture over time of the first run that an experiment names, or of the only run.

    It is the throughput, or what each flow gets where the experiment asks how flows share.
    """
    tested = material.measured.tested
    shares = bool(tested) and str(tested[0]["metric"]).startswith(OF_SHARES)
    for entry in _over_time(material):
        with suppress(RunError):
            for picture in draw_run(entry.open(), ["fairness" if shares else "throughput"], Span()):
                return picture, entry
    return None


def _over_time(material: Material) -> list[Entry]:
    """Return the run that the answer shows over time, if there is one."""
    if material.presentation.captions:
        return material.with_diagrams[:1]
    return material.entries if len(material.entries) == 1 else []


def _tested(material: Material, table: pl.DataFrame, most: int | None = None) -> pl.DataFrame:
    """Return the rows of the metrics that comparisons test, or of the first of them."""
    keys = pl.DataFrame(
        material.measured.tested[:most], schema=dict.fromkeys(asked.KEYS, pl.String)
    )
    found = keys.join(table, on=asked.KEYS, how="inner", maintain_order="left_right")
    return found.select(table.columns)


def identity(*words: str) -> str:
    """Return a name that may be an id or a file's."""
    return "-".join(re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", word) for word in words if word)
