# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sheets of panels over sets of runs: colours and lines of sets, and one legend for all panels."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import matplotlib as mpl

from airpath.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SETTINGS,
    SKY,
    VERMILLION,
    WIDTH_INCHES,
    Figure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from matplotlib.axes import Axes

COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE, BLACK, GREY)
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@contextmanager
def sheet(rows: int, row_inches: float, columns: int = 1) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure with panels, row by row."""
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure = Figure(figsize=(WIDTH_INCHES, row_inches * rows + 0.3), layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def legend(figure: Figure, axes: Sequence[Axes], names: Sequence[str], more: str = "") -> None:
    """Name all sets once, below the panels; one may have nothing to show in some of them."""
    known = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    shown = [name for name in names if name in known]
    figure.legend(
        [known[name] for name in shown],
        [f"{name}{more}" for name in shown],
        loc="outside lower left",
        ncols=2,
    )
