# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Command lines read and help written from declarations, in the manner of the engine's.

argparse takes the words apart. Messages and help are those of clap, which the engine uses, so that
nobody need know which of the two programs carries a command out. They begin with ``airpath:``, as
all messages do.
"""

from __future__ import annotations

import argparse
import difflib
import math
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from airpath.store.url import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airpath.declaration import Argument, Declaration, Option

WIDEST = 100
"""Columns of the help, where the terminal has as many."""


class UsageError(Exception):
    """A command line that cannot be understood; the message is all that the user reads."""


class HelpAsked(Exception):  # noqa: N818 (it is no error)
    """``--help`` is among the words; the message is the help."""


def parse(command: Declaration, words: Sequence[str]) -> dict[str, Any]:
    """Return the values of a command's arguments and options, by their keys.

    Args:
        command: the command.
        words: what follows its name.

    Raises:
        UsageError: the words do not fit.
        HelpAsked: they ask for help.

    """
    words = list(words)
    end = words.index("--") if "--" in words else len(words)
    try:
        # Arguments are what is left over, wherever it stands.
        known, rest = _parser(command).parse_known_args(words[:end])
    except argparse.ArgumentError as error:
        raise UsageError(_told(command, _wrong_count(command, error, words[:end]))) from error
    if known.help:
        raise HelpAsked(help_text(command))
    for word in rest:
        if word.startswith("-") and word != "-":
            raise UsageError(_told(command, _unknown(command, word)))
    values = {key(option): _value(command, option, known) for option in command.options}
    return values | _arguments(command, [*rest, *words[end + 1 :]])


def key(option: Option) -> str:
    """Return the name of an option's value for the function."""
    return option.key or option.flag.removeprefix("--").replace("-", "_")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"airpath: {message}")


def _parser(command: Declaration) -> argparse.ArgumentParser:
    """Return a parser that collects the words of each option, and leaves all others over."""
    parser = _Parser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-h", "--help", action="store_true")
    for option in command.options:
        if option.metavars:
            count = len(option.metavars)
            parser.add_argument(option.flag, dest=key(option), action="append", nargs=count)
        else:
            parser.add_argument(option.flag, dest=key(option), action="append_const", const=True)
    return parser


def _value(command: Declaration, option: Option, known: argparse.Namespace) -> Any:
    """Return the value of an option, of the type that is declared."""
    given = getattr(known, key(option)) or []
    if len(given) > 1 and not option.several:
        what = f"the argument '{_shown(option)}' cannot be used multiple times"
        raise UsageError(_told(command, what))
    if not option.metavars:
        return bool(given)
    made = [tuple(_typed(command, option, word) for word in words) for words in given]
    values = [one if len(one) > 1 else one[0] for one in made]
    if option.several:
        return values or None
    if values:
        return values[0]
    return option.default if option.default is None else _TYPES[option.type][0](option.default)


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise ValueError(word)
    return number


def _seconds(word: str) -> float:
    """Return a time of a run in seconds; a bare number is in seconds."""
    from airpath.facts import UNITS

    number = word.rstrip("".join(sorted(set("".join(UNITS["time"])))) + " ")
    unit = word[len(number) :].strip()
    nanoseconds = UNITS["time"].get(unit or "s")
    if nanoseconds is None or not math.isfinite(float(number)):
        raise ValueError(word)
    return float(number) * nanoseconds / UNITS["time"]["s"]


_TYPES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "text": (lambda value: value, ""),
    "path": (Path, ""),
    "place": (place, "not the URL of a folder; write for example s3://BUCKET/PREFIX"),
    "whole": (int, "not a whole number"),
    "positive": (_positive, "not a whole number of 1 or more"),
    "number": (float, "not a number"),
    "time": (_seconds, "not a time; write for example '2 s', or a number of seconds"),
}
"""By the word of declarations what makes a value of a word, and what is wrong where it cannot."""


def _typed(command: Declaration, option: Option, word: str) -> Any:
    wrong = f"invalid value '{word}' for '{_shown(option)}'"
    if option.choices and word not in option.choices:
        listed = f"\n  [possible values: {', '.join(option.choices)}]"
        tip = _tip("value", word, option.choices)
        raise UsageError(_told(command, wrong + listed, tip, usage=False))
    make, needed = _TYPES[option.type]
    try:
        return make(word)
    except ValueError as error:
        raise UsageError(_told(command, f"{wrong}: {needed}", usage=False)) from error


def _arguments(command: Declaration, words: list[str]) -> dict[str, Any]:
    """Return the values of a command's arguments."""
    values: dict[str, Any] = {}
    for argument in command.arguments:
        taken = words if argument.several else words[:1]
        words = words[len(taken) :]
        if not taken and argument.required:
            what = "the following required arguments were not provided:\n  "
            raise UsageError(_told(command, what + _place(argument)))
        make, needed = _TYPES[argument.type]
        try:
            made = [make(word) for word in taken]
        except ValueError as error:
            wrong = f"invalid value '{error}' for '{_place(argument)}': {needed}"
            raise UsageError(_told(command, wrong, usage=False)) from error
        values[argument.key] = (made or None) if argument.several else (made[0] if made else None)
    if words:
        raise UsageError(_told(command, f"unexpected argument '{words[0]}' found"))
    return values


