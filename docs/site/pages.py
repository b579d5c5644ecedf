# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Extension of Sphinx: pages written for code hosts become pages of the site.

- A page ``NAME.md`` beside a folder ``NAME`` lists the pages of the folder in the navigation.
- Anchors in HTML (``<a id="seed"></a>``) become targets, so that Sphinx checks links to them.
- Links to Markdown files that are no pages of the site, and to folders, become downloads and text.
- Pages that docstrings name (``docs/workloads.md``) become links.
- Blocks of the language of workloads have no colours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
NAMED = re.compile(r"(?<![`\w/])(docs/[\w./-]+)\.md")
LINK = re.compile(r"\]\(([\w./-]+\.md)(#[\w-]+)?\)")


def adapt(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn what a code host understands into what Sphinx does."""
    page = Path(app.srcdir) / docname

    def of_link(match: re.Match[str]) -> str:
        target = (page.parent / match[1]).resolve()
        known = target.is_relative_to(app.srcdir) and (
            target.relative_to(app.srcdir).with_suffix("").as_posix() in app.env.found_docs
        )
        return match[0] if known else f"](path:{match[1]})"

    text = LINK.sub(of_link, ANCHOR.sub(r"[]{#\1}", source[0]))
    if docname.startswith("docs/") and page.is_dir():
        below = "\n".join(f"{page.name}/{one.stem}" for one in sorted(page.glob("*.md")))
        text += f"\n\n```{{toctree}}\n:hidden:\n\n{below}\n```\n"
    source[0] = text


def link(app: Sphinx, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """Make links of the pages that a docstring names."""
    lines[:] = [NAMED.sub(r":doc:`/\1`", line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", adapt)
    app.connect("autodoc-process-docstring", link)
    app.add_lexer("workload", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
