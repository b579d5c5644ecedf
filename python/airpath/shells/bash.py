# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Completions for bash: a table of commands, and a function that reads it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from airpath.shells.values import Values, of_flag, of_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airpath.shells.shown import Flag, Shown

FUNCTION = r"""
_airpath() {
    local cur=${COMP_WORDS[COMP_CWORD]} at word command='' option='' end=0
    # The shell takes --option=value apart at the sign.
    if [[ $cur == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 1]} cur=''
    elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == -* ]]; then
        option=${COMP_WORDS[COMP_CWORD - 1]}
    fi
    local _airpath_flags _airpath_below _airpath_kind _airpath_words
    COMPREPLY=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            end=$at
            break
        fi
        _airpath_table "$command" ''
        if [[ " $_airpath_below " == *" $word "* ]]; then
            command=${command:+$command }$word
        fi
    done
    if ((end)); then
        if ((COMP_CWORD == end + 1)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
        else
            compopt -o default
        fi
        return
    fi
    _airpath_table "$command" "$option"
    if [[ -z $option || $_airpath_kind == switch ]]; then
        _airpath_table "$command" ''
        if [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$_airpath_flags" -- "$cur")
            return
        fi
        _airpath_words="$_airpath_words $_airpath_below"
    fi
    case $_airpath_kind in
        files) compopt -o default -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
    if [[ -n ${_airpath_words// /} ]]; then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$_airpath_words" -- "$cur")
    fi
}

complete -F _airpath airpath
"""


def script(commands: Mapping[str, Shown], profiles: tuple[str, ...]) -> str:
    """Return what bash reads."""
    lines = [
        "# Completions of airpath for bash, made by `airpath completions bash`.",
        "",
        "# What may follow: _airpath_table COMMAND OPTION; an empty option stands for none.",
        "_airpath_table() {",
        "    _airpath_flags='' _airpath_below='' _airpath_kind=nothing _airpath_words=''",
        "    case $1 in",
        "        '')",
        "            _airpath_flags='--help --version'",
        f"            _airpath_below={_quoted(top for top in commands if ' ' not in top)}",
        "            ;;",
    ]
    for command in commands.values():
        lines += _command(command, profiles)
    return "\n".join([*lines, "    esac", "}", FUNCTION])


def _command(command: Shown, profiles: tuple[str, ...]) -> list[str]:
    pad = " " * 12
    flags = [name for flag in command.flags for name in flag.names if name.startswith("--")]
    lines = [
        f"        {shlex.quote(command.name)})",
        f"{pad}_airpath_flags={_quoted(flags)}",
        f"{pad}_airpath_below={_quoted(command.below)}",
        f"{pad}case $2 in",
        f"{pad}    '') {_values(of_places(command, profiles))} ;;",
    ]
    lines += [f"{pad}    {_flag(flag, profiles)} ;;" for flag in command.flags]
    return [*lines, f"{pad}esac", f"{pad};;"]


def _flag(flag: Flag, profiles: tuple[str, ...]) -> str:
    values = of_flag(flag, profiles) if flag.metavars else Values("switch")
    return f"{' | '.join(flag.names)}) {_values(values)}"


def _values(values: Values) -> str:
    words = f" _airpath_words={_quoted(values.words)}" if values.words else ""
    return f"_airpath_kind={values.kind}{words}"


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))
