# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Names of figures that programs tell in several ways, for their readers and for the metrics."""

from __future__ import annotations

RESPONSE_TIMES = (
    ("min", "least", "min_seconds"),
    ("mean", "mean", "mean_seconds"),
    ("median", "median", "p50_seconds"),
    ("p99", "99th percentile", "p99_seconds"),
    ("max", "greatest", "max_seconds"),
)
"""End of the metric's name, words, and the key in the JSON of airpath send."""

ECHO_TIMES = {
    "min": "least",
    "mean": "mean",
    "median": "median",
    "p99": "99th percentile",
    "max": "greatest",
}
"""End of the metric's name, and words."""
