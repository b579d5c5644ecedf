# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Telling transfers from requests: what a flow carries little of beside its other direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis.metric import choose

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = "received_bytes"
"""The metric that tells transfers from requests."""

LEAST_SHARE = 0.1
"""A flow counts in a direction from this share of what it carried in the other: with less it
carries requests."""


def transfers_only(values: pl.DataFrame, asked: Sequence[str] | None = None) -> pl.DataFrame:
    """Leave out what flows sent as requests: little in one direction, much in the other.

    Args:
        values: the table of ``airpath.analysis.frame``, with the metric ``SIZES``.
        asked: the names of the metrics that shall stay, as ``frame`` takes them; all if there are
            none.

    """
    keys = ["set", "run", "flow", "direction"]
    bytes_ = values.filter(pl.col("metric") == SIZES).select(*keys, "value")
    most = pl.col("value").max().over("set", "run", "flow")
    requests = bytes_.filter(pl.col("value") < LEAST_SHARE * most).select(keys)
    kept = values.join(requests, on=keys, how="anti", maintain_order="left")
    if asked is None:
        return kept
    return kept.filter(pl.col("metric").is_in([metric.name for metric in choose(asked)]))
