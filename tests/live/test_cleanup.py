# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""However a run ends, nothing of it stays, and what was logged until then can be read.

That nothing stays is checked by the fixture `airpath` after every test: processes, interfaces,
namespaces with names, mounts, temporary files. Here the anonymous namespaces are checked as well.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from live import harness
from live.harness import await_true
from processes import children

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, User, Way


class Running:
    """A run with a server, a client that pings through the link, and a log."""

    def __init__(self, airpath: Airpath, way: Way, *arguments: object) -> None:
        self.airpath = airpath
        self.out = airpath.path("run")
        self.up = airpath.path("up")
        line = f"exec ping -i 0.02 server > {self.up}"
        self.process = airpath.start(
            "exec", "--port", way.port, "--delay", "2 ms", "--out", self.out, *arguments,
            "--server", "nc -lk 5000", "--", "sh", "-c", line,
            user=way.user, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        # As many as the log is expected to have, however slow the machine is.
        await_true(lambda: self.up.exists() and self.up.read_text().count(" bytes from ") > 10)
        time.sleep(0.5)
        self.namespaces = harness.namespaces(airpath.processes())

    def find(self, *words: str) -> int:
        """Return the process whose command line begins with `words`."""
        for pid, command in self.airpath.tree().items():
            if tuple(command[: len(words)]) == words:
                return pid
        message = f"no {words} in {self.airpath.tree()}"
        raise AssertionError(message)

    def engine(self) -> int:
        """Return the engine's process: the child of the foreground process."""
        return children(self.process.pid)[0]

    def ended(self) -> str:
        """Wait for the end; return what went to stderr."""
        _, err = self.process.communicate(timeout=60)
        self.airpath.wait_until_gone()
        await_true(
            lambda: not harness.holders(self.namespaces),
            lambda: f"namespaces are still held: {harness.holders(self.namespaces)}",
            20,
        )
        return err

    def assert_log_can_be_read(self, clean: bool) -> None:
        """Check that the log holds what happened until the end."""
        run = load_run(self.out)
        offered = run.path_events("offered")
        assert offered.height >= 10, run.notes
        assert run.manifest["status"] == ("finished" if clean else "running")
        for end in ("client", "server"):
            assert run.captures[end].height >= 10
        result = self.airpath.run("log", self.out).check()
        assert result.out.count("offered") >= 10
        result = self.airpath.run("log", self.out, "--json", "--kind", "offered").check()
        assert len([json.loads(line) for line in result.out.splitlines()]) >= 10
        result = self.airpath.run("log", self.out, "--tcpdump").check()
        assert "ICMP6" in result.out or "ICMP" in result.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_foreground_process(
    airpath: Airpath, user: User, number: signal.Signals
) -> None:
    way = harness.Way(user, "packet")
    run = Running(airpath, way)
    run.process.send_signal(number)
    err = run.ended()
    # ping ends by itself at SIGINT.
    expected = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 0}
    assert run.process.returncode == expected[number], err
    assert "verdict" in err
    run.assert_log_can_be_read(clean=True)


def test_a_run_that_is_killed_before_it_begins_says_so(airpath: Airpath, any_way: Way) -> None:
    out, up = airpath.path("run"), airpath.path("up")
    process = airpath.start(
        *("exec", "--out", out, "--server-ready", "5000"),
        *("--server", f"touch {up}; sleep 60", "--", "true"),
        user=any_way.user,
    )
    await_true(up.exists)
    process.kill()
    process.communicate(timeout=60)
    airpath.wait_until_gone()
    # Tables may be there, without a row or a byte; a manifest is not.
    result = airpath.run("log", out)
    assert "killed before" in result.err, result.err
    assert "check the name" not in result.err


def test_ctrl_c_at_a_terminal(airpath: Airpath, way: Way) -> None:
    keyboard, terminal = pty.openpty()
    path = airpath.path("signals")
    program = airpath.program("noted-signal", path)
    script = airpath.file("session.py", TERMINAL_SESSION)
    process = subprocess.Popen(
        [*way.user.prefix, airpath.python, str(script), str(airpath.command), "exec", "--port",
         way.port, "--", *program],
        stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=airpath.environment(),
        start_new_session=True, text=True,
    )  # fmt: skip
    os.close(terminal)
    await_true(path.exists)
    found = harness.namespaces(airpath.processes())
    os.write(keyboard, b"\x03")
    _, err = process.communicate(timeout=60)
    os.close(keyboard)
    # Once: the terminal sent it to the whole group, so nobody hands it on.
    assert path.read_text() == "SIGINT", err
    assert process.returncode == 42
    airpath.wait_until_gone()
    await_true(lambda: not harness.holders(found), "namespaces are still held", 20)


TERMINAL_SESSION = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_server_is_waited_for(
    airpath: Airpath, user: User, number: signal.Signals
) -> None:
    path = airpath.path("up")
    process = airpath.start(
        "exec", "--server", f"touch {path}; sleep 100", "--server-timeout", "100 s", "--", "true",
        user=user,
    )  # fmt: skip
    await_true(path.exists)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number


def test_kill_9_of_the_foreground_process(airpath: Airpath, way: Way) -> None:
    run = Running(airpath, way)
    os.kill(run.process.pid, signal.SIGKILL)
    run.ended()
    run.assert_log_can_be_read(clean=False)


def test_kill_9_of_the_engine(airpath: Airpath, way: Way) -> None:
    run = Running(airpath, way)
    os.kill(run.engine(), signal.SIGKILL)
    err = run.ended()
    assert run.process.returncode == 125
    assert "the engine process was killed by SIGKILL" in err
    run.assert_log_can_be_read(clean=False)


