# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A run of an experiment as a test case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A run, judged."""

    row: dict[str, Any] = field(repr=False)
    """Values of the run in the catalogue."""
    outcome: str
    """passed, failed, broken, or untrusted."""
    message: str = ""

    @property
    def cell(self) -> str:
        """SET/CELL."""
        return f"{self.row['set']}/{self.row['cell']}"

    @property
    def name(self) -> str:
        """Name within the cell."""
        return f"replication {self.row['replication']}, seed {self.row['seed']}"


BAD = frozenset({"failed", "broken"})
"""Outcomes that make a judgement bad; a run that is not trusted says nothing about programs."""
