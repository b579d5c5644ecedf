# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Amounts as a reader takes them in: three digits and a unit."""

from __future__ import annotations

NOTHING = "\u2013"
"""Placeholder for an unknown value."""

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))


def time(value_ns: float | None) -> str:
    """Return a time given in ns."""
    return NOTHING if value_ns is None else _amount(value_ns, _TIMES, "ns")


def rate(value_bps: float | None) -> str:
    """Return a rate given in bit/s."""
    return NOTHING if value_bps is None else _amount(value_bps, _RATES, "bit/s")


def _amount(value: float, units: tuple[tuple[float, str], ...], least: str) -> str:
    for divisor, unit in units:
        if abs(value) >= divisor:
            return f"{_digits(value / divisor)} {unit}"
    return f"{_digits(value)} {least}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
