# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Types of declarations of commands: arguments, options, and the command that has them."""

from __future__ import annotations

from typing import NamedTuple

IMAGES = ("png", "svg", "pdf")
"""Formats of pictures."""


class Argument(NamedTuple):
    """An argument of a command, which stands by itself."""

    metavar: str
    help: str
    key: str
    """Name of its value for the function."""
    type: str = "path"
    several: bool = False
    required: bool = True


class Option(NamedTuple):
    """An option of a command, and the values that follow it."""

    flag: str
    metavars: tuple[str, ...]
    """One for each value; a switch has none."""
    help: str
    key: str = ""
    """Name of its value for the function; by default that of the option."""
    type: str = "text"
    """Of its values: text, path, place (a path, or the URL of a folder), whole (number), positive
    (whole number, from 1 on) or number."""
    default: str | int | None = None
    choices: tuple[str, ...] = ()
    """All valid values, if only some are."""
    several: bool = False
    """True if the option may be given several times."""


class Declaration(NamedTuple):
    """A command."""

    name: str
    """Its words behind ``airpath``."""
    summary: str
    runs: str
    """``module:function``, which gets all values by name and returns the exit status."""
    examples: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    notes: str = ""
    extra: str = ""
    """The extra of the package without which it cannot run."""
