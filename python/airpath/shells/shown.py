# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Every command with its arguments and options, Python's and the engine's alike.

Python's are declared (``declarations.py``). The engine declares its own to its parser, clap, and
tells of them in its help, whose layout is clap's: it is read from there.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from airpath.commandline import described
from airpath.declarations import DECLARATIONS, GROUPS
from airpath.engine import EngineError, find_engine
from airpath.routing import NAMES, OF_BOTH, OF_PYTHON

if TYPE_CHECKING:
    from airpath.declaration import Declaration


class Place(NamedTuple):
    """An argument that stands by itself."""

    shown: str
    """As in the usage, such as ``<DIR>...``."""
    help: str


class Flag(NamedTuple):
    """An option."""

    names: tuple[str, ...]
    """The long one last."""
    metavars: tuple[str, ...]
    help: str
    choices: tuple[str, ...] = ()
    section: str = "Options"

    @property
    def shown(self) -> str:
        """Text of the option as in the help."""
        return ", ".join(self.names) + "".join(f" <{one}>" for one in self.metavars)


class Shown(NamedTuple):
    """A command."""

    name: str
    """Its words behind ``airpath``."""
    summary: str
    usage: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    flags: tuple[Flag, ...] = ()
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Lines; indented ones are literal."""
    below: tuple[str, ...] = ()
    """Names of its subcommands, without its own."""


HELP = Flag(("-h", "--help"), (), "Print help")


def all_commands() -> dict[str, Shown]:
    """Return every command and subcommand by name, in the order of the overview.

    Raises:
        EngineError: the engine cannot be run.

    """
    engines = _of_engine(find_engine())
    found: dict[str, Shown] = {}
    for name in NAMES:
        declared = [one for key, one in DECLARATIONS.items() if key.startswith(f"{name} ")]
        if name in GROUPS:
            command = Shown(name, GROUPS[name], (f"airpath {name} <COMMAND>",), flags=(HELP,))
        elif name in OF_BOTH:
            command = _joined(_of_declaration(DECLARATIONS[name]), engines[name])
        elif name in OF_PYTHON:
            command = _of_declaration(DECLARATIONS[name])
        else:
            command = engines[name]
        below = [engines[key] for key in engines if key.startswith(f"{name} ")]
        below += [_of_declaration(one) for one in declared]
        words = tuple(one.name.removeprefix(f"{name} ") for one in below)
        found[name] = command._replace(below=words)
        found |= {one.name: one for one in below}
    return found


def profiles() -> tuple[str, ...]:
    """Return the names of the built-in links.

    Raises:
        EngineError: the engine cannot be run.

    """
    lines = _said(find_engine(), "profiles").splitlines()[1:]
    names = [line.split()[0] for line in lines if line and line.split()[0] != "DELAY"]
    return tuple(names)


def _of_declaration(declared: Declaration) -> Shown:
    """Return one of Python's commands."""
    places = tuple(
        Place(
            (f"<{one.metavar}>" if one.required else f"[{one.metavar}]")
            + ("..." if one.several else ""),
            one.help,
        )
        for one in declared.arguments
    )
    flags = tuple(
        Flag((one.flag,), one.metavars, described(one), one.choices) for one in declared.options
    )
    needs = f"Needs pip install 'airpath[{declared.extra}]'." if declared.extra else ""
    words = [f"airpath {declared.name}", "[OPTIONS]" if flags else ""]
    usage = " ".join(word for word in (*words, *(one.shown for one in places)) if word)
    return Shown(
        declared.name,
        declared.summary,
        (usage,),
        places,
        (*flags, HELP),
        declared.examples,
        tuple(note for note in (declared.notes, needs) if note),
    )


def _joined(first: Shown, second: Shown) -> Shown:
    """Return a command of both programs: the first, and what only the second has."""
    names = {one.names[-1] for one in first.flags}
    flags = tuple(one for one in second.flags if one.names[-1] not in names)
    examples = tuple(one for one in second.examples if one not in first.examples)
    return first._replace(flags=(*flags, *first.flags), examples=(*first.examples, *examples))


