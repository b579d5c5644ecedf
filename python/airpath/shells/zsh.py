# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Completions for zsh: a function for each command, with the descriptions of its options."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from airpath.shells.values import Values, brief, of_flag, of_places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airpath.shells.shown import Flag, Shown

_ACTIONS = {"files": "_files", "folders": "_files -/", "nothing": " "}


def script(commands: Mapping[str, Shown], profiles: tuple[str, ...]) -> str:
    """Return what zsh reads, as a file `_airpath` in `$fpath` or by `source`."""
    tops = [one for one in commands.values() if " " not in one.name]
    lines = [
        "#compdef airpath",
        "# Completions of airpath for zsh, made by `airpath completions zsh`.",
        "",
        "_airpath() {",
        "    local curcontext=$curcontext state line",
        "    typeset -A opt_args",
        *_group("airpath", "", tops),
        "}",
    ]
    for command in commands.values():
        below = [commands[f"{command.name} {word}"] for word in command.below]
        lines += ["", f"{_name(command.name)}() {{"]
        if below:
            lines += ["    local curcontext=$curcontext state line", "    typeset -A opt_args"]
            lines += _group(command.name, command.name, below)
        else:
            specs = [spec for flag in command.flags for spec in _specs(flag, profiles)]
            specs += [_places(of_places(command, profiles))]
            lines.append("    _arguments -s -S \\")
            lines += [f"        {shlex.quote(spec)} \\" for spec in specs if spec]
            lines[-1] = lines[-1].removesuffix(" \\")
        lines.append("}")
    # Read by the completion system the file is the function; by `source` it defines it.
    lines += [
        "",
        "if [[ $funcstack[1] == _airpath ]]; then",
        '    _airpath "$@"',
        "else",
        "    compdef _airpath airpath",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _group(name: str, prefix: str, below: list[Shown]) -> list[str]:
    """Return the body of a function that chooses among commands."""
    words = [
        f"            {shlex.quote(f'{one.name.split()[-1]}:{_plain(one.summary)}')}"
        for one in below
    ]
    cases = [f"        {one.name.split()[-1]}) {_name(one.name)} ;;" for one in below]
    return [
        "    _arguments -C '(- *)'{-h,--help}'[Print help]' '1: :->command' '*:: :->rest'",
        "    if [[ $state == command ]]; then",
        "        local -a commands=(",
        *words,
        "        )",
        f"        _describe -t commands '{name} command' commands",
        "        return",
        "    fi",
        "    case $words[1] in",
        *cases,
        "    esac",
    ]


def _name(command: str) -> str:
    return f"_airpath_{command.replace(' ', '_')}"


def _specs(flag: Flag, profiles: tuple[str, ...]) -> list[str]:
    values = ""
    if flag.metavars:
        first = _action(of_flag(flag, profiles))
        values = "".join(f":{_label(metavar)}:{first}" for metavar in flag.metavars)
    # An option with a value may be given several times: some are made for that.
    names = [f"{name}{'=' if values and name.startswith('--') else ''}" for name in flag.names]
    many = "*" if values else ""
    return [f"{many}{name}[{_plain(flag.help)}]{values}" for name in names]


def _action(values: Values) -> str:
    return f"({' '.join(values.words)})" if values.words else _ACTIONS[values.kind]


def _places(values: Values) -> str:
    if values.kind == "command":
        return "*:: :_normal"
    return "" if values.kind == "nothing" else f"*: :{_action(values)}"


def _label(metavar: str) -> str:
    return re.sub(r"[:\[\]]", " ", metavar)


def _plain(text: str) -> str:
    """Return the first sentence of a description, without what _arguments would take for marks."""
    return re.sub(r"[\[\]:\\]", " ", brief(text))
