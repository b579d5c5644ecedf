# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs on two hosts by a stand-in for `ssh`, which starts the other engine on this host."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from live.harness import SYSTEM_PATH, await_true
from live.hosts import HOPS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from live.harness import Airpath

STAND_IN = """\
#!{python}
import os, subprocess, sys, threading

pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
far = subprocess.Popen(["sh", "-c", sys.argv[-1]], start_new_session=True, **pipes)
with open("{pids}", "a") as file:
    print(os.getpid(), file=file)

def carry(source, target):
    while data := os.read(source, 65536):
        while data:
            data = data[os.write(target, data):]
    os.close(target)

threading.Thread(target=carry, args=(0, far.stdin.fileno()), daemon=True).start()
carry(far.stdout.fileno(), 1)
status = far.wait()
os._exit(status if status >= 0 else 255)
"""

HOST = """
[hosts.lab2]
ssh = "somebody@lab2"
engine = "{engine}"
"""

HOSTILE = """\
#!{python}
import sys

sys.stdout.buffer.write(bytes.fromhex("{said}"))
sys.stdout.buffer.flush()
sys.stdin.buffer.read()
"""


def scenario(airpath: Airpath, engine: Path) -> Path:
    """Write a scenario of two hosts, of which the other one has this engine."""
    hops = HOPS.format(propagation="30 ms", limit="100 packets")
    return airpath.file("hosts.toml", HOST.format(engine=engine) + hops)


@pytest.fixture
def stand_in(airpath: Airpath) -> Mapping[str, str]:
    """Return the environment in which the stand-in is `ssh`."""
    folder = airpath.folder("bin")
    script = folder / "ssh"
    script.write_text(STAND_IN.format(python=airpath.python, pids=airpath.path("pids")))
    script.chmod(0o755)
    return {"PATH": f"{folder}:{SYSTEM_PATH}"}


def word(**fields: object) -> bytes:
    """Return a word between engines, as a frame."""
    frame = b"\x01" + json.dumps(fields).encode()
    return struct.pack("<I", len(frame)) + frame


def test_escape_sequences_of_another_host_are_shown_as_text(
    airpath: Airpath, stand_in: Mapping[str, str]
) -> None:
    """They are not carried out by the terminal, whatever the engine there says."""
    version = airpath.run("--version").check().out.split()[1]
    said = b"\nairpath-remote-hop\n"
    said += word(word="hello", protocol=4, airpath_version=version, clock_identity="x")
    said += word(word="failed", message="no \x1b[2J\x1b]0;owned\x07 room\u009b31m\rhere")
    engine = airpath.file("hostile", HOSTILE.format(python=airpath.python, said=said.hex()))
    engine.chmod(0o755)
    file = scenario(airpath, engine)
    result = airpath.run("exec", "--scenario", file, "--", "true", environment=stand_in)
    shown = r"no \u001b[2J\u001b]0;owned\u0007 room\u009b31m\u000dhere"
    assert f"host `lab2` (somebody@lab2): {shown}\n" in result.err
    assert not any(ord(character) < 32 and character != "\n" for character in result.err)


def test_ssh_that_is_killed_is_told_as_such(airpath: Airpath, stand_in: Mapping[str, str]) -> None:
    """Nothing is said of the engine on the other host, which nobody has killed."""
    out = airpath.path("run")
    file = scenario(airpath, airpath.command)
    up = airpath.path("up")
    process = airpath.start(
        *("exec", "--scenario", file, "--out", out),
        *("--", "sh", "-c", f"touch {up}; exec sleep 60"),
        environment=stand_in,
        stdout=subprocess.DEVNULL,
    )
    await_true(lambda: up.exists() or process.poll() is not None)
    # The first is the connection of the run; others copy logs.
    os.kill(int(airpath.path("pids").read_text().split()[0]), signal.SIGKILL)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 125, errors
    assert "host `lab2`: signal 9 ended ssh on this host" in errors
    assert "engine there was killed" not in errors


def test_a_way_on_which_nothing_came_has_no_delay(
    airpath: Airpath, stand_in: Mapping[str, str]
) -> None:
    """The line of a host says so, where 0 ns would be a measurement."""
    file = scenario(airpath, airpath.command)
    result = airpath.run("exec", "--scenario", file, "--", "true", environment=stand_in)
    assert "network carried no packets" in result.err
    assert "0 ns back" not in result.err