def _said(engine: str, *words: str) -> str:
    """Return what the engine prints.

    Raises:
        EngineError: it cannot be run, or fails.

    """
    try:
        done = subprocess.run(
            [engine, *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise EngineError(f"{engine} {' '.join(words)} failed: {error}") from error
    return done.stdout


def _of_engine(engine: str) -> dict[str, Shown]:
    """Return the engine's commands, and their subcommands."""
    names = [name for name in NAMES if name not in OF_PYTHON]
    with ThreadPoolExecutor(4) as pool:
        tops = list(pool.map(lambda name: _asked(engine, name), names))
        below = [f"{top.name} {word}" for top in tops for word in top.below]
        inner = list(pool.map(lambda name: _asked(engine, name), below))
    found: dict[str, Shown] = {}
    for top in tops:
        found[top.name] = top
        found |= {one.name: one for one in inner if one.name.startswith(f"{top.name} ")}
    return found


def _asked(engine: str, name: str) -> Shown:
    return read_help(name, _said(engine, "help", *name.split()))


_FLAG = re.compile(
    r"(?:(-\w), )?(--[\w-]+)((?:(?: <[^>]*>| \[<[^>]*>\]|\[=<[^>]*>\])(?:\.\.\.)?)*)(?: {2,}(.*))?"
)
_PLACE = re.compile(r"([<\[].*[>\]](?:\.\.\.)?)(?: {2,}(.*))?")
_METAVAR = re.compile(r"<([^>]*)>")
_VALUES = re.compile(r"\[possible values: ([^\]]*)\]")
_VALUE = re.compile(r"- ([\w.-]+)(?::|$)")
_SECTION = re.compile(r"(\w[\w ]*):")


def read_help(name: str, text: str) -> Shown:
    """Return a command from what clap prints as its help.

    Args:
        name: its words behind ``airpath``.
        text: the help.

    """
    lines = text.splitlines()
    shown = Shown(name, lines[0])
    usage: list[str] = []
    below: list[str] = []
    examples: list[str] = []
    notes: list[str] = []
    entries: list[tuple[str, str, list[str]]] = []
    section = ""
    for line in lines[1:]:
        heading = _SECTION.fullmatch(line)
        if line.startswith("Usage:"):
            section = "Usage"
            usage.append(line.removeprefix("Usage:").strip())
        elif heading and section != "notes":
            section = heading[1]
        elif not line.strip():
            # What follows the examples has no heading.
            section = "notes" if section in ("Example", "Examples") else section
            if entries and entries[-1][2] and entries[-1][2][-1]:
                entries[-1][2].append("")
        elif section == "Usage":
            usage.append(line.strip())
        elif section == "Commands":
            word = re.match(r"  (\w+)", line)
            below += [word[1]] if word and word[1] != "help" else []
        elif section in ("Example", "Examples"):
            _add_example(examples, line.strip())
        elif section == "notes":
            notes.append(line)
        else:
            _add_entry(entries, section, line)
    places, flags = _entries(entries)
    return shown._replace(
        usage=tuple(usage),
        places=places,
        flags=flags,
        examples=tuple(examples),
        notes=tuple(notes),
        below=tuple(below),
    )


def _add_example(examples: list[str], line: str) -> None:
    """Add a line, or what clap has wrapped of the line before."""
    if examples and not line.startswith("airpath "):
        before = examples.pop()
        line = f"{before.removesuffix(chr(92)).rstrip()} {line}"
    examples.append(line)


def _add_entry(entries: list[tuple[str, str, list[str]]], section: str, line: str) -> None:
    """Add the first line of an argument or option, or a further one of the last."""
    margin = len(line) - len(line.lstrip())
    begins = margin == 6 and line.lstrip().startswith("--")
    begins |= margin == 2 and line.lstrip()[0] in "<[-"
    if begins:
        entries.append((section, line.strip(), []))
    elif entries:
        entries[-1][2].append(line.strip())


def _entries(
    entries: list[tuple[str, str, list[str]]],
) -> tuple[tuple[Place, ...], tuple[Flag, ...]]:
    places, flags = [], []
    for section, head, rest in entries:
        flag = _FLAG.fullmatch(head)
        place = None if flag else _PLACE.fullmatch(head)
        found = flag or place
        if found is None:
            continue
        text, choices = _text([found[found.re.groups] or "", *rest])
        if flag and flag[2] == "--help":
            flags.append(HELP)
        elif flag:
            names = tuple(one for one in (flag[1], flag[2]) if one)
            metavars = tuple(_METAVAR.findall(flag[3]))
            flags.append(Flag(names, metavars, text, choices, section))
        elif place:
            places.append(Place(place[1], text))
    return tuple(places), tuple(flags)


def _text(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the description of an option, and its possible values."""
    choices: list[str] = []
    kept: list[str] = []
    for line in lines:
        if line == "Possible values:":
            kept.append("Possible values:")
        elif value := _VALUE.match(line):
            choices.append(value[1])
            kept.append(" ".join(line.removeprefix("- ").split()) + ";")
        elif kept and kept[-1].endswith(";") and line and not line.startswith("["):
            kept[-1] = f"{kept[-1][:-1]} {line};"  # of the value before
        else:
            kept.append(line)
    text = " ".join(one for one in kept if one)
    text = re.sub(r";(?= \[|$)", "", text)
    text = re.sub(r"(?<=[\w)]) (?=Possible values:)", ". ", text)
    if listed := _VALUES.search(text):
        choices = listed[1].split(", ")
    return text, tuple(choices)
