# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Notes of the experimenters: Markdown beside the experiment's file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markupsafe import Markup

from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    from airpath.report.material import Material

_LEVEL = re.compile(r"h([1-6])")


def build(material: Material) -> Section | None:
    """Return the notes of all experiments on the page."""
    notes = material.presentation.notes
    if not notes:
        return None
    return Section("notes", "Notes", fill("notes", notes=[html(text) for text in notes]))


def html(text: str) -> Markup:
    """Return Markdown as part of a page: tables too, but no HTML of its own and no pictures.

    Headings begin below that of the section. A page asks nothing of the net and has no files
    beside it: of a picture its description is left.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.add_render_rule("image", _description)
    tokens = reader.parse(text)
    for token in tokens:
        if found := _LEVEL.fullmatch(token.tag):
            token.tag = f"h{min(int(found[1]) + 2, 6)}"
    return Markup(reader.renderer.render(tokens, reader.options, {}))


def _description(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    inside = tokens[index].children or []
    return f"<em>{renderer.renderInlineAsText(inside, options, env)}</em>"
