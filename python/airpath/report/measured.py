# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of the runs on a page: values, figures of sets, comparisons.

Everything comes from the registry of ``airpath.analysis``; nothing is computed anew here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.metric import REGISTRY
from airpath.analysis.program_output import reports_of, waited_for
from airpath.analysis.requests import transfers_only
from airpath.analysis.statistics import select_trusted, summarise
from airpath.analysis.table import COLUMNS
from airpath.analysis.why import of_sets
from airpath.experiment.about import parameters_of
from airpath.report import asked
from airpath.report.comparison import Comparison, compare_all
from airpath.report.contrasts import Contrast, contrasts
from airpath.report.presentation import selects
from airpath.report.values import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airpath.experiment.shown import Selector
    from airpath.report.entry import Entry

MOST_FLOWS = 6
"""Flows of a set that tables and pictures show; files have all."""


@dataclass
class Measured:
    """The tables of all runs."""

    values: pl.DataFrame
    """All values, with the columns of ``airpath.analysis.table.COLUMNS``."""
    parameters: dict[str, dict[str, Any]]
    """Swept parameters of each set of an experiment."""
    wanted: Sequence[Selector] = ()
    """The metrics that an experiment names for its page, and those of references, in order."""
    usual: bool = True
    """True if the page has the usual metrics beside them, before them."""
    asked: Sequence[Selector] = ()
    """The metrics that an experiment names, which comparisons test; none for the main one."""
    order: Sequence[str] = ()
    """The sets, in the order of the page."""
    flows: Sequence[str] = ()
    """Names that workloads give to flows, in the order of the workloads: the first is the one that
    an experiment is about."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Of sets without any trusted run: why, and what to do."""

    notes: list[str] = field(default_factory=list)

    @cached_property
    def main(self) -> pl.DataFrame:
        """The main metrics of trusted runs."""
        usual = _main(self.values) if self.usual else pl.DataFrame(schema=COLUMNS)
        parts = [asked.without_synonyms(usual, [one.name for one in self.wanted])]
        if self.wanted:
            parts.append(_chosen(self.values, self.wanted))
        shown = pl.concat(parts).unique(maintain_order=True)
        return select_trusted(shown, include_untrusted=False).table

    def place(self, row: Mapping[str, Any]) -> tuple[int, int]:
        """Return where a metric stands among columns, from its row's metric, direction and flow."""
        flows = list(self.flows)
        flow = flows.index(row["flow"]) if row.get("flow") in flows else len(flows)
        return self._place_of_metric(row), flow

    def _place_of_metric(self, row: Mapping[str, Any]) -> int:
        order = ("elapsed", *MAIN) if self.usual else ()
        if row["metric"] in order:
            return order.index(row["metric"])
        for place, selector in enumerate(self.wanted, len(order)):
            if selects(selector, row):
                return place
        return len(order) + len(self.wanted)

    @cached_property
    def left_out(self) -> list[str]:
        """Runs that do not enter the figures of their sets, and the reasons."""
        return select_trusted(self.values, include_untrusted=False, why=self.why).notes

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Figures of each set."""
        return summarise(self.main)

    @cached_property
    def tested(self) -> list[dict[str, str]]:
        """The metrics that comparisons test, each with the flow, direction and hop it is of."""
        return asked.tested(self.main, self.asked, self.flows)

    @property
    def tested_summary(self) -> pl.DataFrame:
        """Figures of each set for the metrics that comparisons test."""
        wanted = pl.DataFrame(self.tested, schema=dict.fromkeys(asked.KEYS, pl.String))
        # In the order in which they were asked for, not in that of tables.
        found = wanted.join(self.summary, on=asked.KEYS, how="inner", maintain_order="left")
        return self.summary if found.is_empty() else found.select(self.summary.columns)

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """The comparisons that the experiment asks for, or of each set with the first."""
        runs = dict(self.main.group_by("set").agg(pl.col("run").n_unique()).iter_rows())
        return contrasts([name for name in self.order if runs.get(name, 0) > 1], self.parameters)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of the metrics tested, the most important first."""
        return compare_all(self.main, self.contrasts, self.tested)


