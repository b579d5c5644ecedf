# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Completions and manual pages: every option is in them, and shells and formatters take them."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from airpath.declarations import DECLARATIONS
from airpath.engine import find_engine
from airpath.routing import NAMES
from airpath.shells import bash, fish, zsh
from airpath.shells.command import completions, man
from airpath.shells.shown import Shown, all_commands, profiles, read_help

SCRIPTS = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}


@cache
def commands() -> dict[str, Shown]:
    return all_commands()


@cache
def links() -> tuple[str, ...]:
    return profiles()


def run(*words: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{words}: {done.stderr}"
    return done.stdout


def needed(program: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def test_every_command_is_there_with_every_option_of_its_help() -> None:
    assert [name for name in commands() if " " not in name] == list(NAMES)
    assert set(DECLARATIONS) <= set(commands())
    for name, command in commands().items():
        listed = {flag.names[-1] for flag in command.flags}
        if name in DECLARATIONS:
            assert {one.flag for one in DECLARATIONS[name].options} <= listed, name
            continue
        if name == "video":
            continue
        text = run(find_engine(), "help", *name.split())
        # Before the examples nothing else stands at these margins.
        before = re.split(r"^Examples?:$", text, maxsplit=1, flags=re.MULTILINE)[0]
        options = re.findall(r"^(?: {2}-\w, | {6})(--[\w-]+)", before, re.MULTILINE)
        assert sorted(options) == sorted(flag.names[-1] for flag in command.flags), name
        assert command.summary == text.splitlines()[0]
        assert all(one.startswith("airpath ") for one in command.examples), name
    assert len(links()) >= 40
    assert {"wifi-good", "gsm-data-9.6k"} <= set(links())


HELP = """\
Do a thing

Usage: airpath do [OPTIONS] <FILE>

Arguments:
  <FILE>  The file

Options:
  -n, --number <N>
          How many there are,
          on two lines

          Possible values:
          - one:  The first,
            again on two lines
          - both: All

          [default: one]

  -h, --help
          Print help

Virtual time:
      --fast [<HOW>]  Whether [possible values: a, b]

Examples:
  airpath do x --with many words \\
      --and more
  airpath do y

A note.
"""


def test_the_help_of_the_engine_is_read() -> None:
    command = read_help("do", HELP)
    assert (command.summary, command.usage) == ("Do a thing", ("airpath do [OPTIONS] <FILE>",))
    assert command.places == (("<FILE>", "The file"),)
    number, _, fast = command.flags
    assert number == (
        ("-n", "--number"),
        ("N",),
        "How many there are, on two lines. Possible values: one: The first, again on two lines; "
        "both: All [default: one]",
        ("one", "both"),
        "Options",
    )
    assert (fast.choices, fast.section) == (("a", "b"), "Virtual time")
    assert command.examples == ("airpath do x --with many words --and more", "airpath do y")
    assert command.notes == ("A note.",)


LINES = [
    ("airpath ex", {"exec"}),
    ("airpath exec --profi", {"--profile"}),
    ("airpath exec --profile wifi-g", {"wifi-good"}),
    ("airpath exec --seed 1 --wake-latency ", {"hold", "leave"}),
    ("airpath trace sh", {"show"}),
    ("airpath trace show --ru", {"--runs"}),
    ("airpath profiles show geo", {"geo-satellite"}),
    ("airpath plot --only queue-c", {"queue-course"}),
    ("airpath plot one", {"one-folder"}),
    ("airpath check one-file", {"one-file.toml"}),
    ("airpath exec --quiet -- ls one-file", {"one-file.toml"}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file, a folder and the completions of all shells."""
    (tmp_path / "one-folder").mkdir()
    (tmp_path / "one-file.toml").touch()
    for shell, script in SCRIPTS.items():
        (tmp_path / f"script.{shell}").write_text(script(commands(), links()))
    return tmp_path


def test_bash_completes(folder: Path) -> None:
    script = ". ./script.bash; complete -p airpath\n"
    for line, _ in LINES:
        words = line.split() + ([""] if line.endswith(" ") else [])
        script += f"COMP_WORDS=({' '.join(repr(word) for word in words)})\n"
        # `compopt` has no meaning outside a completion, and says so.
        script += f"COMP_CWORD={len(words) - 1}; _airpath 2>/dev/null; echo ${{COMPREPLY[*]}}\n"
    first, *found = run("bash", "--norc", "-c", script, cwd=folder).splitlines()
    assert first == "complete -F _airpath airpath"
    for (line, wanted), given in zip(LINES, found, strict=True):
        # Files behind another command are the shell's own affair.
        assert set(given.split()) == (set() if " -- ls" in line else wanted), line


def test_bash_completes_values_behind_the_sign(folder: Path) -> None:
    script = ". ./script.bash; COMP_WORDS=(airpath exec --profile = wifi-g); COMP_CWORD=4; _airpath"
    found = run("bash", "--norc", "-c", f"{script}; echo ${{COMPREPLY[*]}}", cwd=folder)
    assert found == "wifi-good\n"


def test_fish_completes(folder: Path) -> None:
    lines = [line for line, _ in LINES]
    code = "source script.fish; for line in $argv; complete -C $line; echo ----; end"
    shown = run(needed("fish"), "--no-config", "-c", code, *lines, cwd=folder).split("----\n")
    for (line, wanted), given in zip(LINES, shown[:-1], strict=True):
        found = {one.split("\t")[0].rstrip("/") for one in given.splitlines()}
        assert found == wanted, line


def test_zsh_completes(folder: Path) -> None:
    zsh_program = needed("zsh")
    # A terminal within the shell, in which each line is completed and then shown.
    code = """
zmodload zsh/zpty
zpty shell zsh -f -i
wait_for() { local out; zpty -r shell out "*$1*" && REPLY=$out }
zpty -w shell 'PS1=; unsetopt beep; autoload -Uz compinit; compinit -u -D; . ./script.zsh'
zpty -w shell 'told() { print -r -- "<$BUFFER>"; BUFFER=; zle -R }; zle -N told; bindkey "^X" told'
zpty -w shell 'print rea""dy'; wait_for ready
for line in "$@"; do
    zpty -w -n shell "$line"$'\\t\\x18'; wait_for '>'; print -r -- "$REPLY"; print -- ----
done
zpty -d shell
"""
    lines = [LINES[number][0] for number in (0, 2, 4, 5, 9, 10)]
    shown = run(zsh_program, "-f", "-c", code, "zsh", *lines, cwd=folder).split("----\n")
    for line, given in zip(lines, shown[:-1], strict=True):
        (wanted,) = dict(LINES)[line]
        found = re.findall(r"<(airpath .*?)>", given)
        assert found, given
        assert found[-1].rstrip("/= ").endswith(wanted), (line, found)


def test_other_shells_are_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert completions("fsh") == 2
    assert "there are none for 'fsh'; did you mean `fish`?" in capsys.readouterr().err


def test_manual_pages_are_whole_and_formatters_take_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    assert man(tmp_path) == 0
    pages = {path.name: path.read_text() for path in sorted(tmp_path.iterdir())}
    assert len(pages) == len(commands()) + 1
    assert all('"2026-01-01"' in text for text in pages.values())
    for name, command in commands().items():
        text = pages[f"airpath-{name.replace(' ', '-')}.1"].replace("\\-", "-")
        for flag in command.flags:
            assert f"\\fB{flag.names[-1]}\\fR" in text, (name, flag.names)
    # Every page that another refers to is there.
    for text in pages.values():
        named = re.findall(r"^\.BR (airpath\S*) \(1\)", text.replace("\\-", "-"), re.MULTILINE)
        assert {f"{one}.1" for one in named} <= set(pages)
    if shutil.which("mandoc"):
        run("mandoc", "-Tlint", "-W", "warning", *(tmp_path / name for name in pages))
    if shutil.which("groff"):
        words = ("groff", "-man", "-ww", "-z", "-Tutf8")
        run(*words, *(tmp_path / name for name in pages))
