# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""All commands for ``airpath --help``.

The engine says what its commands do (``airpath facts``), ``declarations.py`` what Python's do.
Nothing heavy is imported here.
"""

from __future__ import annotations

from typing import NamedTuple

from airpath.declarations import DECLARATIONS, GROUPS
from airpath.facts import COMMANDS
from airpath.routing import NAMES


class Command(NamedTuple):
    """One subcommand, as the overview shows it."""

    name: str
    summary: str
    example: str


def commands() -> tuple[Command, ...]:
    """Return every command, in the order of the overview."""
    known = {name: Command(name, each.summary, each.example) for name, each in COMMANDS.items()}
    for name, each in DECLARATIONS.items():
        known[name] = Command(name, each.summary, each.examples[0])
    for name, summary in GROUPS.items():
        example = next(
            one.examples[0] for key, one in DECLARATIONS.items() if key.startswith(f"{name} ")
        )
        known[name] = Command(name, summary, example)
    return tuple(
        command._replace(summary=command.summary[:1].lower() + command.summary[1:])
        for command in (known[name] for name in NAMES)
    )


def overview() -> str:
    """Return the text of ``airpath --help``."""
    shown = commands()
    width = max(len(command.name) for command in shown)
    lines = [
        "Emulates a wireless link between real programs and reports what happened on it.",
        "",
        "Usage: airpath <COMMAND> [OPTIONS]",
        "",
        "Commands:",
    ]
    for command in shown:
        lines.append(f"  {command.name:{width}}  {command.summary}")
        lines.append(f"  {'':{width}}    {command.example}")
    lines += [
        "",
        "Options:",
        "  -h, --help     Print help; airpath COMMAND --help prints that of a command",
        "  -V, --version  Print version",
    ]
    return "\n".join(lines)