def measure_all(
    entries: Sequence[Entry],
    wanted: Sequence[Selector] = (),
    *,
    usual: bool = True,
    asked_for: Sequence[Selector] = (),
) -> Measured:
    """Return the tables of all runs.

    Args:
        entries: the runs.
        wanted: metrics that the page shows.
        usual: whether it has those that every page has too.
        asked_for: metrics that comparisons test; none for the main one.

    """
    parts = [pl.DataFrame(schema=COLUMNS)]
    for entry in entries:
        values = entry.values
        seed = entry.run.manifest.get("seed")
        parts.append(
            values.select(
                set=pl.lit(entry.set_name),
                run=pl.lit(entry.name),
                # Seeds beyond what a column holds pair with nothing.
                seed=pl.lit(
                    seed if isinstance(seed, int) and seed < 2**63 else None, dtype=pl.Int64
                ),
                verdict=pl.lit("damaged" if entry.run.damage else entry.run.verdict),
                **{name: pl.col(name) for name in list(COLUMNS)[4:]},
            )
        )
    return Measured(
        pl.concat(parts),
        parameters_of_sets(entries),
        wanted,
        usual,
        asked_for,
        list(dict.fromkeys(entry.set_name for entry in entries)),
        _flows_in_order(entries),
        of_sets(entries),
    )


def _flows_in_order(entries: Iterable[Entry]) -> list[str]:
    """Return the names of the workloads and programs of the first run of each set, in order."""
    first = {entry.set_name: entry for entry in reversed(list(entries))}
    found: list[str] = []
    for entry in reversed(first.values()):
        told = [*reports_of(entry.run.manifest), *waited_for(entry.run.directory)]
        found += [one["name"] for one in told]
    return list(dict.fromkeys(found))


def parameters_of_sets(entries: Iterable[Entry]) -> dict[str, dict[str, Any]]:
    """Return for each set of an experiment what tells it from others."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.about and entry.set_name not in found:
            found[entry.set_name] = parameters_of(entry.about)
    return found


def _main(values: pl.DataFrame) -> pl.DataFrame:
    """Return what tables of sets show."""
    kept = transfers_only(values)
    flows = kept.filter((pl.col("flow") != "") & (pl.col("metric") == "goodput"))
    first = (
        flows.select("set", "flow")
        .unique(maintain_order=True)
        .filter(pl.int_range(pl.len()).over("set") < MOST_FLOWS)
    )
    of_flow = kept.join(first, on=["set", "flow"], how="semi", maintain_order="left")
    of_quic = kept.filter(pl.col("metric").str.starts_with("quic_"))
    chosen = pl.concat([kept.filter(pl.col("flow") == ""), of_flow, of_quic]).unique(
        maintain_order=True
    )
    known = pl.col("metric").is_in(MAIN)
    # A hop's figures repeat those of the path in the runs with one hop.
    return chosen.filter(known & (pl.col("hop") == ""))


def _chosen(values: pl.DataFrame, wanted: Sequence[Selector]) -> pl.DataFrame:
    """Return the metrics wanted: of queues at every hop, of all others over the whole path.

    A metric of flows, users or programs is that of the first MOST_FLOWS of them.
    """
    kept = transfers_only(values)
    first = (
        kept.filter(pl.col("flow") != "")
        .select("set", "metric", "flow")
        .unique(maintain_order=True)
        .filter(pl.int_range(pl.len()).over("set", "metric") < MOST_FLOWS)
    )
    of_flow = kept.join(first, on=["set", "metric", "flow"], how="semi", maintain_order="left")
    shown = pl.concat([kept.filter(pl.col("flow") == ""), of_flow]).unique(maintain_order=True)
    place = pl.lit(None, dtype=pl.Int64)
    for number, selector in enumerate(wanted):
        one = pl.col("metric") == selector.name
        if selector.direction:
            one &= pl.col("direction") == selector.direction
        if selector.name in REGISTRY and REGISTRY[selector.name].scope == "direction":
            one &= pl.col("hop") == ""
        place = pl.coalesce(place, pl.when(one).then(number))
    # Pictures have panels in the order in which metrics first come.
    ordered = shown.with_columns(place=place).filter(pl.col("place").is_not_null())
    return ordered.sort("place", maintain_order=True).drop("place")


def metric_words(name: str) -> str:
    """Return the definition of a metric, for who points at it."""
    return REGISTRY[name].text
