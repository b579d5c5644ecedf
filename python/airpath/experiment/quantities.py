# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Amounts with units, as experiment files write them: times, lengths, rates, shares."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from airpath.facts import UNIT_NAMES, UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_AMOUNT = re.compile(r"\s*([0-9_]*\.?[0-9]+)\s*(\S*)\s*")
BITS_PER_BYTE = 8


class QuantityError(ValueError):
    """An amount that cannot be understood; the message says what would be."""


def time_ns(text: str) -> int:
    """Return a time such as "1.5 min" in nanoseconds.

    Raises:
        QuantityError: there is no number, no unit, or no such unit.

    """
    return round(_with_unit(text, "time", "a time such as `90 s`"))


def lateness_bound(text: str) -> str:
    """Check a bound on lateness: a time such as "1 ms", or a share such as "5%" or "5%,100 us".

    Raises:
        QuantityError: it is neither.

    """
    share, comma, floor = (part.strip() for part in text.partition(","))
    if not share.endswith("%"):
        if comma:
            raise QuantityError(f"`{share}` is not a share: write for example 5% or 5%,100 us")
        time_ns(share)
        return text
    try:
        percent = float(share[:-1])
    except ValueError:
        raise QuantityError(f"`{share}` is not a share: write for example 5%") from None
    if not 0.0001 <= percent <= 100:
        raise QuantityError(f"`{share}` is not a share from 0.0001% to 100%")
    if comma:
        time_ns(floor)
    return text


def length_bytes(text: str) -> int:
    """Return a length such as "10 MB" (decimal) in bytes.

    Raises:
        QuantityError: there is no number, no unit, or no such unit.

    """
    length = _with_unit(text, "length", "a length such as `10 MB`") / BITS_PER_BYTE
    if length < 1 and length != 0:
        raise QuantityError(f"`{text}` is less than a byte")
    return round(length)


def rate_bps(text: str) -> int:
    """Return a rate such as "1.5 Mbit/s" in bit/s.

    Raises:
        QuantityError: there is no number, no unit, or no such unit.

    """
    return round(_with_unit(text, "rate", "a rate such as `2 Mbit/s`"))


def share(text: str) -> float:
    """Return a share such as "5 %" as a fraction of 1.

    Raises:
        QuantityError: it is no percentage above 0 %.

    """
    parts = _with_unit(text, "share", "a share above 0 % such as `5 %`")
    if parts <= 0:
        raise QuantityError(f"`{text}` is not a share above 0 % such as `5 %`")
    return float(parts / 10**12)


def _with_unit(text: str, quantity: str, what: str) -> Fraction:
    """Return an amount in the base unit of a quantity, exactly."""
    units, found = UNITS[quantity], _AMOUNT.fullmatch(text)
    if not found or found[2] not in units:
        raise QuantityError(f"`{text}` is not {what} (units: {', '.join(UNIT_NAMES[quantity])})")
    return Fraction(found[1].replace("_", "")) * units[found[2]]


def show_seconds(seconds: float) -> str:
    """Return a time for people: "48 ms", "2 min 05 s", "3 h 10 min"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def show_span(time_ns: int) -> str:
    """Return a time in three digits, as the engine shows it: "1.00 s", "48.2 ms"."""
    value, units = float(time_ns), ["ns", "us", "ms", "s"]
    # What rounds to four digits belongs into the next unit.
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    decimals = 0 if units[0] == "ns" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{decimals}f} {units[0]}"


def show_exactly(time_ns: int) -> str:
    """Return a time without rounding, as the engine shows it: "1650 min", "1.5 s"."""
    for unit in ("h", "min", "s", "ms", "us"):
        unit_ns = int(UNITS["time"][unit])
        whole, rest_ns = divmod(time_ns, unit_ns)
        if whole and not rest_ns:
            return f"{whole} {unit}"
        if whole and unit_ns < UNITS["time"]["min"] and rest_ns % (unit_ns // 1000) == 0:
            return f"{whole}.{rest_ns // (unit_ns // 1000):03}".rstrip("0") + f" {unit}"
    return f"{time_ns} ns"


def show_bytes(amount: float) -> str:
    """Return a length for people, in decimal units."""
    for unit in ("TB", "GB", "MB", "kB"):
        unit_bytes = UNITS["length"][unit] // BITS_PER_BYTE
        if amount >= unit_bytes:
            return f"{amount / unit_bytes:.3g} {unit}"
    return f"{amount:.0f} bytes"


def alike(metrics: Sequence[Mapping[str, float]]) -> str:
    """Say that runs of one cell are the same, if all of them came to the same; else nothing."""
    if len(metrics) < 2 or not metrics[0] or any(one != metrics[0] for one in metrics):
        return ""
    return (
        f"all {len(metrics)} runs are identical: the link and the workload have no randomness; "
        f'add loss = "1%" to the link, say, or run one'
    )


def counted(number: int, thing: str) -> str:
    """Return a number of things: "1 set", "3 sets"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
