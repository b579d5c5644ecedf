# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of programs behind a link: what the fixture ``airpath_link`` of pytest gives."""

from airpath.testing.links import (
    CommandFailedError,
    Link,
    LinkError,
    NotTrustedError,
    Outcome,
    UnavailableError,
)

__all__ = [
    "CommandFailedError",
    "Link",
    "LinkError",
    "NotTrustedError",
    "Outcome",
    "UnavailableError",
]
