# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands of README.md: understood as they stand there, and with the output that it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
START = "import sys; from airpath.cli import main; sys.exit(main())"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[list[str], str]]:
    """Return the words of each airpath command of the page, and the output below its block."""
    found = []
    for block, output in BLOCK.findall((ROOT / "README.md").read_text()):
        lines = block.replace("\\\n", " ").splitlines()
        words = [shlex.split(line, comments=True) for line in lines]
        found += [(one[1:], output) for one in words if one[:1] == ["airpath"]]
    return found


COMMANDS = {" ".join(words[:2]): (words, output) for words, output in commands()}


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, *words],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=cwd,
        check=False,
    )


def test_the_page_has_its_commands() -> None:
    assert {name.split()[0] for name in COMMANDS} >= {"exec", "sim", "run", "report"}


@pytest.mark.parametrize("command", ["exec", "sim"])
def test_a_link_of_the_page_is_one(command: str, tmp_path: Path) -> None:
    words = next(words for name, (words, _) in COMMANDS.items() if name.startswith(command))
    done = run(command, "--print-scenario", *words[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[[hops]]" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_transfers_of_the_page_take_what_it_says(tmp_path: Path) -> None:
    words, output = next(of for name, of in COMMANDS.items() if name.startswith("sim"))
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = [line for line in output.splitlines() if line != "…"]
    assert len(shown) == 2
    told = (done.stdout + done.stderr).splitlines()
    assert [line for line in shown if line not in told] == []


def test_the_experiment_of_the_page_can_be_run(tmp_path: Path) -> None:
    words, output = next(of for name, of in COMMANDS.items() if name.startswith("run"))
    file = ROOT / words[1]
    done = run("plan", str(file), *words[2:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{output.split()[0]} replications" in done.stdout
