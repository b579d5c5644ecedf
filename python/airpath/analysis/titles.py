# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Names of metrics in words, for sentences and for axes of pictures."""

from __future__ import annotations

_TITLES = {
    "elapsed": "elapsed time",
    "goodput_overlap": "goodput while all send",
    "jain_fairness": "Jain's index",
    "jain_fairness_overlap": "Jain's index while all send",
    "program_frames_on_time_ratio": "share of frames on time",
    "reordered_ratio": "share of reordered packets",
}
"""Metrics whose names in files do not read as words."""

_OF_PROGRAMS = "program_"

_STATISTICS = {
    "_min": "least {}",
    "_mean": "mean {}",
    "_median": "median {}",
    "_max": "greatest {}",
    "_p95": "95th percentile of {}",
    "_p99": "99th percentile of {}",
}


def title(metric: str) -> str:
    """Return the name of a metric as one says it: "program_delay_mean" is "mean delay"."""
    if metric in _TITLES:
        return _TITLES[metric]
    name = metric.removeprefix(_OF_PROGRAMS)
    for ending, words in _STATISTICS.items():
        if name.endswith(ending):
            return words.format(name.removesuffix(ending).replace("_", " "))
    return name.replace("_", " ")


def capital(text: str) -> str:
    """Return words with a capital at their beginning, others as they are."""
    return text[:1].upper() + text[1:]


def is_share(metric: str) -> bool:
    """Say whether a metric is a part of a whole, which one says in per cent."""
    return metric.endswith("_ratio")
