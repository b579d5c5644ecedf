# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of `airpath plot`, as they are, for the first runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from markupsafe import Markup

    from airpath.report.entry import Entry
    from airpath.report.material import Material

MOST_BYTES = 20_000_000
"""All pictures together; further runs' are left to `airpath plot`."""


def build(material: Material) -> Section | None:
    """Return the pictures of the first runs."""
    groups: list[tuple[Entry, list[tuple[str, Markup]]]] = []
    size = 0
    for entry, drawn in material.drawn():
        entry.run.notes += [note for note in drawn.notes if note not in entry.run.notes]
        grown = size + sum(len(svg) for _, svg in drawn.pictures)
        if groups and grown > MOST_BYTES:
            break
        size = grown
        if drawn.pictures:
            groups.append((entry, drawn.pictures))
    if not groups:
        return None
    left_out = len(material.entries) - len(groups)
    return Section("pictures", "Pictures", fill("pictures", groups=groups, left_out=left_out))
