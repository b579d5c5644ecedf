# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Statistics of a channel beside what theory says of it.

Powers are relative to the mean over all slots and resources. Theory of crossings and fades: Rice
1948, for Rayleigh fading with the classical spectrum; of correlations: Jakes 1974, sections 1.3 and
1.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import j0
from scipy.stats import ncx2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airpath.fading.table import Table

LEVELS_DB = (-10.0, -5.0, 0.0)
"""Levels of crossings and fades, relative to the mean."""
PERIODS = (0.1, 0.2, 0.3, 0.5)
"""Lags of the autocorrelation, in periods of the greatest Doppler frequency."""
SLOTS_PER_SECOND = 1500
"""Of files that do not say."""


@dataclass(frozen=True)
class Figure:
    """A figure of a channel, and what theory says."""

    name: str
    unit: str
    measured: float | None
    theory: float | None


def measure(table: Table, slots_per_second: float) -> list[Figure]:
    """Return the figures of a channel."""
    theory = table.theory
    powers = relative(table)
    rayleigh = _is_rayleigh(theory)
    doppler = theory.get("doppler_hz") if rayleigh else None
    mean = 10 * math.log10(float((10 ** (table.decibels / 10)).mean()))
    figures = [Figure("mean SNR", "dB", mean, theory.get("mean_db"))]
    for level in LEVELS_DB:
        rho = 10 ** (level / 20)
        scale = rho * doppler * math.sqrt(2 * math.pi) if doppler else None
        rate, fade = crossings(powers, rho * rho, slots_per_second)
        known = scale * math.exp(-rho * rho) if scale else None
        figures.append(Figure(f"crossings of {level:g} dB", "1/s", rate, known))
        known = math.expm1(rho * rho) / scale if scale else None
        figures.append(
            Figure(
                f"mean fade below {level:g} dB",
                "ms",
                None if fade is None else fade * 1e3,
                known * 1e3 if known else None,
            )
        )
    for periods in PERIODS:
        lag = round(periods / doppler * slots_per_second) if doppler else 0
        if doppler and 0 < lag < len(powers):
            known = float(j0(2 * math.pi * doppler * lag / slots_per_second)) ** 2
            name = f"autocorrelation of power after {1e3 * lag / slots_per_second:.3g} ms"
            figures.append(Figure(name, "", float(autocorrelation(powers, lag)[lag]), known))
    figures += _frequency(powers, theory)
    return figures


def relative(table: Table) -> NDArray[np.float64]:
    """Return powers relative to their mean."""
    powers = 10 ** (table.decibels / 10)
    scaled: NDArray[np.float64] = powers / powers.mean()
    return scaled


def crossings(
    powers: NDArray[np.float64], level: float, slots_per_second: float
) -> tuple[float, float | None]:
    """Return downward crossings of a level in a second, and the mean fade in seconds."""
    below = powers < level
    number = int(np.count_nonzero(below[1:] & ~below[:-1]))
    seconds = powers.size / slots_per_second
    fade = int(np.count_nonzero(below)) / slots_per_second / number if number else None
    return number / seconds, fade


def autocorrelation(powers: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Return the correlation of powers over time up to a lag in slots, the mean over resources."""
    centred = powers - powers.mean()
    slots = len(centred)
    spectrum = np.fft.rfft(centred, 2 * slots, axis=0)
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: longest + 1].mean(axis=1)
    products = products / (slots - np.arange(longest + 1))
    # A channel that does not vary is all of one piece.
    return products / products[0] if products[0] > 0 else np.ones(longest + 1)


def over_frequency(powers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of powers of resources, by their distance in resources."""
    centred = powers - powers.mean()
    resources = centred.shape[1]
    means = [
        float((centred[:, : resources - apart] * centred[:, apart:]).mean())
        for apart in range(resources)
    ]
    return np.array(means) / means[0] if means[0] > 0 else np.ones(resources)


def frequency_theory(
    theory: dict[str, Any], offsets_hz: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the correlation of powers at distances in frequency, of Rayleigh fading taps."""
    delays, powers = np.array(theory["taps"], dtype=np.float64).T
    response = (powers * np.exp(-2j * np.pi * offsets_hz[:, None] * delays)).sum(axis=1)
    squared: NDArray[np.float64] = np.abs(response) ** 2
    return squared


def distribution(theory: dict[str, Any], powers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the share of powers that theory has below each, of Rayleigh and of Rice."""
    k = theory.get("k_factor")
    if k is None or theory.get("mean_db") is None:
        return None
    shares: NDArray[np.float64] = ncx2.cdf(2 * (k + 1) * powers, 2, 2 * k)
    return shares


def _is_rayleigh(theory: dict[str, Any]) -> bool:
    return bool(theory.get("is_classical")) and theory.get("mean_db") is not None


def _frequency(powers: NDArray[np.float64], theory: dict[str, Any]) -> list[Figure]:
    figures = []
    taps = theory.get("taps") or []
    if len(taps) > 1:
        delays, shares = np.array(taps).T
        mean = float((shares * delays).sum())
        spread = math.sqrt(float((shares * delays**2).sum()) - mean * mean)
        figures.append(Figure("delay spread", "us", None, spread * 1e6))
    spacing = theory.get("spacing_hz")
    if not spacing or powers.shape[1] < 2:
        return figures
    measured = _first_below(over_frequency(powers), spacing)
    known = None
    if len(taps) > 1 and theory.get("k_factor") == 0 and theory.get("mean_db") is not None:
        offsets = np.arange(100 * powers.shape[1]) * spacing / 100
        known = _first_below(frequency_theory(theory, offsets), spacing / 100)
    figures.append(
        Figure(
            "coherence bandwidth (power correlation 0.5)",
            "kHz",
            None if measured is None else measured / 1e3,
            None if known is None else known / 1e3,
        )
    )
    return figures


def _first_below(correlation: NDArray[np.float64], step: float) -> float | None:
    """Return where a correlation first is 0.5, by a straight line."""
    places = np.flatnonzero(correlation < 0.5)
    if len(places) == 0:
        return None
    place = int(places[0])
    before, after = correlation[place - 1], correlation[place]
    return float((place - 1 + (before - 0.5) / (before - after)) * step)
