# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of a run.

One module a picture, each with ``draw(run, span) -> list[Picture]``; an entry in ``RUN`` of
``kinds.py`` puts it into ``airpath plot``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from airpath.plots.kinds import RUN as KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airpath.plots.style import Picture, Span
    from airpath.run import Run

__all__ = ["KINDS", "draw"]


def draw(run: Run, kinds: Iterable[str], span: Span) -> list[Picture]:
    """Draw pictures of some kinds; those for which the run has no data are left out."""
    # Not at the top: whoever only names kinds has no need of polars.
    from airpath.run import contradictions_named

    pictures = []
    for kind in kinds:
        module = importlib.import_module(f"airpath.plots.{KINDS[kind]}")
        with contradictions_named(run.directory):
            pictures += module.draw(run, span)
    return pictures
