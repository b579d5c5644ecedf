# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Extension of Sphinx: a notebook with its stored outputs is a page.

The notebook becomes Markdown: text as it is, code and what it printed as blocks, pictures as
pictures. Nothing is executed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from myst_parser.parsers.sphinx_ import MystParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils.nodes import document
    from sphinx.application import Sphinx


class NotebookParser(MystParser):  # type: ignore[misc]
    """Parser of notebooks: that of Markdown, which reads what ``markdown`` makes of them."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: document) -> None:
        """Parse a notebook into a document."""
        super().parse("\n\n".join(markdown(json.loads(inputstring))), document)


def markdown(notebook: dict[str, Any]) -> Iterator[str]:
    """Yield the blocks of a notebook."""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            yield text
            continue
        yield fenced(text, "python")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = "".join(data["image/png"]).replace("\n", "")
                yield f"![](data:image/png;base64,{picture})"
            else:
                yield fenced("".join(data.get("text/plain", output.get("text", ""))), "text")


def fenced(text: str, language: str) -> str:
    """Return a block of code or output."""
    return f"````{language}\n{text.rstrip()}\n````"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