def _unknown(command: Declaration, word: str) -> str:
    given = word.partition("=")[0]
    flags = [*(option.flag for option in command.options), "--help"]
    tip = _tip("argument", given, flags, 0.7)
    as_value = (
        f"\n  tip: to pass '{word}' as a value, use '-- {word}'"
        if command.arguments and not word.startswith("--")
        else ""
    )
    return f"unexpected argument '{given}' found" + (
        f"\n{tip}{as_value}" if tip or as_value else ""
    )


def _tip(kind: str, word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a line that names what was perhaps meant."""
    close = difflib.get_close_matches(word, list(known), 1, cutoff)
    return f"\n  tip: a similar {kind} exists: '{close[0]}'" if close else ""


def _wrong_count(command: Declaration, error: argparse.ArgumentError, words: list[str]) -> str:
    """Say of which option there are too few or too many values."""
    names = (error.argument_name or "").split("/")
    option = next((one for one in command.options if one.flag in names), None)
    if option is None or not option.metavars:
        word = next((word for word in words if word.partition("=")[0] in names), "")
        flag, _, value = word.partition("=")
        return f"unexpected value '{value}' for '{flag}' found; no more were expected"
    if len(option.metavars) > 1:
        return f"{len(option.metavars)} values are required for '{_shown(option)}'"
    chosen = f"\n  [possible values: {', '.join(option.choices)}]" if option.choices else ""
    return f"a value is required for '{_shown(option)}' but none was supplied{chosen}"


def _told(command: Declaration, what: str, tip: str = "", *, usage: bool = True) -> str:
    """Return the text of an error, with what helps to mend it."""
    shown = f"\n\n{_usage(command)}" if usage else ""
    between = f"\n{tip}" if tip else ""
    return f"airpath: {what}{between}{shown}\n\nFor more information, try '--help'."


def unknown_command(word: str, known: Iterable[str]) -> str:
    """Return the text of the error that there is no such command."""
    tip = _tip("subcommand", word, known)
    return (
        f"airpath: unrecognized subcommand '{word}'\n{tip}\n\nUsage: airpath <COMMAND>\n\n"
        "For more information, try '--help'."
    )


def unknown_subcommand(group: str, word: str, below: Sequence[Declaration]) -> str:
    """Return the text of the error that a command has no such subcommand."""
    if word.startswith("-"):
        what, tip = f"unexpected argument '{word}' found", ""
    else:
        known = [one.name.removeprefix(f"{group} ") for one in below]
        what, tip = f"unrecognized subcommand '{word}'", _tip("subcommand", word, known)
    shown = f"\n{tip}" if tip else ""
    return (
        f"airpath: {what}{shown}\n\nUsage: airpath {group} <COMMAND>\n\n"
        "For more information, try '--help'."
    )


def group_help(group: str, summary: str, below: Sequence[Declaration]) -> str:
    """Return what ``--help`` prints of a command that has subcommands alone."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    rows = [(one.name.removeprefix(f"{group} "), one.summary) for one in below]
    examples = [f"  {example}" for one in below for example in one.examples]
    parts = [
        "\n".join(textwrap.wrap(summary, width)),
        f"Usage: airpath {group} <COMMAND>",
        "Commands:\n" + _table(rows, width),
        "Options:\n" + _table([("-h, --help", "Print help")], width),
        "\n".join(["Examples:", *examples]),
    ]
    return "\n\n".join(parts)


def help_text(command: Declaration) -> str:
    """Return what ``--help`` prints."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    parts = ["\n".join(textwrap.wrap(command.summary, width)), _usage(command)]
    if command.arguments:
        rows = [(_place(one), one.help) for one in command.arguments]
        parts.append("Arguments:\n" + _table(rows, width))
    options = [(f"    {_shown(one)}", described(one)) for one in command.options]
    parts.append("Options:\n" + _table([*options, ("-h, --help", "Print help")], width))
    heading = "Example:" if len(command.examples) == 1 else "Examples:"
    parts.append("\n".join([heading, *(f"  {example}" for example in command.examples)]))
    needs = f"Needs pip install 'airpath[{command.extra}]'." if command.extra else ""
    after = [
        "\n".join(textwrap.wrap(note, width, break_on_hyphens=False))
        for note in (command.notes, needs)
        if note
    ]
    if after:
        parts.append("\n".join(after))
    return "\n\n".join(parts)


def _usage(command: Declaration) -> str:
    words = ["[OPTIONS]"] if command.options else []
    words += [_place(argument) for argument in command.arguments]
    return " ".join([f"Usage: airpath {command.name}", *words])


def _place(argument: Argument) -> str:
    shown = f"<{argument.metavar}>" if argument.required else f"[{argument.metavar}]"
    return shown + ("..." if argument.several else "")


def _shown(option: Option) -> str:
    return " ".join([option.flag, *(f"<{metavar}>" for metavar in option.metavars)])


def described(option: Option) -> str:
    """Return the help of an option, with its default and its possible values."""
    text = option.help
    if option.default is not None:
        default = str(option.default)
        text += f' [default: "{default}"]' if " " in default else f" [default: {default}]"
    if option.choices:
        text += f" [possible values: {', '.join(option.choices)}]"
    return text


def _table(rows: list[tuple[str, str]], width: int) -> str:
    """Return rows of a name and a description, side by side."""
    column = max(len(name) for name, _ in rows) + 4
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(width - column, 20), break_on_hyphens=False)
        lines.append(f"  {name:{column - 2}}{wrapped[0]}")
        lines += [" " * column + line for line in wrapped[1:]]
    return "\n".join(lines)
