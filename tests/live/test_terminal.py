# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""At a terminal: shells with job control, Ctrl-C and Ctrl-Z, and the terminal given back."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.harness import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.harness import Airpath, User

INTERRUPT = "\x03"
SUSPEND = "\x1a"

SESSION = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
"""


class Terminal:
    """An interactive bash at a terminal of its own."""

    def __init__(self, airpath: Airpath, user: User) -> None:
        self.keyboard, terminal = pty.openpty()
        script = airpath.file("session.py", SESSION)
        environment = {**airpath.environment(), "PS1": "$ ", "SHELL": "/bin/bash", "HOME": "/"}
        self.process = subprocess.Popen(
            [*user.prefix, airpath.python, str(script)],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**environment, "HISTFILE": "/dev/null", "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(terminal)
        self.seen = ""

    def type(self, text: str) -> None:
        """Type text."""
        os.write(self.keyboard, text.encode())

    def read(self, wanted: str) -> None:
        """Read what is printed until `wanted` comes; later calls look behind it."""
        end = time.monotonic() + PATIENCE_S
        while wanted not in self.seen:
            if not select.select([self.keyboard], [], [], max(0, end - time.monotonic()))[0]:
                message = f"no {wanted!r} in {self.seen!r}"
                raise AssertionError(message)
            self.seen += os.read(self.keyboard, 4096).decode(errors="replace")
        self.seen = self.seen[self.seen.index(wanted) + len(wanted) :]

    def ask(self, line: str, wanted: str) -> None:
        """Type a line; read until `wanted` comes, which the line itself must not hold."""
        assert wanted not in line
        self.type(line + "\n")
        self.read(wanted)

    def close(self) -> None:
        """Hang up."""
        os.close(self.keyboard)
        self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def terminal(airpath: Airpath, user: User) -> Iterator[Terminal]:
    """Return a terminal of each user."""
    terminal = Terminal(airpath, user)
    terminal.ask("echo re''ady", "ready")
    yield terminal
    terminal.close()


def sleeping(airpath: Airpath) -> bool:
    return bool(_sleeps(airpath))


def stopped(airpath: Airpath) -> bool:
    """Return whether a `sleep` is there that job control has stopped."""
    return any(_state(pid) == "T" for pid in _sleeps(airpath))


def _sleeps(airpath: Airpath) -> list[int]:
    return [pid for pid, words in airpath.tree().items() if words[:1] == ["sleep"]]


def _state(pid: int) -> str:
    """Return the letter of a process's state (proc_pid_stat(5)), nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


def test_a_shell_at_a_terminal(airpath: Airpath, terminal: Terminal) -> None:
    terminal.ask(f"{airpath.command} shell -q --delay '5 ms'; echo stat''us=$?", "$ ")
    terminal.ask("echo depth=$AIRPATH_DEPTH.", "depth=1.")
    # Ctrl-C ends what runs in the shell, not the shell.
    terminal.type("sleep 200\n")
    await_true(lambda: sleeping(airpath), "sleep did not start")
    terminal.type(INTERRUPT)
    terminal.ask("echo aga''in", "again")
    assert not sleeping(airpath)
    # Its job control works.
    terminal.type("sleep 200\n")
    await_true(lambda: sleeping(airpath), "sleep did not start")
    terminal.type(SUSPEND)
    terminal.read("Stopped")
    # (Killed while stopped, it is still a stopped job until the shell hears of its end.)
    terminal.type("fg\n")
    await_true(lambda: sleeping(airpath) and not stopped(airpath), "sleep did not go on")
    terminal.type(INTERRUPT)
    terminal.ask("echo do''ne", "done")
    terminal.ask("exit 3", "status=3")
    # The outer shell has its terminal back.
    terminal.ask("echo ba''ck", "back")


def test_ctrl_c_at_a_terminal(airpath: Airpath, terminal: Terminal) -> None:
    line = f"{airpath.command} exec -q --server 'nc -lk 5000' -- sleep 200; echo stat''us=$?"
    terminal.type(line + "\n")
    await_true(lambda: sleeping(airpath), "sleep did not start")
    terminal.type(INTERRUPT)
    # A shell that sees its command interrupted gives up the rest of the line.
    terminal.ask("echo stat''us=$?", "status=130")


def test_suspending_and_resuming(airpath: Airpath, terminal: Terminal) -> None:
    terminal.type(f"{airpath.command} exec -q -- sleep 200\n")
    await_true(lambda: sleeping(airpath), "sleep did not start")
    terminal.type(SUSPEND)
    terminal.read("Stopped")
    terminal.ask("echo aga''in", "again")
    assert sleeping(airpath)
    terminal.type("fg\n")
    terminal.read("sleep 200")
    await_true(lambda: sleeping(airpath) and not stopped(airpath), "sleep did not go on")
    time.sleep(0.3)
    terminal.type(INTERRUPT)
    terminal.ask("echo stat''us=$?", "status=130")


def test_hanging_up(airpath: Airpath, user: User) -> None:
    terminal = Terminal(airpath, user)
    terminal.type(f"{airpath.command} shell -q\n")
    terminal.type("sleep 200\n")
    await_true(lambda: sleeping(airpath), "sleep did not start")
    terminal.close()
    airpath.wait_until_gone()