def test_a_crash_of_the_foreground_process(airpath: Airpath, way: Way) -> None:
    run = Running(airpath, way)
    os.kill(run.process.pid, signal.SIGABRT)
    run.ended()
    run.assert_log_can_be_read(clean=False)


def test_kill_9_of_the_clients_command(airpath: Airpath, way: Way) -> None:
    run = Running(airpath, way)
    os.kill(run.find("ping"), signal.SIGKILL)
    err = run.ended()
    assert run.process.returncode == 128 + signal.SIGKILL
    assert "verdict" in err
    run.assert_log_can_be_read(clean=True)


def test_kill_9_of_the_servers_command(airpath: Airpath, way: Way) -> None:
    run = Running(airpath, way)
    os.kill(run.find("nc"), signal.SIGKILL)
    time.sleep(0.3)
    # The client's command decides when the run is over.
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    run.ended()
    assert run.process.returncode == 0
    run.assert_log_can_be_read(clean=True)


def test_programs_that_ignore_signals_end_with_the_foreground_process(
    airpath: Airpath, user: User
) -> None:
    path = airpath.path("up")
    process = airpath.start("exec", "--", *airpath.program("stubborn", path), user=user)
    await_true(path.exists)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.poll() is None  # The command may ignore it; then it goes on.
    process.kill()
    process.communicate(timeout=30)
    airpath.wait_until_gone()


def test_kill_9_of_a_nested_run(airpath: Airpath, way: Way) -> None:
    up = airpath.path("up")
    one = (str(airpath.command), "exec", "-q", "--port", way.port, "--")
    line = f"touch {up}; exec sleep 100"
    process = airpath.start(*one[1:], *one, "sh", "-c", line, user=way.user)
    await_true(up.exists)
    found = harness.namespaces(airpath.processes())
    process.kill()
    process.communicate(timeout=30)
    airpath.wait_until_gone()
    await_true(
        lambda: not harness.holders(found), lambda: f"still held: {harness.holders(found)}", 20
    )


def test_kill_9_during_the_setup(airpath: Airpath, way: Way) -> None:
    # At whatever point of it.
    for tenth in range(8):
        process = airpath.start("exec", "--port", way.port, "--", "sleep", 100, user=way.user)
        time.sleep(0.004 * tenth)
        process.kill()
        process.communicate(timeout=30)
    airpath.wait_until_gone()


# A tmpfs of its own, in a mount namespace of its own that ends with the command.
FULL_DISK = (
    "mount -t tmpfs -o size=2m,mode=1777 tmpfs {work}/files && "
    "{prefix} {command} exec --out {work}/files/run --log packets --snaplen full "
    "-- ping -i 0.002 -c 1500 -s 1000 -q server; status=$?; "
    "cp -r {work}/files/run {work}/copy; chmod -R a+rX {work}/copy; exit $status"
)


def test_a_full_disk(airpath: Airpath, user: User) -> None:
    airpath.folder("files")
    line = FULL_DISK.format(
        work=airpath.work, prefix=" ".join(user.prefix), command=airpath.command
    )
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    process = subprocess.run(
        [*unshare, "sh", "-c", line],
        env=airpath.environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    # The programs do not suffer; the verdict says that the log is incomplete, and why.
    assert "1500 received" in process.stdout, process.stdout + process.stderr
    assert process.returncode == 0
    assert "space" in process.stderr
    assert "suspect" in process.stderr or "invalid" in process.stderr
    run = load_run(airpath.work / "copy")
    assert run.events.height > 50, run.notes
    assert run.captures["client"].height > 10, run.notes


def test_a_folder_that_vanishes(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    line = f"ping -c 2 -i 0.1 server; rm -r {out}; ping -c 2 -i 0.1 server"
    result = airpath.run("exec", "--out", out, "--", "sh", "-c", line, user=user)
    assert result.status == 0
    assert str(out) in result.err
    assert not out.exists()


def test_a_folder_that_is_not_empty_is_left_alone(airpath: Airpath, user: User) -> None:
    out = airpath.folder("full")
    (out / "notes.txt").write_text("mine")
    result = airpath.run("exec", "--out", out, "--", "true", user=user).check(2)
    assert str(out) in result.err
    assert "not empty" in result.err
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


def test_a_folder_is_used_once(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    airpath.run("exec", "--out", out, "--", "true", user=user).check()
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    result = airpath.run("exec", "--out", out, "--", "true", user=user).check(2)
    assert "holds a run" in result.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_run_that_cannot_begin_leaves_no_folder(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    airpath.run("exec", "--out", out, "--cc", "nonesuch", "--", "true", user=user).check(2)
    # So that the corrected command may use the same name.
    airpath.run("exec", "--out", out, "--", "true", user=user).check()


def files_are_whole(folder: Path) -> None:
    """Check that a folder holds finished files only."""
    leftovers = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert leftovers == []


def test_finished_files_are_in_arrows_file_format(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    command = ("ping", "-c", "2", "-i", "0.1", "server")
    airpath.run("exec", "--out", out, "--", *command, user=user).check()
    files_are_whole(out)
    for name in ("events.arrow", "input.arrow"):
        content = (out / name).read_bytes()
        assert content.startswith(b"ARROW1")
        assert content.endswith(b"ARROW1")
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed, so the captures were not read with it")
    for end in ("client", "server"):
        listing = subprocess.run(
            ["tshark", "-r", str(out / f"{end}.pcapng")],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert listing.returncode == 0, listing.stderr
        assert listing.stdout.count("Echo (ping)") == 4
