# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The values of one run that every page has, and those that an experiment wants beside them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import REGISTRY, choose
from airpath.analysis.requests import SIZES
from airpath.analysis.table import COLUMNS, VALUES, measure_together
from airpath.analysis.together import measure_each
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.run import Run

MAIN = (
    "elapsed",
    "elapsed_time",
    "transfer_time",
    "goodput",
    "retransmitted_segments",
    "timeouts",
    "packets_lost",
    "one_way_delay_median",
    "jain_fairness",
    "quic_packets_lost",
    "quic_rtt_median",
)
"""Metrics of the registry that tables and pictures of sets show, in this order."""

ALSO = (SIZES,)
"""Needed to tell transfers from requests."""


def values_of(run: Run, more: Sequence[str] = ()) -> pl.DataFrame:
    """Measure a run, as ``values_of_runs`` does."""
    (values,) = values_of_runs([run], more)
    return values


def values_of_runs(runs: Sequence[Run], more: Sequence[str] = ()) -> list[pl.DataFrame]:
    """Measure each of some runs; what kept one from being measured is noted there.

    Args:
        runs: a batch of runs.
        more: metrics of the registry beyond the usual ones; other names are left out.

    """
    usual = [*(metric.name for metric in choose(None)), "program_*", *MAIN, *ALSO]
    names = dict.fromkeys([*usual, *(name for name in more if name in REGISTRY)])
    together = partial(measure_together, metrics=choose(list(names)))
    found = []
    for run, values in zip(runs, measure_each(runs, together), strict=True):
        if isinstance(values, RunError):
            run.notes.append(f"not measured: {values}")
            found.append(pl.DataFrame(schema={name: COLUMNS[name] for name in VALUES}))
        elif isinstance(values, Exception):
            raise values
        else:
            found.append(values)
    return found
