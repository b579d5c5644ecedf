# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page itself: templates, styles and script put together."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from airpath.plots import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.report.material import Material

COLOURS = {
    "segment": style.BLUE,
    "retransmission": style.VERMILLION,
    "acknowledged": style.GREEN,
    "selective": style.PURPLE,
    "state": style.GREY,
    "cwnd": "#7A4B00",
    "rto": "#A0528A",
    "bands": style.SKY,
}
"""Colours of things, in diagrams as in the pictures."""

SCRIPTS = ("folding.js", "drawing.js", "diagram.js", "layers.js", "tables.js")
"""In the order of the page: what prints has to be unfolded before it is drawn."""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    identity: str
    """Its id in the page, which stays the same from version to version."""
    title: str
    body: Markup
    """Its content, escaped where it has to be."""
    folded: bool = True
    """True if only its title is seen until somebody asks for more; print has all."""


@functools.cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates: everything is escaped, nothing may be missing."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("airpath.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fill(template: str, **values: Any) -> Markup:
    """Return a template of a section, filled in."""
    return Markup(environment().get_template(f"{template}.html").render(**values))


def data(content: object) -> Markup:
    """Return content as JSON that may stand in a script element."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    # Neither the end of the element nor a comment may come about inside it.
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def render(material: Material, sections: Sequence[Section]) -> str:
    """Return the whole page."""
    static = resources.files("airpath.report") / "static"
    return (
        environment()
        .get_template("page.html")
        .render(
            title=material.title,
            notes=material.notes,
            sections=sections,
            version=material.version,
            css=Markup((static / "report.css").read_text()),
            script=Markup("".join((static / name).read_text() for name in SCRIPTS)),
            colours=data(COLOURS),
        )
    )
