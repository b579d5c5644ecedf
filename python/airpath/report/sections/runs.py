# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One row a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.plots.style import drop_styles
from airpath.report import units
from airpath.report.page import Section, fill
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from airpath.report.material import Material


def build(material: Material) -> Section:
    """Return the table of all runs."""
    causes = sorted({cause for entry in material.entries for cause in entry.facts.drops})
    styles = drop_styles(causes)
    body = fill(
        "runs",
        entries=material.entries,
        directions=DIRECTIONS,
        causes=[(cause, styles[cause].text) for cause in causes],
        units=units,
    )
    return Section("runs", "Runs", body)
