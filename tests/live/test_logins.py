# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Log-ins with a terminal, and other users, in runs of an ordinary user."""

from __future__ import annotations

import grp
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.harness import User
from live.lab import SSHD, make_keys, sshd_config

if TYPE_CHECKING:
    from live.harness import Airpath

ANN = 54321
"""A user whom only the mount namespace of a test knows."""

FILES = ("passwd", "group", "subuid", "subgid")

ENTER = """\
for name in passwd group subuid subgid; do mount --bind "$0/$name" "/etc/$name" || exit 1; done
exec setpriv --reuid=54321 --regid=54321 --clear-groups env HOME="$0" "$@"
"""


def missing() -> str:
    """Say what the tests need and this machine lacks."""
    if os.geteuid() != 0:
        return "users of a test's own need root"
    tools = [tool for tool in (SSHD, "ssh", "newuidmap", "newgidmap") if not shutil.which(tool)]
    if tools:
        return f"missing: {', '.join(tools)}"
    absent = [name for name in FILES if not Path("/etc", name).is_file()]
    return f"/etc has no {', '.join(absent)}" if absent else ""


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def ann(folder: Path, subordinate: str) -> User:
    """Return a user with these subordinate ids, whose home is a folder with keys of ssh."""
    make_keys(folder)
    entries = {"passwd": f"ann:*:{ANN}:{ANN}:ann:{folder}:/bin/sh\n", "group": f"ann:x:{ANN}:\n"}
    for name in FILES[:2]:
        (folder / name).write_text(Path("/etc", name).read_text() + entries[name])
    for name in FILES[2:]:
        (folder / name).write_text(subordinate)
    sshd_config(folder, "ann", "0.0.0.0", 2222)
    subprocess.run(["chown", "-R", f"{ANN}:{ANN}", folder], check=True)
    for name in FILES:
        os.chown(folder / name, 0, 0)
    folder.chmod(0o755)
    return User("ann", ("unshare", "--mount", "sh", "-c", ENTER, str(folder)))


def log_in(airpath: Airpath, user: User, folder: Path, line: str) -> str:
    """Return what a command says that ssh starts with a terminal at the server's end."""
    server = f"{SSHD} -D -e -f {folder}/sshd_config-ann"
    options = ["-F", "/dev/null", "-i", folder / "id", "-p", 2222, "-tt"]
    options += ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]
    words = ("--delay", "2 ms", "--server", server, "--", "ssh", *options, "ann@server", line)
    return airpath.run("exec", *words, user=user).check().out


@pytest.mark.parametrize("subordinate", ["ann:200000:65536\n", ""])
def test_ssh_has_a_terminal(airpath: Airpath, subordinate: str) -> None:
    folder = airpath.folder("ann")
    user = ann(folder, subordinate)
    line = "tty; stat -c %g $(tty); wc -l < /proc/self/gid_map"
    terminal, group, ranges = log_in(airpath, user, folder, line).split()
    assert terminal.startswith("/dev/pts/")
    if subordinate:
        # Its own group stands between those of lower and of higher numbers.
        assert (int(group), int(ranges)) == (grp.getgrnam("tty").gr_gid, 3)
    else:
        assert int(ranges) == 1


def test_a_run_as_root_may_become_other_users(airpath: Airpath) -> None:
    folder = airpath.folder("ann")
    become = ("setpriv", "--reuid=33", "--regid=33", "--clear-groups", "id", "-u")
    words = ("exec", "--as-root", "--delay", "1 ms", "--", *become)
    assert airpath.run(*words, user=ann(folder, "ann:200000:65536\n")).check().out == "33\n"


def test_the_user_stays_who_he_is(airpath: Airpath) -> None:
    folder = airpath.folder("ann")
    user = ann(folder, f"{ANN}:200000:65536\n")
    line = 'id -u; touch "$HOME/made"; stat -c %u "$HOME/made"'
    said = airpath.run("exec", "--delay", "1 ms", "--", "sh", "-c", line, user=user).check().out
    assert said.split() == [str(ANN), str(ANN)]
    assert (folder / "made").stat().st_uid == ANN
