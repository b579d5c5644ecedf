# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Fixtures of the end-to-end tests: the command, who runs it, and the check that nothing stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live import harness
from live import lab as labs
from live.harness import Airpath, User, Way, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.lab import Lab

USERS = harness.users()
WAYS = harness.ways()


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """Return a folder outside anybody's home, with the programs that the tests run."""
    # Not pytest's own folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="airpath-live-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("programs.py", "quic.py", "ways_out.py"):
        shutil.copy(Path(__file__).with_name(name), folder / name)
        (folder / name).chmod(0o644)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def command(public: Path) -> Path:
    """Return the command under test."""
    return harness.for_everybody(harness.find_command(), public)


@pytest.fixture(scope="session")
def python() -> str:
    """Return a Python that every user may run."""
    return harness.python_for_everybody()


@pytest.fixture(scope="module")
def lab(public: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Return three hosts."""
    if reason := labs.missing():
        pytest.skip(reason)
    lab = labs.build(public / f"lab-{request.module.__name__.rpartition('.')[2]}")
    yield lab
    lab.close()


@pytest.fixture
def airpath(
    command: Path, public: Path, python: str, request: pytest.FixtureRequest
) -> Iterator[Airpath]:
    """Return the command; afterwards, whatever the test did, nothing of it may be left."""
    work = Path(tempfile.mkdtemp(prefix="test-", dir=public))
    work.chmod(0o1777)
    airpath = Airpath(command, work, python)
    airpath.folder("tmp")
    before = World.look(airpath)
    yield airpath
    try:
        airpath.wait_until_gone()
    finally:
        # A test that failed must not leave its processes to the next.
        for pid in airpath.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if any(airpath.temporary.glob("airpath-*")):
        # The sockets of killed runs go when their owner next looks at the runs.
        for user in USERS:
            airpath.run("runs", user=user)
    end = time.monotonic() + 10
    # Another program on this host may come and go, so what is new gets time to vanish.
    while left := World.look(airpath).left_behind(before):
        if time.monotonic() > end:
            pytest.fail(f"left behind by {request.node.name}: {left}")
        time.sleep(0.1)
    shutil.rmtree(work, ignore_errors=True)


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """Return each user with each kind of port."""
    assert isinstance(request.param, Way)
    return request.param


@pytest.fixture(params=harness.port_ways(), ids=str)
def port_way(request: pytest.FixtureRequest) -> Way:
    """Return each kind of port once, for what does not depend on the user."""
    assert isinstance(request.param, Way)
    return request.param


@pytest.fixture(params=USERS, ids=str)
def user(request: pytest.FixtureRequest) -> User:
    """Return each user."""
    assert isinstance(request.param, User)
    return request.param


@pytest.fixture
def any_way() -> Way:
    """Return one way, for what does not depend on it."""
    return WAYS[0]


@pytest.fixture
def rootless() -> User:
    """Return an ordinary user."""
    return USERS[-1]
