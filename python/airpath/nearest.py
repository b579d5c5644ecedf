# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Words that are near a mistyped one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" or a list of what there is."""
    known = list(known)
    close = difflib.get_close_matches(word, known, 1, 0.5)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; there are: {', '.join(known)}" if known else ""
