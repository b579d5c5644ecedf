# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics that a page is about: those that an experiment names, or the main one of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.natural import natural_order
from airpath.report.presentation import selects

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from airpath.experiment.shown import Selector

KEYS = ("metric", "flow", "hop", "direction", "unit")
"""Columns that tell one thing measured from another."""

DURATIONS = ("elapsed", "elapsed_time", "transfer_time")
"""Metrics of how long it took, the first of which stands for those that say the same."""

SYNONYM = 0.1
"""Relative difference up to which two durations say the same of most runs."""

FIXED = 0.02
"""Relative range of a duration that somebody fixed: it is no result."""

FALLBACKS = (("goodput",), ("one_way_delay_median", "packets_lost"), ("program_goodput",))
"""Metrics of runs whose duration is fixed: the first of which there is any."""


def without_synonyms(table: pl.DataFrame, wanted: Collection[str] = ()) -> pl.DataFrame:
    """Return values without the durations that repeat another one under its own name.

    Args:
        table: values of runs.
        wanted: metrics that stay in any case.

    """
    kept: list[pl.DataFrame] = []
    gone: list[str] = []
    for name in DURATIONS:
        of_runs = table.filter(pl.col("metric") == name).select("set", "run", "value")
        if of_runs.is_empty():
            continue
        if name not in wanted and any(_say_the_same(one, of_runs) for one in kept):
            gone.append(name)
        else:
            kept.append(of_runs)
    return table.filter(~pl.col("metric").is_in(gone))


def _say_the_same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    runs = ["set", "run"]
    if other.select(runs).is_duplicated().any():
        return False  # of several flows each has its own
    both = other.join(one, on=runs, how="left", suffix="_kept")
    if both["value_kept"].has_nulls():
        return False
    apart = (both["value"] - both["value_kept"]).abs() / both["value_kept"].abs()
    return 2 * int((apart <= SYNONYM).sum()) > len(apart)


def tested(
    main: pl.DataFrame, named: Sequence[Selector], flows: Sequence[str]
) -> list[dict[str, str]]:
    """Return the metrics that comparisons test: those named, or the main one.

    What is the same in all runs is no result. Without names it is how long it took, or goodput
    where that was fixed, or delay and losses where nothing was transferred.

    Args:
        main: values of trusted runs.
        named: metrics that an experiment names, in order.
        flows: the flows, the one that a workload names first before others.

    """
    varying = main.filter(pl.col("value").n_unique().over(KEYS) > 1)
    rows = list(varying.select(KEYS).unique(maintain_order=True).iter_rows(named=True))
    if named:
        order = dict.fromkeys([*flows, *natural_order({*main["flow"]})])
        places = {name: place for place, name in enumerate(order)}
        rows.sort(key=lambda row: places[row["flow"]])
        return [row for selector in named for row in rows if selects(selector, row)]
    for name in DURATIONS:
        values = varying.filter(pl.col("metric") == name)["value"].to_list()
        if values and max(values) - min(values) > FIXED * max(values):
            return [row for row in rows if row["metric"] == name]
    for names in FALLBACKS:
        if found := [row for row in rows if row["metric"] in names]:
            return found
    return rows[:1]
