# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The values of one run that every page has, and those that an experiment wants beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import REGISTRY, choose
from airpath.analysis.requests import SIZES
from airpath.analysis.table import COLUMNS, measure
from airpath.run import RunError, contradictions_named

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
    """Measure a run; what kept it from being measured is noted there.

    Args:
        run: the run.
        more: metrics of the registry beyond the usual ones; other names are left out.

    """
    usual = [*(metric.name for metric in choose(None)), "program_*", *MAIN, *ALSO]
    names = dict.fromkeys([*usual, *(name for name in more if name in REGISTRY)])
    try:
        with contradictions_named(run.directory):
            return measure(run, choose(list(names)))
    except RunError as error:
        run.notes.append(f"not measured: {error}")
        return pl.DataFrame(schema={name: COLUMNS[name] for name in list(COLUMNS)[4:]})
