# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The tutorials, carried out: every command in virtual time, and every figure shown of it.

Commands that run live, draw or take long are left out; tests/test_docs.py checks their options.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs/tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CARRIED_OUT = ("airpath sim ", "airpath analyse ", "airpath check ")
START = "import sys; from airpath.cli import main; sys.exit(main())"
PATIENCE_S = 240


def steps(page: Path) -> list[tuple[list[str], list[str]]]:
    """Return the commands of each block of a page, and the lines shown right after it."""
    blocks = list(BLOCK.finditer(page.read_text()))
    found = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] != "sh":
            continue
        between = page.read_text()[block.end() : after.start()] if after else "-"
        shown = after[2].splitlines() if after and not after[1] and not between.strip() else []
        found.append((block[2].splitlines(), shown))
    return found


def plain(text: str) -> str:
    return " ".join(text.split())


def carry_out(command: str, folder: Path) -> str:
    """Run a command and return what it printed."""
    words = [sys.executable, "-c", START, *shlex.split(command)[1:]]
    done = subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_virtual_time_print_what_a_tutorial_shows(page: Path, tmp_path: Path) -> None:
    for name in ("examples", "studies"):
        (tmp_path / name).symlink_to(ROOT / name)
    compared = 0
    for commands, shown in steps(page):
        if not all(command.startswith(CARRIED_OUT) for command in commands):
            continue
        printed = plain("\n".join(carry_out(command, tmp_path) for command in commands))
        for line in shown:
            assert plain(line) in printed, f"{page.name}: {line}\n{commands}\n{printed}"
            compared += 1
    # The one about apps is about programs in real time.
    assert compared >= 5 or page.stem == "app-developer"


def test_the_four_tutorials_are_there() -> None:
    names = {page.stem for page in PAGES}
    assert names == {"app-developer", "network-operator", "protocol-researcher", "teacher"}
