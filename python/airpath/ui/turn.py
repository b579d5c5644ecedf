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

    def take(self, who: str) -> bool:
        """Take the turn if nobody has it; say whether that was so."""
        with self._lock:
            if self.holder:
                return False
            self.holder = who
            return True

    def give_back(self) -> None:
        """Give the turn back."""
        with self._lock:
            self.holder = ""
        self.freed()
