# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures as elements of the page, drawn by a crew while the rest of the page is made."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
from markupsafe import Markup

from airpath.plots.style import SETTINGS

if TYPE_CHECKING:
    from airpath.plots.style import Picture
    from airpath.workers import Crew, Promise

_PLACE = "<!--picture {}-->"
"""Stands for a picture until the page is complete. No text on the page is like it: all other text
is escaped."""
_PLACES = re.compile(_PLACE.format(r"(\d+)"))


class Drawings:
    """The pictures of a page."""

    def __init__(self, crew: Crew) -> None:
        """Take the crew that draws them."""
        self._crew = crew
        self._promises: list[Promise[Markup]] = []

    def later(self, picture: Picture, identity: str) -> Markup:
        """Have a picture drawn, which nobody changes any more; return what stands for it.

        Args:
            picture: the picture.
            identity: begins its inner ids.

        """
        self._promises.append(self._crew.begin(_drawn, (picture, identity)))
        return Markup(_PLACE.format(len(self._promises) - 1))

    def put_into(self, page: str) -> str:
        """Return the page with all pictures."""
        found = {place: self._crew.result(one) for place, one in enumerate(self._promises)}
        return _PLACES.sub(lambda match: found[int(match[1])], page)


def _drawn(task: tuple[Picture, str]) -> Markup:
    return inline_svg(*task)


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
