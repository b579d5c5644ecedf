# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The report: one page of HTML about one or several runs, complete in itself.

A section is a module of ``airpath.report.sections`` with ``build(material) -> Section | None``; an
entry in ``SECTIONS`` puts it on the page, in that order. The page asks nothing of the net:
pictures, styles, data and the script that draws diagrams are in it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from airpath.report.page import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.report.material import Material

SECTIONS = (
    "answer",
    "notes",
    "comparisons",
    "sets",
    "references",
    "sweeps",
    "verdicts",
    "hosts",
    "networks",
    "runs",
    "diagrams",
    "layers",
    "distributions",
    "pictures",
    "configuration",
)
"""Modules of the sections, in the order of the page."""


def write_report(material: Material, progress: Callable[[str], None]) -> str:
    """Return the page.

    Args:
        material: what it is about.
        progress: told before each section what is being made.

    """
    sections = []
    for name in SECTIONS:
        progress(name)
        section = importlib.import_module(f"airpath.report.sections.{name}").build(material)
        if section is not None:
            sections.append(section)
    progress("pictures that are left")
    return material.drawings.put_into(render(material, sections))
