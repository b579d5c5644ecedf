# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""However a run in virtual time ends, it ends, says why, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from airpath.run import load_run
from live.harness import await_true

if TYPE_CHECKING:
    from live.harness import User
    from warp.conftest import Warp

WAIT = "touch {up}; exec tail -f /dev/null"
"""Waits for ever, looking at a file now and then."""


def check_invalid(manifest: dict[str, Any], why: str) -> None:
    """Check that a run which was broken off says so."""
    assert manifest["status"] == "failed"
    verdict = manifest["results"]["verdict"]
    assert verdict["grade"] == "invalid"
    assert verdict["reasons"][0]["code"] == "broken_off"
    assert why in verdict["reasons"][0]["what"]


def test_a_program_that_spins_is_named(warp: Warp, user: User) -> None:
    out = warp.airpath.path("run")
    program = "print('spinning', flush=True)\nwhile True: pass"
    spin = (warp.airpath.python, "-c", program)
    result = warp.run("--stall-limit", "2 s", "--out", out, "--", *spin, user=user).check(125)
    assert "virtual time stopped" in result.err
    assert "`python" in result.err
    assert "spinning" in result.out
    # What was recorded can be read, and does not pass for a run that went well.
    check_invalid(load_run(out).manifest, "virtual time stopped")
    assert "verdict is invalid" in result.err.splitlines()[-1]


def test_a_run_that_does_not_end_is_ended(warp: Warp, user: User) -> None:
    out = warp.airpath.path("run")
    wait = ("sleep", "infinity")
    result = warp.run("--wall-limit", "3 s", "--out", out, "--", *wait, user=user).check(125)
    check_invalid(load_run(out).manifest, "3 s of real time")
    assert "3 s of real time" in result.err
    assert "--wall-limit" in result.err
    assert "`sleep infinity` had not ended" in result.err
    assert result.seconds < 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_command(warp: Warp, user: User, number: signal.Signals) -> None:
    path = warp.airpath.path("signal")
    path.touch()
    path.chmod(0o666)
    program = warp.airpath.program("noted-signal", path)
    process = warp.start("-q", "--", *program, user=user)
    await_true(lambda: path.read_text() == "up")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 40 + number
    assert path.read_text() == number.name


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_ends_a_program_that_spins(
    warp: Warp, user: User, number: signal.Signals
) -> None:
    up, out = warp.airpath.path("up"), warp.airpath.path("run")
    program = (
        f"import signal; signal.signal({int(number)}, signal.SIG_IGN);"
        f"open({str(up)!r}, 'w').close()\nwhile True: pass"
    )
    spin = (warp.airpath.python, "-c", program)
    limit = ("--stall-limit", "100 s")
    process = warp.start(*limit, "--out", out, "--", *spin, user=user)
    await_true(up.exists)
    begun = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert time.monotonic() - begun < 50
    assert load_run(out).manifest["status"] == "failed"
    assert "verdict is invalid" in err


@pytest.mark.parametrize("victim", ["foreground", "kernel"])
def test_kill_9(warp: Warp, user: User, victim: str) -> None:
    up = warp.airpath.path("up")
    process = warp.start("--", "sh", "-c", WAIT.format(up=up), user=user)
    await_true(up.exists)
    assert len(warp.kernels()) > 1
    os.kill(process.pid if victim == "foreground" else min(warp.kernels()), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    if victim == "kernel":
        assert process.returncode == 125
        assert "the guest's kernel ended before the run" in err
    # The fixtures see that no process, mount or file is left.
