# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of measurements of sleep methods, after Gurtov 1999.

One module a picture, each with ``draw(reports) -> list[Picture]``; an entry in ``KINDS`` puts it
into ``airpath timing plot``. Several measurements stand side by side, to the same axes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airpath.plots.style import Picture
    from airpath.timing import Report

KINDS = {
    "line-rate": "line_rate",
    "packet-delay": "packet_delay",
    "requests": "requests",
    "errors": "errors",
    "cost": "cost",
}
"""Name of each kind of picture, and the module that draws it."""


def nothing(kind: str) -> str:
    """Say why there is no picture of a kind."""
    if kind == "line-rate":
        return "no line rates in these measurements; airpath timing --line-rates measures them"
    return "no way of sleeping was available in these measurements"


def draw(reports: Sequence[Report], kinds: Iterable[str]) -> list[Picture]:
    """Draw pictures of some kinds; those for which no report has data are left out.

    Raises:
        TimingError: the samples of a report cannot be read.

    """
    pictures = []
    for kind in kinds:
        module = importlib.import_module(f"airpath.plots.timing.{KINDS[kind]}")
        pictures += module.draw(reports)
    return pictures
