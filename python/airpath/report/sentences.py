# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results in words: what came out of each comparison, of sets, and of single runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airpath.analysis.text import PLACE, between, differing, number, scale, where
from airpath.analysis.titles import capital, is_share, title
from airpath.plots import sweeps
from airpath.plots.style import drop_styles
from airpath.report import units
from airpath.report.contrasts import CELL, level

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import polars as pl

    from airpath.report.comparison import Comparison
    from airpath.report.entry import Entry

MOST_STRATA = 4
"""Strata whose effects are named one by one."""


@dataclass(frozen=True)
class Sentence:
    """One result: what it is about, and what came out."""

    subject: str
    words: str


def metric_name(key: Mapping[str, str], told: Collection[str] = PLACE) -> str:
    """Return the name of a metric, with what of its place is told."""
    of = where(key, told)
    return title(key["metric"]) + (f" ({of})" if of else "")


def _scale(key: Mapping[str, str], values: Sequence[float | None]) -> tuple[float, str]:
    """Return divisor and unit in which values of a metric read best."""
    return (0.01, "%") if is_share(key["metric"]) else scale(key["unit"], values)


def times(ratio: float) -> str:
    """Return a ratio: two decimals, or three digits where it is small or large."""
    return f"{ratio:.2f}" if 0.1 <= ratio < 10 else f"{ratio:.3g}"


def sentence(one: Comparison, told: Collection[str] = ()) -> Sentence:
    """Return what a comparison found.

    Args:
        one: the comparison.
        told: what is said of the place of its metric: the columns that tell it from others.

    """
    metric = metric_name(one.key, told)
    first = one.contrast.first
    if one.contrast.factor != CELL:
        first = sweeps.value_text(one.contrast.factor, first)
    words = [*_effect(one, metric, first), _counted(one)]
    named = subject(one)
    # A name that somebody gave stays as it is.
    about = named if one.contrast.factor == CELL else capital(named)
    return Sentence(about, ", ".join(words) + _of_strata(one))


def subject(one: Comparison) -> str:
    """Return the value that is compared with the first: "queue limit 16 packets"."""
    named = level(one.contrast.factor, one.contrast.second)
    return f"{one.contrast.group}, {named}" if one.contrast.group else named


def _effect(one: Comparison, metric: str, first: str) -> list[str]:
    effect = one.effect
    if effect.is_ratio:
        words = f"{times(effect.estimate)} times the {metric} with {first}"
        interval = f"{times(effect.low)} to {times(effect.high)}"
    else:
        divisor, unit = _scale(one.key, [effect.estimate, effect.low, effect.high])
        amount = " ".join(filter(None, (number(abs(effect.estimate), divisor), unit)))
        way = "more" if effect.estimate > 0 else "less"
        words = f"{metric}: {amount} {way} than with {first}"
        interval = signed(between(effect.low, effect.high, divisor))
    if effect.p is None:
        return [words, "in every run"]
    together = "simultaneous " if one.tests > 1 else ""
    return [words, f"{together}95 % interval {interval}"]


def _counted(one: Comparison) -> str:
    effect = one.effect
    if not effect.paired:
        return f"{effect.first} and {effect.second} runs"
    if len(one.strata) == 1:
        return f"{effect.first} pairs"
    return f"{effect.first} pairs in each of {_what(one)}"


def _what(one: Comparison) -> str:
    number_of = len(one.strata)
    if len(one.contrast.others) != 1:
        return f"{number_of} combinations"
    other = sweeps.short(one.contrast.others[0]).replace("_", " ")
    plain = other in ("network", "workload", "cell")
    return f"{number_of} {other}s" if plain else f"{number_of} values of {other}"


def _of_strata(one: Comparison) -> str:
    """Return the effects of the strata, if there are several."""
    return f" ({strata(one)})" if len(one.strata) > 1 else ""


def strata(one: Comparison) -> str:
    """Return the effect of each stratum alone, or of many their range."""
    effects = one.effect.of_blocks
    divisor = 1.0 if one.effect.is_ratio else _scale(one.key, effects)[0]
    shown = [
        times(effect) if one.effect.is_ratio else signed(number(effect, divisor))
        for effect in effects
    ]
    if len(effects) <= MOST_STRATA:
        return "; ".join(f"{name}: {text}" for name, text in zip(one.strata, shown, strict=True))
    return f"from {shown[effects.index(min(effects))]} to {shown[effects.index(max(effects))]}"


def signed(text: str) -> str:
    """Return a number with the minus sign of print."""
    return text.replace("-", "\N{MINUS SIGN}")


def not_told_apart(found: Sequence[Comparison], told: Collection[str] = ()) -> list[Sentence]:
    """Return comparisons that the data do not support, with what could be."""
    return [sentence(one, told) for one in found if not one.supported]


def of_sets(summary: pl.DataFrame, most: int) -> list[Sentence]:
    """Return the medians of sets, for pages with nothing to compare."""
    told = differing(summary.iter_rows(named=True))
    of_one_set = summary["set"].n_unique() == 1
    found = []
    for row in summary.head(most).iter_rows(named=True):
        divisor, unit = _scale(row, [row["median"], row["median_high"]])
        words = " ".join(filter(None, (number(row["median"], divisor), unit)))
        if row["n"] > 1:
            more = [f"median of {row['n']} runs"]
            if row["median_low"] is not None:
                ends = between(row["median_low"], row["median_high"], divisor)
                more.append(f"95 % interval {ends}")
            words += f" ({', '.join(more)})"
        name = metric_name(row, told)
        said = (capital(name), words) if of_one_set else (row["set"], f"{name} {words}")
        found.append(Sentence(*said))
    return found


def of_run(entry: Entry) -> Sentence:
    """Return what a single run did."""
    facts = entry.facts
    words = [f"{units.time(facts.duration_ns)}"]
    for direction, way in facts.ways.items():
        if way.goodput_bps is not None:
            words.append(f"goodput {units.rate(way.goodput_bps)} {direction}")
    for direction, way in facts.ways.items():
        if way.delivered and way.delay_p50_ns is not None:
            words.append(f"median delay {units.time(way.delay_p50_ns)} {direction}")
    words.append(_dropped(facts.drops))
    return Sentence(entry.label, ", ".join(words))


def _dropped(drops: Mapping[str, int]) -> str:
    """Return how many packets were dropped, and why, the most frequent cause first."""
    total = sum(drops.values())
    words = f"{total:,} {'packet' if total == 1 else 'packets'} dropped"
    styles = drop_styles(drops)
    causes = sorted((-number, styles[cause].text) for cause, number in drops.items() if number)
    if len(causes) == 1:
        return f"{words}: {causes[0][1]}"
    told = ", ".join(f"{-number:,} {text}" for number, text in causes)
    return f"{words}: {told}" if told else words
