# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of `airpath plot` of one run, as elements of the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airpath.plots import KINDS, draw
from airpath.plots.style import Span
from airpath.report.drawing import inline_svg
from airpath.report.opener import Opener
from airpath.run import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from markupsafe import Markup


@dataclass(frozen=True)
class Task:
    """Pictures of one run."""

    directory: Path
    number: int
    """The run's on the page."""
    opener: Opener = field(default_factory=Opener)


@dataclass
class Drawn:
    """The pictures of one run."""

    pictures: list[tuple[str, Markup]] = field(default_factory=list)
    """Id on the page, and the element."""
    notes: list[str] = field(default_factory=list)


def draw_pictures(task: Task) -> Drawn:
    """Return the pictures of a run."""
    try:
        pictures = draw(task.opener.open(task.directory), KINDS, Span())
    except RunError as error:
        return Drawn(notes=[str(error)])
    names = [(f"picture-{task.number}-{picture.name}", picture) for picture in pictures]
    return Drawn([(name, inline_svg(picture, name)) for name, picture in names])
