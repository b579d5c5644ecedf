# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Small tables of HTML, as notebooks show them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_ROWS = 40
"""Sets or cells that a table shows."""


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a caption; everything is escaped."""
    shown = list(rows)
    left_out = len(shown) - MOST_ROWS
    lines = [_row("th", heads)] if heads else []
    lines += [_row("td", row) for row in shown[:MOST_ROWS]]
    if left_out > 0:
        lines.append(_row("td", [f"… and {left_out} more"]))
    caption = f'<caption style="text-align: left">{escape(title)}</caption>'
    return f"<table>{caption}{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f'<{tag} style="text-align: left">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"
