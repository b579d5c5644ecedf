# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The definitions of all metrics as Markdown, for docs/analysis.md.

``python -m airpath.analysis.definitions docs/analysis.md`` writes them anew between its marks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from airpath.analysis import table
from airpath.analysis.metric import in_order

BEGIN = "<!-- metrics: written by python -m airpath.analysis.definitions docs/analysis.md -->"
END = "<!-- end of metrics -->"


def markdown() -> str:
    """Return a table for each group of metrics."""
    assert table.DECLARED_IN  # their import fills the registry
    lines: list[str] = []
    group = ""
    for metric in in_order():
        if metric.group != group:
            group = metric.group
            lines += ["", f"### {group}", "", "| metric | unit | definition | source |"]
            lines.append("|---|---|---|---|")
        name = f"**`{metric.name}`**" if metric.headline else f"`{metric.name}`"
        definition = metric.text.replace("|", "\\|")
        lines.append(f"| {name} | {metric.unit} | {definition} | {metric.source} |")
    return "\n".join([*lines[1:], ""])


def renewed(page: str) -> str:
    """Return the page with the metrics between its marks written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown()}\n{END}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text()))
