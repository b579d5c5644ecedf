# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""PPP over serial lines: ends, relays, noise, and what users get wrong."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from live.harness import PATIENCE_S, await_true, users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.harness import Airpath, User

PEER = Path(__file__).with_name("ppp_peer.py")


@contextmanager
def beside(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Let a process run meanwhile."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def peer(*words: object) -> subprocess.Popen[str]:
    """Start a peer of the test's own."""
    return subprocess.Popen([sys.executable, str(PEER), *map(str, words)], text=True)


def ended(process: subprocess.Popen[str], status: int = 0) -> str:
    """Return the standard error of a process that ends by itself."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, f"exit status {process.returncode}\n{out}\n{err}"
    return err


@pytest.mark.parametrize("user", users(), ids=str)
def test_two_runs_are_joined_by_a_line(airpath: Airpath, user: User) -> None:
    line, out = airpath.path("line"), airpath.path("run")
    near = airpath.start(
        *("exec", "--delay", "30 ms", "--server-ppp", f"pty:{line}", "--out", out, "--"),
        *("ping", "-c", "3", "-i", "0.2", "server"),
        user=user,
    )
    with beside(near):
        await_true(line.is_symlink)
        words = ("exec", "--delay", "20 ms", "--client-ppp", line, "--json")
        far = airpath.start(*words, user=user)
        with beside(far):
            out_near, err_near = near.communicate(timeout=PATIENCE_S)
            assert near.returncode == 0, err_near
            assert "PPP on" in err_near
            assert "the peer is" in err_near
            assert out_near.count("bytes from") == 3
            times = [float(word[5:]) for word in out_near.split() if word.startswith("time=")]
            assert 100 <= min(times) < 500
            # The peer ended PPP and closed the line, which ends a run without commands.
            err_far = ended(far)
            assert "hung up: the run ends" in err_far
            # That is the end of the peer's part, and no loss.
            assert "went down" not in err_far
            assert '"verdict"' in err_far
    assert not line.is_symlink()
    run = load_run(out)
    assert run.manifest["status"] == "finished"
    assert run.path_events("delivered").height >= 6


def test_a_line_that_hangs_up_ends_the_run_and_keeps_its_record(airpath: Airpath) -> None:
    line, out = airpath.path("line"), airpath.path("run")
    near = airpath.start(
        *("exec", "--server-ppp", f"pty:{line}", "--out", out, "--", "sleep", "60")
    )
    with beside(near):
        await_true(line.is_symlink)
        with beside(airpath.start("exec", "-q", "--client-ppp", line)):
            await_true(lambda: (out / "run.json").exists())
        err = ended(near, 128 + signal.SIGTERM)
    assert "hung up: the run ends" in err
    assert load_run(out).manifest["status"] == "finished"


def test_frames_pass_a_relay_with_its_delay(airpath: Airpath) -> None:
    near_line, far_line, out = airpath.path("near"), airpath.path("far"), airpath.path("run")
    near = airpath.start(
        *("exec", "--server-ppp", f"pty:{near_line}", "--"),
        *("ping", "-c", "3", "-i", "0.2", "-s", "100", "server"),
    )
    far = airpath.start("exec", "-q", "--client-ppp", f"pty:{far_line}")
    with beside(near), beside(far):
        await_true(lambda: near_line.is_symlink() and far_line.is_symlink())
        relay = airpath.start(
            "relay", near_line, far_line, "--delay", "40 ms", "--out", out, "--json"
        )
        with beside(relay):
            out_near, err_near = near.communicate(timeout=PATIENCE_S)
            assert near.returncode == 0, err_near
            times = [float(word[5:]) for word in out_near.split() if word.startswith("time=")]
            assert len(times) == 3
            assert min(times) >= 80
            err = ended(relay)
    assert "hung up: the run ends" in err
    run = load_run(out)
    assert run.manifest["status"] == "finished"
    delivered = run.path_events("delivered")
    # A flag, a byte of protocol, 128 bytes of IP, their escapes and the check sequence.
    lengths = [bits // 8 for bits in delivered["bits"] if 132 <= bits // 8 < 200]
    assert len(lengths) == 6
    assert airpath.run("replay", out).check().out.startswith("identical: ")


@pytest.mark.parametrize("relayed", [False, True], ids=["end", "relay"])
def test_a_line_opens_again_after_noise(airpath: Airpath, relayed: bool) -> None:
    near_line, far_line = airpath.path("near"), airpath.path("far")
    until = "for i in $(seq 100); do ping -c 1 -W 1 server && exit; done; exit 1"
    near = airpath.start(
        *("exec", "-q", "--server-ppp", f"pty:{near_line}", "--", "sh", "-c", until)
    )
    far = airpath.start("exec", "-q", "--client-ppp", f"pty:{far_line}")
    with beside(near), beside(far):
        await_true(lambda: near_line.is_symlink() and far_line.is_symlink())
        if not relayed:
            with beside(peer("noise", near_line, far_line, 2)):
                ended(near)
            return
        middle = airpath.path("middle")
        relay = airpath.start("relay", "-q", "--delay", "1 ms", f"pty:{middle}", far_line)
        with beside(relay):
            await_true(middle.is_symlink)
            with beside(peer("noise", near_line, middle, 2)):
                ended(near)


def test_a_peer_that_refuses_ipv4_is_told(airpath: Airpath) -> None:
    line = airpath.path("line")
    near = airpath.start("exec", "--server-ppp", f"pty:{line}", "--", "true")
    with beside(near):
        await_true(line.is_symlink)
        with beside(peer("refuse", line)):
            err = ended(near, 125)
    assert "the peer refuses IPv4" in err
    assert not line.is_symlink()


def test_nobody_at_the_line_is_told_in_time(airpath: Airpath) -> None:
    line, out = airpath.path("line"), airpath.path("run")
    arguments = ("exec", "--server-ppp", f"pty:{line}", "--ppp", "timeout=500 ms", "--out", out)
    result = airpath.run(*arguments, "--", "true").check(125)
    assert "no PPP peer has opened IPv4" in result.err
    assert "--ppp timeout=" in result.err
    assert not line.is_symlink()
    assert not out.exists()


def test_what_is_no_line_is_refused(airpath: Airpath) -> None:
    master, terminal = pty.openpty()
    path = os.ttyname(terminal)
    file = airpath.file("file", "")
    try:
        with beside(airpath.start("relay", "-q", path, "pty")) as relay:
            await_true(lambda: len(airpath.processes()) >= 2)
            cases = {
                ("exec", "--server-ppp", file, "--", "true"): (2, "no terminal"),
                ("exec", "--server-ppp", "/dev/ttyNONE", "--", "true"): (2, "no such serial line"),
                ("relay", "pty", f"pty:{file}"): (2, "exists already"),
                ("relay", file, "pty"): (2, "no terminal"),
                ("relay", path, path): (2, "a relay needs two"),
                ("relay", "--log", "packets", "--out", "x", "pty", "pty"): (2, "--log events"),
                ("relay", "--internet", "pty", "pty"): (2, "--internet is for ends"),
                ("exec", "--ppp", "mru=600", "--", "true"): (2, "--server-ppp LINE"),
                ("exec", "--server-ppp", "pty", "--ppp", "mru=600", "--", "true"): (2, "--mtu 600"),
                ("exec", "--server-ppp", "pty", "--ppp", "mtu=6", "--", "true"): (
                    2,
                    "no option `mtu`",
                ),
                ("exec", "--server-ppp", "pty", "--internet", "--", "true"): (
                    2,
                    "--internet connects",
                ),
                ("exec", "--server-ppp", "pty", "--client-ppp", "pty", "--", "true"): (
                    2,
                    "cannot be used",
                ),
                ("shell", "--client-ppp", "pty"): (2, "no link"),
            }
            for words, (status, message) in cases.items():
                result = airpath.run(*words).check(status)
                assert message in result.err, result.err

            def in_use() -> bool:
                result = airpath.run("relay", path, "pty", timeout=10)
                return result.status == 2 and "in use" in result.err

            assert in_use()
            relay.terminate()
            assert relay.wait(PATIENCE_S) == 0
        if os.geteuid() == 0:
            nobody = users()[1]
            Path(path).chmod(0o600)
            result = airpath.run("relay", path, "pty", user=nobody).check(123)
            assert "cannot be opened" in result.err
    finally:
        os.close(master)
        os.close(terminal)
