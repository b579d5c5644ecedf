# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of `airpath plot`, as they are, for the first runs."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
from markupsafe import Markup

from airpath.plots import KINDS, draw
from airpath.plots.style import SETTINGS, Span
from airpath.report.page import Section, fill
from airpath.run import RunError

if TYPE_CHECKING:
    from airpath.plots.style import Picture
    from airpath.report.material import Material

MOST_BYTES = 20_000_000
"""All pictures together; further runs' are left to `airpath plot`."""


def build(material: Material) -> Section | None:
    """Return the pictures of the first runs."""
    groups: list[tuple[Any, list[tuple[str, Markup]]]] = []
    size = 0
    for entry in material.with_pictures:
        try:
            pictures = draw(entry.open(), KINDS, Span())
        except RunError as error:
            entry.run.notes.append(str(error))
            continue
        inline = []
        for picture in pictures:
            identity = f"picture-{entry.number}-{picture.name}"
            inline.append((identity, inline_svg(picture, identity)))
        grown = size + sum(len(svg) for _, svg in inline)
        if groups and grown > MOST_BYTES:
            break
        size = grown
        if inline:
            groups.append((entry, inline))
    if not groups:
        return None
    left_out = len(material.entries) - len(groups)
    return Section("pictures", "Pictures", fill("pictures", groups=groups, left_out=left_out))


def inline_svg(picture: Picture, identity: str) -> Markup:
    """Return a picture as an element of the page, its inner ids apart from other pictures'."""
    buffer = io.BytesIO()
    with mpl.rc_context(cast("Any", SETTINGS)):
        picture.figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]
    # Metadata and name spaces are for files; inside a page they would be addresses to nowhere.
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\bid="', f'id="{identity}-', text)
    text = re.sub(r"url\(#", f"url(#{identity}-", text)
    text = re.sub(r'href="#', f'href="#{identity}-', text)
    # The page scales it.
    text = re.sub(r'<svg([^>]*?)\swidth="[^"]*"', r"<svg\1", text, count=1)
    text = re.sub(r'<svg([^>]*?)\sheight="[^"]*"', r"<svg\1", text, count=1)
    name = picture.name.replace("-", " ")
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{name}"', 1))
