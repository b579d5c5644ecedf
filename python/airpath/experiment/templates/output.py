# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Output of a program: a text, and the JSON in it, which is parsed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airpath.jsontext import parse_json


class Output:
    """Text that a program printed to stdout."""

    def __init__(self, text: str) -> None:
        """Keep the text."""
        self.text = text

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON object that the text is; empty if it is none."""
        if not self._begins_as_json:
            return {}
        try:
            found = parse_json(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def documents(self) -> list[dict[str, Any]]:
        """The JSON object that the text is, or those of its lines if each line is JSON."""
        if self.document:
            return [self.document]
        if not self._begins_as_json:
            return []
        try:
            lines = [parse_json(line) for line in self.text.splitlines() if line.strip()]
        except ValueError:
            return []
        return [one for one in lines if isinstance(one, dict)]

    @property
    def _begins_as_json(self) -> bool:
        return self.text.lstrip().startswith("{")
