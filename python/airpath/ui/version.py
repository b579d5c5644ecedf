# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed() -> str:
    """Return the version; ``unknown`` in a tree that is not installed."""
    try:
        return version("airpath")
    except PackageNotFoundError:
        return "unknown"
