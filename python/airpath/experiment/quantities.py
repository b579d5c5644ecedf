"""Amounts with units, as experiment files write them: times, lengths, rates, shares."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
BYTES = {
    "bytes": 1,
    "byte": 1,
    "B": 1,
    "kB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "TB": 1_000_000_000_000,
}
BITS_PER_SECOND = {
    "bit/s": 1,
    "kbit/s": 1_000,
    "Mbit/s": 1_000_000,
    "Gbit/s": 1_000_000_000,
}

_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%/]*)\s*")


class QuantityError(ValueError):
    """An amount that cannot be understood; the message says what would be."""


def time_ns(text: str) -> int:
    """Return a time such as "1.5 min" in nanoseconds.

    Raises:
        QuantityError: there is no number, no unit, or no such unit.

    """
    return _with_unit(text, NANOSECONDS, "a time such as `90 s`")


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
    return _with_unit(text, BYTES, "a length such as `10 MB`")


def rate_bps(text: str) -> int:
    """Return a rate such as "1.5 Mbit/s" in bit/s.

    Raises:
        QuantityError: there is no number, no unit, or no such unit.

    """
    return _with_unit(text, BITS_PER_SECOND, "a rate such as `2 Mbit/s`")


def share(text: str) -> float:
    """Return a share such as "5 %" as a fraction of 1.

    Raises:
        QuantityError: it is no percentage above 0 %.

    """
    found = _AMOUNT.fullmatch(text)
    if not found or found[2] != "%" or float(found[1]) <= 0:
        message = f"`{text}` is not a share above 0 % such as `5 %`"
        raise QuantityError(message)
    return float(found[1]) / 100


def _with_unit(text: str, units: dict[str, int], what: str) -> int:
    found = _AMOUNT.fullmatch(text)
    if not found or found[2] not in units:
        message = f"`{text}` is not {what} (units: {', '.join(units)})"
        raise QuantityError(message)
    return round(float(found[1]) * units[found[2]])


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


def show_bytes(amount: float) -> str:
    """Return a length for people, in decimal units."""
    for unit in ("TB", "GB", "MB", "kB"):
        if amount >= BYTES[unit]:
            return f"{amount / BYTES[unit]:.3g} {unit}"
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
