"""Pictures of a run.

One module a picture, each with ``draw(run, span) -> list[Picture]``; an entry in ``KINDS`` puts it
into ``airpath plot``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from airpath.run import contradictions_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airpath.plots.style import Picture, Span
    from airpath.run import Run

KINDS = {
    "time-sequence": "time_sequence",
    "throughput": "throughput",
    "queue": "queue",
    "delay": "delay",
    "fairness": "fairness",
    "tcp-state": "tcp_state",
}
"""Name of each kind of picture, and the module that draws it."""


def draw(run: Run, kinds: Iterable[str], span: Span) -> list[Picture]:
    """Draw pictures of some kinds; those for which the run has no data are left out."""
    pictures = []
    for kind in kinds:
        module = importlib.import_module(f"airpath.plots.{KINDS[kind]}")
        with contradictions_named(run.directory):
            pictures += module.draw(run, span)
    return pictures
