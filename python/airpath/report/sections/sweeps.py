# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Changes with each network, workload and parameter that takes several values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.report import gallery
from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from airpath.report.material import Material

MOST_PICTURES = 12


def build(material: Material) -> Section | None:
    """Return a picture for each parameter of each set."""
    notes: list[str] = []
    pictures = list(gallery.of_sweeps(material, notes))
    if not pictures:
        return None
    shown = [(name, material.drawings.later(one, name)) for name, one in pictures[:MOST_PICTURES]]
    body = fill("sweeps", pictures=shown, left_out=len(pictures) - len(shown), notes=notes)
    return Section("sweeps", "Sweeps", body)
