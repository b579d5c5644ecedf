# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Analysis of runs: metrics per replication, figures per set, comparisons of sets."""

from airpath.analysis.folders import Replication, find
from airpath.analysis.metric import REGISTRY, Metric, UnknownMetricError
from airpath.analysis.table import frame, measure

__all__ = [
    "REGISTRY",
    "Metric",
    "Replication",
    "UnknownMetricError",
    "find",
    "frame",
    "measure",
]
