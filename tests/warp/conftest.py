# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Fixtures of the tests in virtual time: those of the live ones, and a kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from live.conftest import airpath, command, public, python, user
from live.harness import await_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.harness import Airpath, Result

__all__ = ["airpath", "command", "public", "python", "user"]

WARP_PATIENCE_S = 150.0
"""For a run that takes seconds on a quiet machine."""


@pytest.fixture(scope="session")
def kernel(command: Path, public: Path) -> Path:
    """Return the kernel that `airpath warp setup` built, where every user may run it."""
    words = [str(command), "warp", "setup", "--check"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        reason = f"no kernel for virtual time: {found.stderr.strip()}"
        # Where everything is to be covered, a test that is skipped is a failure.
        assert "CI" not in os.environ, reason
        pytest.skip(reason)
    copy = public / "kernel"
    shutil.copy(found.stdout.strip(), copy)
    copy.chmod(0o755)
    return copy


@dataclass
class Warp:
    """The command, with the kernel that it boots."""

    airpath: Airpath
    kernel: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variable that names the kernel."""
        return {"AIRPATH_WARP_KERNEL": str(self.kernel)}

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        """Start `airpath exec --clock warp`."""
        environment = {**self.environment, **options.pop("environment", {})}
        words = ("exec", "--clock", "warp", *arguments)
        return self.airpath.start(*words, environment=environment, **options)

    def run(self, *arguments: object, **options: Any) -> Result:
        """Run `airpath exec --clock warp` to its end."""
        environment = {**self.environment, **options.pop("environment", {})}
        words = ("exec", "--clock", "warp", *arguments)
        options = {"timeout": WARP_PATIENCE_S, **options}
        return self.airpath.run(*words, environment=environment, **options)

    def kernels(self) -> list[int]:
        """Return the processes of the kernel and of its programs."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0] == str(self.kernel).encode():
                    found.append(int(entry.name))
        return found


@pytest.fixture
def warp(airpath: Airpath, kernel: Path) -> Iterator[Warp]:
    """Return the command in virtual time; afterwards no kernel may be left."""
    warp = Warp(airpath, kernel)
    yield warp
    await_true(lambda: not warp.kernels(), lambda: f"kernels left: {warp.kernels()}", 20)
