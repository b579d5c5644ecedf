# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declarations of the engine that this package uses.

``facts.json`` is what ``airpath facts`` prints; ``scripts/lint`` compares them. Whatever the engine
declares (units, causes of drops, columns, verdicts, files, limits, commands) is read from there,
and written down nowhere else in this package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cause:
    """A cause of drops."""

    name: str
    """The word of the logs."""
    meaning: str
    """A sentence."""
    text: str
    """A few words for legends and tables."""
    group: str
    """The class to which it belongs, a key of ``CAUSE_CLASSES``."""
    shape: str
    """The shape of its mark in pictures."""
    colour: str
    """The colour of its mark, in a word."""


@dataclass(frozen=True)
class Column:
    """A column of a table of a run."""

    name: str
    type: str
    """``uint64`` and the like, ``word`` (one of a few), ``text``, ``bytes``, ``list of …``."""
    nullable: bool
    meaning: str


@dataclass(frozen=True)
class EngineCommand:
    """A command that the engine carries out."""

    name: str
    summary: str
    example: str


def _read() -> dict[str, Any]:
    path = Path(__file__).with_name("facts.json")
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def _meanings(words: list[dict[str, str]]) -> dict[str, str]:
    return {word["name"]: word["meaning"] for word in words}


def _cause(fact: dict[str, str]) -> Cause:
    words = (fact[key] for key in ("name", "meaning", "text", "class", "shape", "colour"))
    return Cause(*words)


_FACTS = _read()


def raw() -> dict[str, Any]:
    """Return all facts as the engine prints them, for programs in other languages."""
    return _FACTS


UNITS: dict[str, dict[str, int]] = {
    quantity: {name: unit["factor"] for unit in about["units"] for name in unit["names"]}
    for quantity, about in _FACTS["units"].items()
}
"""Of each quantity (time, length, rate, share) the spellings of its units, and how many ns, bit,
bit/s or million-millionths each is."""

UNIT_NAMES: dict[str, tuple[str, ...]] = {
    quantity: tuple(unit["names"][0] for unit in about["units"])
    for quantity, about in _FACTS["units"].items()
}
"""Of each quantity its units in their usual spelling."""

DIRECTIONS: tuple[str, ...] = tuple(_FACTS["directions"])
"""Client to server, and server to client."""

EVENT_KINDS = _meanings(_FACTS["event_kinds"])
"""The kinds of events, and what each means."""

CAUSES: dict[str, Cause] = {fact["name"]: _cause(fact) for fact in _FACTS["causes"]}
"""Causes of drops, by their word."""

CAUSE_CLASSES = _meanings(_FACTS["cause_classes"])
"""The groups of causes, and what each is."""

NEVER_INSIDE = "never_inside"
"""The class of causes for which a packet never entered the link, so that it did not drop it."""


def causes_of(group: str) -> tuple[str, ...]:
    """Return the words of the causes of a class."""
    return tuple(cause.name for cause in CAUSES.values() if cause.group == group)


TABLES: dict[str, tuple[Column, ...]] = {
    name: tuple(Column(**column) for column in columns)
    for name, columns in _FACTS["tables"].items()
}
"""The columns of each Arrow file of a run."""

VERDICTS = _meanings(_FACTS["verdicts"])
"""The words of verdicts, the best first, and what each says."""

TRUSTED = next(iter(VERDICTS))
"""The best verdict."""

NOT_TRUSTED: tuple[str, ...] = tuple(VERDICTS)[1:]
"""The other verdicts."""

NO_VERDICT = "unknown"
"""Verdict of a run that is active, or was killed."""

REASONS = _meanings(_FACTS["reasons"])
"""The codes of the reasons of a verdict, and what each tells."""

FILES: dict[str, str] = {
    file["role"]: file["name"] for file in _FACTS["files"] if file["role"] != "capture"
}
"""The names of a run's files and folders, by what they are: manifest, events, inputs, …"""

CAPTURES: tuple[str, ...] = tuple(
    file["name"] for file in _FACTS["files"] if file["role"] == "capture"
)
"""The names of a run's captures, the client's first."""

FILES_OF_A_RUN: tuple[str, ...] = tuple(
    file["name"] for file in _FACTS["files"] if file["shows_a_run"]
)
"""By any of these files a folder is known as a run's."""

RUN_FORMAT_VERSION: int = _FACTS["run_format_version"]
"""The format of a run's folder."""

EXIT_STATUSES: dict[str, int] = {
    status["name"]: status["status"] for status in _FACTS["exit_statuses"]
}
"""Exit statuses, by what they say, of the engine and of Python's commands."""

BEFORE_PROGRAMS = frozenset(
    EXIT_STATUSES[name] for name in ("usage", "unwritable", "lacking", "not_ready", "failed")
)
"""Exit statuses with which the engine ends where it started no program of a client."""

LEAST_MTU_BYTES: int = _FACTS["limits"]["least_mtu_bytes"]
FIRST_PORTS: dict[str, int] = _FACTS["first_ports"]
"""Ports of flow 0 in virtual time, by end; those of other flows count up from there."""
LONGEST_PACKET_BYTES: int = _FACTS["limits"]["longest_packet_bytes"]
"""The longest IP packet, and the largest MTU."""

CONTROL: dict[str, Any] = _FACTS["control"]
"""Control sockets of active runs: version of the protocol, names of the folder and sockets."""

COMMANDS: dict[str, EngineCommand] = {
    command["name"]: EngineCommand(**command) for command in _FACTS["commands"]
}
"""The commands of the engine, by name, in the order of its help."""
