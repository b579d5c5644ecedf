# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Words that may follow on a command line: of an option, and of arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from airpath.shells.shown import Flag, Shown

SHELLS = ("bash", "zsh", "fish")
"""Shells that completions are made for."""


class Values(NamedTuple):
    """Possible words at one place."""

    kind: str
    """words, files, folders, command, or nothing that could be known."""
    words: tuple[str, ...] = ()


NOTHING = Values("nothing")


def brief(text: str) -> str:
    """Return the first sentence of a description, without its default."""
    without = re.sub(r" ?\[[^\]]*\]", "", text)
    return re.split(r"(?<=[\w)])[.;] ", without)[0].strip().rstrip(".")


def of_flag(flag: Flag, profiles: tuple[str, ...]) -> Values:
    """Return the words that may follow an option; it has a value."""
    if flag.choices:
        return Values("words", flag.choices)
    if flag.names[-1] == "--profile":
        return Values("words", profiles)
    return _of_metavar(flag.metavars[0])


def of_places(command: Shown, profiles: tuple[str, ...]) -> Values:
    """Return the words that may stand as arguments of a command."""
    if command.name == "profiles show":
        return Values("words", profiles)
    if command.name == "completions":
        return Values("words", SHELLS)
    if "-- " in " ".join(command.usage):
        return Values("command")
    found = [_of_metavar(place.shown) for place in command.places]
    return next((one for one in found if one != NOTHING), NOTHING)


def _of_metavar(shown: str) -> Values:
    """Return files and folders for what is called so."""
    words = re.findall(r"[A-Z]+", shown)
    if "DIR" in words:
        return Values("folders")
    if {"FILE", "INPUT", "OUTPUT", "CHANNEL", "TRACE"} & set(words):
        return Values("files")
    return NOTHING
