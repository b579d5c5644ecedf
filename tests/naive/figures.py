# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures of samples."""

from __future__ import annotations

import math


def quantile(samples: list[float], share: float) -> float:
    """Return a quantile with linear interpolation."""
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def figures(name: str, samples: list[float]) -> dict[str, float]:
    """Return the statistics of samples, as the analysis calls them."""
    if not samples:
        return {}
    return {
        f"{name}_min": min(samples),
        f"{name}_mean": sum(samples) / len(samples),
        f"{name}_median": quantile(samples, 0.5),
        f"{name}_p95": quantile(samples, 0.95),
        f"{name}_p99": quantile(samples, 0.99),
        f"{name}_max": max(samples),
    }


def fairness(goodputs: list[float]) -> float:
    """Return Jain's index as one over (1 + the square of the coefficient of variation)."""
    mean = sum(goodputs) / len(goodputs)
    variance = sum((one - mean) ** 2 for one in goodputs) / len(goodputs)
    return 1 / (1 + variance / mean**2)
