# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Errors that the page shows: what was asked wrongly, and what cannot be done."""

from __future__ import annotations


class UiError(Exception):
    """A request that cannot be carried out; the message says why and how to mend that."""

    def __init__(self, message: str, status: int = 400) -> None:
        """Keep the message and the status of the answer."""
        super().__init__(message)
        self.status = status


def not_found(what: str) -> UiError:
    """Return the error for something that does not exist."""
    return UiError(what, 404)
