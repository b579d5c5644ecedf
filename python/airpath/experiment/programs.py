# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The programs of a workload, those of its templates included, and checks of them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from airpath.experiment.keys import Program
from airpath.experiment.templates import TEMPLATES

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.experiment.model import Workload


def programs(workload: Workload) -> list[Program]:
    """Return the programs of a workload, each with a name of its own."""
    found: list[Program] = []
    for number, one in enumerate(workload.programs, 1):
        if isinstance(one, Program):
            found.append(one.model_copy(update={"name": one.name or f"program-{number}"}))
        else:
            found += one.programs(one.name or f"{one.tag()}-{number}")
    names: dict[str, int] = {}
    unique = []
    for program in found:
        name = str(program.name)
        names[name] = names.get(name, 0) + 1
        fresh = name if names[name] == 1 else f"{name}-{names[name]}"
        unique.append(program.model_copy(update={"name": fresh}))
    return unique


def missing_programs(workload: Workload, directory: Path) -> list[str]:
    """Return what a workload needs and this host has not, each with how to mend it."""
    missing = []
    for program in programs(workload):
        name = _first_word(program)
        in_shell = isinstance(program.command, str)
        if name is None:
            continue
        if in_shell and "/" in name and not name.startswith("/"):
            missing.append(
                f"program `{program.name}`: programs start in folders of their own, where `{name}` "
                f'is not: write "$AIRPATH_EXPERIMENT/{name.removeprefix("./")}"'
            )
        elif not _is_there(str(directory / name) if "/" in name else name, in_shell):
            missing.append(_remedy(f"program `{program.name}`", name))
    for one in workload.programs:
        if not isinstance(one, Program):
            # What its programs start in their turn; they themselves were looked for.
            begun = {_first_word(program) for program in one.programs(one.tag())}
            missing += [
                _remedy(f"template `{one.tag()}`", name)
                for name in one.needs
                if name not in begun and shutil.which(name, path=search_path()) is None
            ]
    return missing


def search_path() -> str:
    """Return where programs that a template starts are looked for.

    An ordinary user's PATH on Debian lacks the place of servers such as nginx.
    """
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])


def unfit(workload: Workload, clock: str) -> list[str]:
    """Return what of a workload cannot run by a clock, each with what can."""
    return [
        what
        for one in workload.programs
        if not isinstance(one, Program)
        for what in one.unfit(clock)
    ]


def _first_word(program: Program) -> str | None:
    """Return the name of what a program's command starts, or None if only a shell can tell."""
    words = program.command
    if isinstance(words, str):
        # A shell's own words are for the shell to find.
        if any(c in words for c in ";|&$`(){}<>=\n"):
            return None
        try:
            words = shlex.split(words)
        except ValueError:
            return None
    return words[0] if words else ""


def _remedy(who: str, name: str) -> str:
    packages = {program: package for one in TEMPLATES for program, package in one.needs.items()}
    how = (
        f"install it (Debian: apt-get install {packages[name]})"
        if name in packages
        else "install it, or name the file by its full path"
    )
    return f"{who} needs `{name}`, which is not there: {how}"


def _is_there(name: str, in_shell: bool) -> bool:
    if shutil.which(name) is not None:
        return True
    if not in_shell or "/" in name:
        return False
    asked = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name]  # a word of the shell's own
    return subprocess.run(asked, stdout=subprocess.DEVNULL, check=False).returncode == 0
