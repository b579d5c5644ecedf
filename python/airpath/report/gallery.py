"""The pictures over sets of replications, for the page and for files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from airpath.experiment.shown import Selector
from airpath.plots import sets, sweeps

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from airpath.plots.style import Picture
    from airpath.report.material import Entry, Material

MOST_SETS = 8
"""Sets in one picture; beyond them colours repeat and boxes grow too many to read."""

MOST_COURSE_RUNS = 200
"""Runs of a picture whose captures are read once more for goodput over time."""


def groups(material: Material) -> dict[str, dict[str, list[Entry]]]:
    """Return what belongs into one picture: the cells of each set of an experiment, or all sets."""
    found: dict[str, dict[str, list[Entry]]] = {}
    for name, entries in material.sets.items():
        about = entries[0].about
        group = str(about["set_name"]) if about else ""
        found.setdefault(group, {})[name] = entries
    return found


def of_sets(material: Material, notes: list[str]) -> Iterator[tuple[str, Picture]]:
    """Yield distributions, distribution functions and courses, with a name for each picture."""
    for group, members in groups(material).items():
        many = {name: entries for name, entries in members.items() if len(entries) > 1}
        shown = dict(list(many.items())[:MOST_SETS])
        if len(many) > len(shown):
            notes.append(
                f"{group or 'sets'}: {len(shown)} of {len(many)} sets are drawn side by side;"
                f" sweeps have all, and airpath plot FOLDER draws any"
            )
        table = material.measured.main.filter(pl.col("set").is_in(list(shown)))
        if table.is_empty():
            continue
        kept = set(table.select("set", "run").iter_rows())
        runs = [
            entry.place
            for entries in shown.values()
            for entry in entries
            if (entry.set_name, entry.name) in kept
        ]
        # A metric that is the same everywhere shows nothing.
        keys = ["metric", "flow", "direction", "hop"]
        varied = table.filter(pl.col("value").n_unique().over(keys) > 1)
        kinds = list(sets.KINDS)
        if len(runs) > MOST_COURSE_RUNS:
            kinds.remove("goodput-course")
            notes.append(f"{group or 'sets'}: goodput over time is left out of {len(runs)} runs")
        for picture in sets.draw(runs, varied, kinds, _marks(material, shown)):
            yield identity("sets", group, picture.name), picture


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


def of_sweeps(material: Material) -> Iterator[tuple[str, Picture]]:
    """Yield the metrics over each parameter that was swept."""
    measured = material.measured
    for group, members in groups(material).items():
        parameters = {name: measured.parameters.get(name, {}) for name in members}
        summary = measured.summary.filter(pl.col("set").is_in(list(members)))
        names = dict.fromkeys(key for of in parameters.values() for key in of)
        for swept in names:
            is_swept = "." in swept or swept in ("congestion_control", "mtu")
            if not is_swept or any(swept not in of for of in parameters.values()):
                continue
            picture = sweeps.draw(summary, parameters, swept)
            if picture is not None:
                yield identity("", group, picture.name), picture


def identity(*words: str) -> str:
    """Return a name that may be an id or a file's."""
    return "-".join(re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", word) for word in words if word)
