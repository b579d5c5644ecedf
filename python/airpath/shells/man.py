# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Manual pages in the macros of man(7), one for each command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airpath.shells.shown import Flag, Shown

SECTION = "1"

DOCUMENTS = "The documents in the folder docs of the source of Airpath describe links and runs."


def file_name(command: str) -> str:
    """Return the name of a command's page; that of the empty name is the overview's."""
    return f"{_title(command)}.{SECTION}"


def page(command: Shown, commands: Mapping[str, Shown], version: str, date: str) -> str:
    """Return the page of a command.

    Args:
        command: the command.
        commands: all of them, for references.
        version: of Airpath.
        date: of the page, as YYYY-MM-DD.

    """
    lines = _head(command.name, command.summary, version, date)
    for usage in command.usage:
        lines += [f".B {_escaped(_words_of(command.name))}", _rest(usage, command.name), ".br"]
    lines.pop()
    if command.places:
        lines.append(".SH ARGUMENTS")
        for place in command.places:
            lines += [".TP", f".I {_escaped(place.shown)}", *_text(place.help)]
    below = [commands[f"{command.name} {word}"] for word in command.below]
    if below:
        lines += [".SH COMMANDS", *_list(below)]
    sections: dict[str, list[Flag]] = {}
    for flag in command.flags:
        sections.setdefault(flag.section, []).append(flag)
    if sections:
        lines.append(".SH OPTIONS")
    for section, flags in sections.items():
        lines += [f'.SS "{_escaped(section)}"'] if len(sections) > 1 else []
        for flag in flags:
            lines += [".TP", _shown(flag), *_text(flag.help)]
    if command.notes:
        lines += [".SH NOTES", *_notes(command.notes)]
    if command.examples:
        lines += [".SH EXAMPLES", *_literal(command.examples)]
    above = command.name.rpartition(" ")[0]
    lines += _see_also([above, *(one.name for one in below)])
    return _joined(lines)


def overview(commands: Mapping[str, Shown], version: str, date: str) -> str:
    """Return the page of ``airpath`` itself."""
    tops = [one for one in commands.values() if " " not in one.name]
    lines = _head("", "Put a wireless link of your choice between real programs", version, date)
    lines += [".B airpath", ".I COMMAND", "[OPTIONS]", ".SH COMMANDS", *_list(tops)]
    lines += [".SH OPTIONS", ".TP", ".BR \\-h , \\ \\-\\-help", "Print help"]
    lines += [".TP", ".BR \\-V , \\ \\-\\-version", "Print version"]
    return _joined([*lines, *_see_also([one.name for one in tops])])


def _joined(lines: list[str]) -> str:
    """Return the page; a paragraph right below a heading needs no macro."""
    before = ["", *lines]
    kept = [
        line
        for above, line in zip(before, lines, strict=False)
        if line != ".PP" or not above.startswith(".SH")
    ]
    return "\n".join(kept) + "\n"


def _head(name: str, summary: str, version: str, date: str) -> list[str]:
    title = _title(name)
    return [
        '.\\" Made by `airpath man` from what the commands declare.',
        f'.TH "{_escaped(title.upper())}" {SECTION} "{date}" "Airpath {version}" "Airpath"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(summary[:1].lower() + summary[1:])}",
        ".SH SYNOPSIS",
    ]


def _title(name: str) -> str:
    return "-".join(["airpath", *name.split()])


def _words_of(name: str) -> str:
    return f"airpath {name}".strip()


def _rest(usage: str, name: str) -> str:
    return _line(usage.removeprefix(_words_of(name)).strip())


def _list(commands: list[Shown]) -> list[str]:
    return [
        line
        for one in commands
        for line in (".TP", f".BR {_title(one.name).replace('-', chr(92) + '-')} ({SECTION})",
                     _line(one.summary))
    ]  # fmt: skip


def _shown(flag: Flag) -> str:
    names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in flag.names)
    return names + "".join(f" \\fI{_escaped(metavar)}\\fR" for metavar in flag.metavars)


def _see_also(names: list[str]) -> list[str]:
    shown = [f".BR {_title(name).replace('-', chr(92) + '-')} ({SECTION}) ," for name in names]
    shown[-1] = shown[-1].removesuffix(" ,")
    return [".SH SEE ALSO", *shown, ".PP", DOCUMENTS]


def _notes(lines: tuple[str, ...]) -> list[str]:
    """Return the notes: text flows, and indented lines stay as they are."""
    found: list[str] = []
    literal: list[str] = []
    ended = True
    for line in lines:
        if line.startswith("  "):
            literal.append(line.strip())
            continue
        if literal:
            found += _literal(tuple(literal))
            literal, ended = [], True
        found += [".PP"] if ended else []
        found += _text(line)
        ended = line.endswith((".", ":"))
    return found + (_literal(tuple(literal)) if literal else [])


def _literal(lines: tuple[str, ...]) -> list[str]:
    return [".PP", ".nf", ".RS 4", *map(_line, lines), ".RE", ".fi"]


def _text(text: str) -> list[str]:
    """Return a text with each sentence on a line of its own, as the formatter wants it."""
    return [_line(one) for one in re.split(r"(?<=\w[.])\s+(?=[A-Z])", text)]


def _line(text: str) -> str:
    """Return a line of text, which is no request whatever it begins with."""
    escaped = _escaped(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    r"""Return a text with \ and - as characters, and every other one outside ASCII named."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return "".join(one if ord(one) < 128 else f"\\[u{ord(one):04X}]" for one in escaped)
