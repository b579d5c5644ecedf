# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of runs, figures of sets, comparisons: the analysis, with its warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from airpath.analysis import statistics
from airpath.analysis.table import frame as measured
from airpath.api.collection import gather, warn
from airpath.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    import polars as pl

    from airpath.analysis.folders import Replication
    from airpath.api.collection import RunsLike


@overload
def frame(
    runs: RunsLike,
    metrics: str | Sequence[str] | None = None,
    *,
    as_pandas: Literal[False] = False,
    progress: Callable[[int, Replication], None] | None = None,
) -> pl.DataFrame: ...


@overload
def frame(
    runs: RunsLike,
    metrics: str | Sequence[str] | None = None,
    *,
    as_pandas: Literal[True],
    progress: Callable[[int, Replication], None] | None = None,
) -> pd.DataFrame: ...


def frame(
    runs: RunsLike,
    metrics: str | Sequence[str] | None = None,
    *,
    as_pandas: bool = False,
    progress: Callable[[int, Replication], None] | None = None,
) -> pl.DataFrame | pd.DataFrame:
    """Measure runs: the tidy long table, one row a value.

    Columns are set, run, seed, verdict, flow, direction, hop, metric, value and unit (s, B, bit/s;
    "1" for ratios). What was not measured has no row. All runs are in it, whatever their verdict.

    Args:
        runs: runs of any form.
        metrics: names, as a list or separated by commas; ``rtt_*`` for all that begin so, ``all``
            for all; the headlines by default. docs/analysis.md defines each.
        as_pandas: return a pandas frame (needs ``airpath[pandas]``).
        progress: called before each run with its number from 0.

    Raises:
        RunError: a run could not be read.
        UnknownMetricError: a name is no metric's; the message names the nearest.
        ModuleNotFoundError: pandas was asked for and is not installed.

    """
    notes: list[str] = []
    table = measured(gather(runs), names(metrics), progress=progress, notes=notes)
    warn(notes)
    return to_pandas(table) if as_pandas else table


def summarise(table: pl.DataFrame, *, include_untrusted: bool = False) -> pl.DataFrame:
    """Return the figures of each set, flow, direction, hop and metric.

    n, median, median_low, median_high, mean, mean_low, mean_high (95 % intervals,
    of the median by BCa bootstrap, of the mean by Student's t;
    null for fewer than 5 values), percentiles p5 to p95, min, max, deviation, outliers.

    Args:
        table: of ``frame``.
        include_untrusted: keep replications of a set whose verdict is not trusted; otherwise they
            are left out with a warning, as ``airpath analyse`` does.

    """
    selection = statistics.select_trusted(table, include_untrusted=include_untrusted)
    warn(selection.notes)
    return statistics.summarise(selection.table)


def compare(
    table: pl.DataFrame, first: str, second: str, *, include_untrusted: bool = False
) -> statistics.Selection:
    """Compare two sets, metric by metric: shift with its interval, effect size, test.

    Paired by seed where the sets share at least half of the smaller one's seeds.

    Args:
        table: of ``frame``.
        first: name of a set.
        second: name of another; ``shift`` is this one less the first.
        include_untrusted: as for ``summarise``.

    Returns:
        ``table`` (n_first, n_second, paired, median_first, median_second, shift, shift_low,
        shift_high in the metric's unit; cliffs_delta, test, p, p_holm) and ``notes``, which say
        how the sets were paired and what p is corrected for.

    Raises:
        CompareError: a set is not there, or both are one.

    """
    selection = statistics.select_trusted(table, include_untrusted=include_untrusted)
    warn(selection.notes)
    return statistics.compare(selection.table, first, second)


def names(metrics: str | Sequence[str] | None) -> list[str]:
    """Return the names of metrics that were given one way or the other."""
    given = [metrics] if isinstance(metrics, str) else metrics or []
    return [name.strip() for word in given for name in word.split(",") if name.strip()]


def to_pandas(table: pl.DataFrame) -> pd.DataFrame:
    """Return a polars frame as a pandas one.

    Raises:
        MissingExtraError: pandas or pyarrow is not installed.

    """
    require("pandas", "a pandas frame")
    return table.to_pandas()
