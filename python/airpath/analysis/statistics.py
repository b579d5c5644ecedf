# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures of sets of replications, and comparisons of two sets.

Ranks and tests are scipy's, intervals those of ``intervals``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airpath.analysis.intervals import (
    CONFIDENCE,
    least_p,
    mean_interval,
    median_interval,
    paired_shift,
    unpaired_shift,
)
from airpath.analysis.metric import KEYS, REGISTRY, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LEAST_FOR_TEST = 5
"""With fewer values (or pairs) no test can tell a difference, and none is made."""

FENCE = 1.5
"""Tukey's: outliers lie further than so many interquartile ranges outside the quartiles."""

SUMMARY_KEYS = ("set", *KEYS, "metric", "unit")


class CompareError(Exception):
    """Two sets cannot be compared."""


@dataclass(frozen=True)
class Selection:
    """The rows that count, and what must be said of the others."""

    table: pl.DataFrame
    notes: list[str]
    all_left_out: bool = False
    """True if there were runs, and none of them is left."""


def select_trusted(
    table: pl.DataFrame, *, include_untrusted: bool, why: Mapping[str, str] | None = None
) -> Selection:
    """Leave out replications whose verdict is not trusted, and say so.

    A set of one run is kept, as there is nothing that its figures could distort. ``why`` says for
    sets of which nothing is left why that is, and what to do.
    """
    about = table.select("set", "run", "verdict").unique(maintain_order=True)
    of_many = pl.len().over("set") > 1
    explained = {name: reason for name, reason in (why or {}).items() if reason}
    others = about.filter(pl.col("verdict") != "trusted")
    notes = []
    if include_untrusted:
        for name, run, verdict in others.iter_rows():
            notes.append(f"{name}: {run} is {verdict}, and included")
        return Selection(table, notes)
    gone = pl.col("set").is_in(list(explained)) & of_many
    gone &= ~(pl.col("verdict") == "trusted").any().over("set")
    for name, count in about.filter(gone).group_by("set", maintain_order=True).len().iter_rows():
        left_out = f"all {count} runs left out (--include-untrusted keeps them)"
        notes.append(f"{name}: {left_out}: {explained[name]}")
    some = (pl.col("verdict") != "trusted") & of_many & ~gone
    for name, run, verdict in about.filter(some).iter_rows():
        notes.append(f"{name}: {run} is {verdict}, and left out (--include-untrusted keeps it)")
    for name, run, verdict in about.filter((pl.col("verdict") != "trusted") & ~of_many).iter_rows():
        notes.append(f"{name}: {run} is {verdict}")
    kept = about.filter((pl.col("verdict") == "trusted") | ~of_many).select("set", "run")
    left = table.join(kept, on=["set", "run"], how="semi", maintain_order="left")
    return Selection(left, notes, all_left_out=left.is_empty() and not table.is_empty())


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the figures of each set, flow, direction, hop and metric.

    ``SUMMARY_KEYS``, then n, median, median_low, median_high, mean, mean_low, mean_high (ends of
    the 95 % intervals: of the median by BCa bootstrap, of the mean by Student's t; null for fewer
    than 5 values), p5, p10, p25, p75,
    p90, p95, min, max, deviation (standard; null for one value) and outliers (names of runs beyond
    Tukey's fences).
    """
    rows: list[dict[str, Any]] = []
    for key, part in table.group_by(SUMMARY_KEYS, maintain_order=True):
        values = part["value"].to_numpy().astype(np.float64)
        median_low, median_high = median_interval(values)
        mean_low, mean_high = mean_interval(values)
        percentiles = np.percentile(values, [5, 10, 25, 75, 90, 95])
        rows.append(
            dict(zip(SUMMARY_KEYS, key, strict=True))
            | {
                "n": len(values),
                "median": float(np.median(values)),
                "median_low": median_low,
                "median_high": median_high,
                "mean": float(np.mean(values)),
                "mean_low": mean_low,
                "mean_high": mean_high,
                **dict(
                    zip(
                        ("p5", "p10", "p25", "p75", "p90", "p95"),
                        percentiles.tolist(),
                        strict=True,
                    )
                ),
                "min": float(values.min()),
                "max": float(values.max()),
                "deviation": float(values.std(ddof=1)) if len(values) > 1 else None,
                "outliers": [part["run"][row] for row in outliers(values)],
            }
        )
    return _in_order(pl.DataFrame(rows, schema=_SUMMARY_SCHEMA))


def outliers(values: Values) -> list[int]:
    """Return the places of values beyond Tukey's fences."""
    low, high = np.percentile(values, [25, 75])
    reach = FENCE * (high - low)
    return np.flatnonzero((values < low - reach) | (values > high + reach)).tolist()


def compare(table: pl.DataFrame, first: str, second: str) -> Selection:
    """Compare two sets, metric by metric.

    Paired by seed where the sets share at least half of the smaller one's seeds. The shift is
    second less first: Hodges and Lehmann's estimate (1963), paired the median of the averages of
    all pairs of differences, unpaired the median of all differences between the sets. The test is
    Wilcoxon's signed rank test, or Mann and Whitney's. ``cliffs_delta`` is the share of pairs (one
    value of each set) in which the second is greater less the share in which it is smaller (Cliff
    1993), paired or not. The shift's interval is that test inverted: null where the sets are too
    small for any of 95 %, which a note tells. ``p_holm`` is corrected for the number of tests in
    the table (Holm 1979).

    Raises:
        CompareError: a set is not there, or both are one.

    """
    known = table["set"].unique(maintain_order=True).to_list()
    for name in (first, second):
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "no run is left to compare"
            message = f"no set is called {name}; {there}"
            raise CompareError(message)
    if first == second:
        message = f"{first} cannot be compared with itself; name two sets"
        raise CompareError(message)
    notes: list[str] = []
    seeds = {
        name: table.filter(pl.col("set") == name)
        .select("run", "seed")
        .unique()["seed"]
        .drop_nulls()
        for name in (first, second)
    }
    common = sorted(set(seeds[first].to_list()) & set(seeds[second].to_list()))
    repeated = any(seed.n_unique() < len(seed) for seed in seeds.values())
    smaller = min(len(seed) for seed in seeds.values())
    paired = bool(common) and not repeated and 2 * len(common) >= smaller
    if repeated:
        notes.append("not paired: a seed occurs several times in one set")
    elif paired:
        alone = sum(len(seed) - len(common) for seed in seeds.values())
        notes.append(
            f"paired by seed: {len(common)} pairs"
            + (f"; {alone} replications without a partner are left out" if alone else "")
        )
    else:
        notes.append("not paired: the sets share too few seeds")
    rows = []
    varied = False
    keys = [*KEYS, "metric", "unit"]
    for key, part in table.group_by(keys, maintain_order=True):
        sides = [part.filter(pl.col("set") == name) for name in (first, second)]
        if paired:
            sides = [side.filter(pl.col("seed").is_in(common)) for side in sides]
            both = sides[0].join(sides[1], on="seed", suffix="_second").sort("seed")
            values = (both["value"].to_numpy(), both["value_second"].to_numpy())
        else:
            values = (sides[0]["value"].to_numpy(), sides[1]["value"].to_numpy())
        if min(len(values[0]), len(values[1])) == 0:
            continue
        rows.append(dict(zip(keys, key, strict=True)) | compare_values(*values, paired=paired))
        varied |= min(map(len, values)) < 2 or any(np.ptp(side) > 0 for side in values)
    if rows and not varied:
        notes.append(
            "no test: every replication of a set has the same figures, so that nothing is left to "
            "chance; is anything in the link random?"
        )
        rows = [{**row, "p": None} for row in rows]
    result = pl.DataFrame(rows, schema=_COMPARE_SCHEMA)
    tested = result["p"].is_not_null().sum()
    if tested > 1:
        notes.append(f"{tested} tests: p_holm is corrected for their number (Holm 1979); p is not")
    if varied and tested < result.height:
        notes.append(f"no test with fewer than {LEAST_FOR_TEST} values or pairs")
    notes += _without_interval(result)
    return Selection(_in_order(_with_holm(result)), notes)


def compare_values(first: Values, second: Values, *, paired: bool) -> dict[str, Any]:
    """Return the figures of one comparison; see ``compare``."""
    shift, low, high = (paired_shift if paired else unpaired_shift)(first, second)
    return {
        "n_first": len(first),
        "n_second": len(second),
        "paired": paired,
        "median_first": float(np.median(first)),
        "median_second": float(np.median(second)),
        "shift": shift,
        "shift_low": low,
        "shift_high": high,
        "cliffs_delta": cliffs_delta(first, second),
        "test": "Wilcoxon signed rank" if paired else "Mann-Whitney",
        "p": p_value(first, second, paired=paired),
    }


def _without_interval(result: pl.DataFrame) -> list[str]:
    """Say why shifts have no interval."""
    without = result.filter(pl.col("shift_low").is_null())
    sizes = without.select("paired", "n_first", "n_second").unique().sort(pl.all())
    notes = []
    for paired, first, second in sizes.iter_rows():
        what = f"{first} pairs" if paired else f"{first} and {second} values"
        reason = f"it takes {LEAST_FOR_TEST} and more"
        if (least := least_p(first, None if paired else second)) > 1 - CONFIDENCE:
            reason = f"the least p that a test of so few can have is {least:.4g}"
        notes.append(f"no {CONFIDENCE:.0%} interval of a shift from {what}: {reason}")
    return notes


def cliffs_delta(first: Values, second: Values) -> float:
    """Return the share of pairs in which the second is greater, less that in which smaller."""
    return float(np.sign(second[None, :] - first[:, None]).mean())


def p_value(first: Values, second: Values, *, paired: bool) -> float | None:
    """Return the two-sided p of the test; nothing for too few values."""
    if min(len(first), len(second)) < LEAST_FOR_TEST:
        return None
    from scipy import stats

    if paired:
        difference = second - first
        if not difference.any():
            return 1.0
        return float(stats.wilcoxon(difference).pvalue)
    if np.ptp(np.concatenate([first, second])) == 0:
        return 1.0
    return float(stats.mannwhitneyu(first, second).pvalue)


def holm(values: list[float]) -> list[float]:
    """Correct p values for their number (Holm 1979)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    corrected = [0.0] * len(values)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - place) * values[index]))
        corrected[index] = highest
    return corrected


def _with_holm(result: pl.DataFrame) -> pl.DataFrame:
    tested = result.with_row_index("row").drop_nulls("p")
    corrected = pl.DataFrame(
        {"row": tested["row"], "p_holm": holm(tested["p"].to_list())},
        schema={"row": pl.UInt32, "p_holm": pl.Float64},
    )
    joined = result.with_row_index("row").join(
        corrected, on="row", how="left", maintain_order="left"
    )
    return joined.drop("row")


def _in_order(result: pl.DataFrame) -> pl.DataFrame:
    """Sort by metric, as they are shown, then by what a value is of."""
    places = {metric.name: place for place, metric in enumerate(in_order())}
    keys = [key for key in ("hop", "flow", "direction") if key in result.columns]
    sets = ["place_of_set"] if "set" in result.columns else []
    ordered = result.with_columns(
        place=pl.col("metric").replace_strict(places, default=len(REGISTRY), return_dtype=pl.Int64)
    )
    if sets:
        ordered = ordered.with_columns(place_of_set=pl.col("set").rank("dense"))
    return ordered.sort("place", *keys, *sets, maintain_order=True).drop("place", *sets)


_SUMMARY_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(SUMMARY_KEYS, pl.String),
    "n": pl.Int64,
    **dict.fromkeys(
        (
            "median",
            "median_low",
            "median_high",
            "mean",
            "mean_low",
            "mean_high",
            "p5",
            "p10",
            "p25",
            "p75",
            "p90",
            "p95",
            "min",
            "max",
            "deviation",
        ),
        pl.Float64,
    ),
    "outliers": pl.List(pl.String),
}

_COMPARE_SCHEMA: dict[str, Any] = {
    **dict.fromkeys((*KEYS, "metric", "unit"), pl.String),
    "n_first": pl.Int64,
    "n_second": pl.Int64,
    "paired": pl.Boolean,
    **dict.fromkeys(
        (
            "median_first",
            "median_second",
            "shift",
            "shift_low",
            "shift_high",
            "cliffs_delta",
        ),
        pl.Float64,
    ),
    "test": pl.String,
    "p": pl.Float64,
}
