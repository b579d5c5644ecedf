# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Confinement: parts of the host that commands at the ends of a link cannot reach."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from live.harness import Airpath, Way

EVERY_WAY = {"network", "trace", "memory", "mount", "sysctl", "core", "clock", "parents"}
"""Ways out that are open to a command of root's where nothing confines it."""
OWN_MOUNTS = {"mount"}
"""An ordinary user mounts in a namespace of the run's own."""


def ways_out(airpath: Airpath, way: Way, *options: str) -> set[str]:
    """Return which ways out of the run a command found."""
    program = str(airpath.work.parent / "ways_out.py")
    host = str(Path("/proc/self/ns/net").readlink())
    words = (*options, "--", airpath.python, program, host)
    return set(airpath.exec(way, "--delay", "1 ms", *words).check().out.split())


def test_a_confined_command_finds_no_way_out(airpath: Airpath, way: Way) -> None:
    found = ways_out(airpath, way, "--confine")
    assert found - (set() if way.user.name == "root" else OWN_MOUNTS) == set()


def test_root_is_confined_only_when_asked_and_others_always(airpath: Airpath, way: Way) -> None:
    for option in ((), ("--no-confine",), ("--confine", "--no-confine")):
        found = ways_out(airpath, way, *option)
        if way.user.name == "root":
            # Containers take some of it from root as well.
            assert found <= EVERY_WAY
            assert "network" in found
        else:
            assert found <= OWN_MOUNTS


def test_the_usual_programs_work_where_they_are_confined(airpath: Airpath, any_way: Way) -> None:
    program = airpath.command.name
    line = (
        f"{program} send server --bytes 20000 >/dev/null 2>&1 && echo sent; "
        "cat /proc/sys/net/ipv4/tcp_sack; cat /sys/class/net/airpath0/mtu"
    )
    server = f"{program} recv --once 2>/dev/null"
    words = ("--confine", "--delay", "1 ms", "--server", server, "--", "sh", "-c", line)
    assert airpath.exec(any_way, *words).check().out.split() == ["sent", "1", "1500"]


def test_recv_listens_for_this_host_alone(airpath: Airpath) -> None:
    process = airpath.start("recv", "--port", "5299")
    try:
        assert process.stderr is not None
        assert "listening on 127.0.0.1 only" in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("mode", [0o777, 0o700])
def test_a_folder_of_others_is_not_written_to(airpath: Airpath, way: Way, mode: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of somebody else's")
    folder = airpath.folder("results")
    folder.chmod(mode)
    os.chown(folder, 54321, 54321)
    result = airpath.exec(way, "--delay", "1 ms", "--out", folder, "--", "true").check(122)
    assert str(folder) in result.err
    assert not list(folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == mode


def test_a_planted_link_is_not_written_through(airpath: Airpath, any_way: Way) -> None:
    victim, folder = airpath.file("victim", "secret"), airpath.path("run")
    line = f"for i in 1 2 3 4; do ln -sf {victim} {folder}/.run.json.new; sleep 0.1; done"
    airpath.exec(any_way, "--delay", "1 ms", "--out", folder, "--", "sh", "-c", line).check()
    assert victim.read_text() == "secret"
    assert (folder / "run.json").is_file()
    assert not (folder / "run.json").is_symlink()
