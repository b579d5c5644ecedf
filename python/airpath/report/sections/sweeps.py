"""What changes with each parameter that was swept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.report import gallery
from airpath.report.page import Section, fill
from airpath.report.sections.pictures import inline_svg

if TYPE_CHECKING:
    from airpath.report.material import Material

MOST_PICTURES = 12


def build(material: Material) -> Section | None:
    """Return a picture for each parameter of each set."""
    pictures = [(name, inline_svg(one, name)) for name, one in gallery.of_sweeps(material)]
    if not pictures:
        return None
    shown = pictures[:MOST_PICTURES]
    body = fill("sweeps", pictures=shown, left_out=len(pictures) - len(shown))
    return Section("sweeps", "Sweeps", body)
