# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The turn to run cells of experiments: one experiment at a time, so that it measures itself."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Turn:
    """The turn, which at most one has."""

    holder: str = ""
    """Words for what has it; empty if nothing has."""
    freed: Callable[[], None] = lambda: None
    """Called each time that it becomes free."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, who: str) -> str:
        """Take the turn if nobody has it; return the words for what has it otherwise."""
        with self._lock:
            holder, self.holder = self.holder, self.holder or who
            return holder

    def give_back(self) -> None:
        """Give the turn back."""
        with self._lock:
            self.holder = ""
        self.freed()
