# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Completions for fish: a line for each option and command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.shells.values import Values, brief, of_flag, of_places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airpath.shells.shown import Flag, Shown

FUNCTIONS = r"""
# The command and subcommand so far; `--` is behind them where the words of another program follow.
function __airpath_command
    set -l found
    for word in (commandline -opc)[2..-1]
        if test "$word" = --
            set -a found --
            break
        end
        if contains -- (string join -- ' ' $found $word) $__airpath_commands
            set -a found $word
        end
    end
    string join -- ' ' $found
end

function __airpath_at
    test "$(__airpath_command)" = "$argv"
end

function __airpath_runs_another
    string match -q -- '*--' (__airpath_command)
end

function __airpath_another
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    complete -C "$(string join -- ' ' $words[(math $at + 1)..-1])"
end
"""


def script(commands: Mapping[str, Shown], profiles: tuple[str, ...]) -> str:
    """Return what fish reads."""
    lines = ["# Completions of airpath for fish, made by `airpath completions fish`.", ""]
    lines += [f"set -g __airpath_commands {' '.join(map(_quoted, commands))}", FUNCTIONS]
    lines += [
        "complete -c airpath -e",
        "complete -c airpath -f",
        "complete -c airpath -n __airpath_runs_another -a '(__airpath_another)'",
        "complete -c airpath -n '__airpath_at \"\"' -s h -l help -d 'Print help'",
        "complete -c airpath -n '__airpath_at \"\"' -s V -l version -d 'Print version'",
    ]
    for command in commands.values():
        above, _, word = command.name.rpartition(" ")
        lines.append(f"{_begin(above)} -a {_quoted(word)} -d {_quoted(brief(command.summary))}")
    for command in commands.values():
        begin = _begin(command.name)
        lines += [f"{begin} {_flag(flag, profiles)}" for flag in command.flags]
        if places := _places(of_places(command, profiles)):
            lines.append(f"{begin} {places}")
    return "\n".join(lines) + "\n"


def _begin(command: str) -> str:
    condition = _quoted(f'__airpath_at "{command}"')
    return f"complete -c airpath -n {condition}"


def _flag(flag: Flag, profiles: tuple[str, ...]) -> str:
    words = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names]
    if flag.metavars:
        words.append(_values(of_flag(flag, profiles)))
    return " ".join([*words, f"-d {_quoted(brief(flag.help))}"])


def _values(values: Values) -> str:
    if values.kind == "files":
        return "-r -F"
    if values.kind == "folders":
        return "-x -a '(__fish_complete_directories)'"
    return f"-x -a {_quoted(' '.join(values.words))}" if values.words else "-x"


def _places(values: Values) -> str:
    if values.kind == "files":
        return "-F"
    if values.kind == "folders":
        return "-a '(__fish_complete_directories)'"
    return f"-a {_quoted(' '.join(values.words))}" if values.words else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
