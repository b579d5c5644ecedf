# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A problem of an experiment file, and the order of several."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airpath.experiment.positions import Path as KeyPath


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file."""

    file: str
    line: int | None
    """None of a file that cannot be read, which has no lines."""
    what: str
    path: KeyPath = field(default=(), compare=False, repr=False)
    """The key that it is about; () where it is about the file as a whole."""

    def __str__(self) -> str:
        """Return it as one line, in the form that editors jump to."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}"


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems in the order of their lines; those of a file without lines come first."""
    return sorted(problems, key=lambda problem: problem.line or 0)
