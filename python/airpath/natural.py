# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Names in the order in which people read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airpath.facts import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable

_FACTORS = {unit: factor for units in UNITS.values() for unit, factor in units.items()}


def natural_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of the amounts in them: 4 packets before 16, 20 ms before 1 s."""

    def key(name: str) -> list[tuple[float, str]]:
        parts: list[tuple[float, str]] = []
        # What follows a number up to the next sign or number is its unit, if it is one.
        for text, number, unit in re.findall(
            r"([^0-9]*)(?:([0-9]+(?:\.[0-9]+)?)\s*([a-zµμ%]+(?:/s)?)?)?", name, re.IGNORECASE
        ):
            parts.append((-1.0, text))
            if number:
                parts.append((float(number) * _FACTORS.get(unit, 1), ""))
                parts.append((-1.0, "" if unit in _FACTORS else unit))
        return parts

    return sorted(names, key=key)
