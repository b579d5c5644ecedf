# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands ``airpath completions`` and ``airpath man``."""

from __future__ import annotations

import os
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from airpath.engine import EngineError
from airpath.files import make_folder, write_whole
from airpath.nearest import nearest
from airpath.shells import bash, fish, zsh
from airpath.shells.man import file_name, overview, page
from airpath.shells.shown import all_commands, profiles
from airpath.shells.values import SHELLS
from airpath.status import DONE, fail

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPTS = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}


def completions(shell: str) -> int:
    """Carry ``airpath completions`` out."""
    if shell not in SHELLS:
        return fail("completions", f"there are none for {shell!r}{nearest(shell, SHELLS)}")
    try:
        print(_SCRIPTS[shell](all_commands(), profiles()), end="")
    except EngineError as error:
        return fail("completions", error)
    return DONE


def man(directory: Path) -> int:
    """Carry ``airpath man`` out."""
    # As usual in builds that give the same bytes each time.
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    try:
        of = version("airpath")
    except PackageNotFoundError:  # a tree that is not installed
        of = "of a source tree"
    try:
        commands = all_commands()
        pages = {file_name(one.name): page(one, commands, of, date) for one in commands.values()}
        pages[file_name("")] = overview(commands, of, date)
        make_folder(directory)
        for name, text in pages.items():
            write_whole(directory / name, text)
    except (EngineError, OSError) as error:
        return fail("man", error)
    print(f"{len(pages)} pages in {directory}")
    return DONE
