# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading JSON that anybody may have written: a value within bounds, or a ``ValueError``.

Numbers are finite and whole ones fit into 64 bits, texts can be written as UTF-8, and nothing is
nested so deep that a program over it would run out of its stack.
"""

from __future__ import annotations

import json
from typing import Any

MOST_DEPTH = 64
"""No file of Airpath, and none of the formats that it reads, nests a quarter as deep."""

_LEAST, _MOST = -(2**63), 2**64 - 1


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or holds what no program here could go on with; the message says
            which.

    """
    try:
        value = json.loads(
            text, parse_int=_whole, parse_float=_finite, parse_constant=_refuse_constant
        )
    except RecursionError:
        message = f"nested deeper than {MOST_DEPTH} levels"
        raise ValueError(message) from None
    check_depth(value)
    # Half a surrogate pair can stand in a text by its number only.
    escaped = b"\\u" in text if isinstance(text, bytes) else "\\u" in text
    if escaped:
        _check_texts(value)
    return value


def _whole(digits: str) -> int:
    # Longer ones take time that grows with the square of their length.
    value = int(digits) if len(digits) <= 20 else _MOST + 1
    if not _LEAST <= value <= _MOST:
        message = f"the number {digits:.24} does not fit into 64 bits"
        raise ValueError(message)
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        message = f"the number {digits:.24} is too great"
        raise ValueError(message)
    return value


def _refuse_constant(word: str) -> float:
    message = f"{word} is no number of JSON"
    raise ValueError(message)


def check_depth(value: Any) -> None:
    """Refuse what is nested too deep.

    Raises:
        ValueError: it is.

    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        if not level:
            return
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    message = f"nested deeper than {MOST_DEPTH} levels"
    raise ValueError(message)


def _check_texts(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "a text has half a character (a lone surrogate)"
        raise ValueError(message) from None
