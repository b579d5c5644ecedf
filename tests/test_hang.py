# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A test that hangs fails, says where, and the next one runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

HANGS = """
import subprocess, sys, hang
hang.LIMIT_S = 1.0

class Command:
    def __init__(self): self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1)
    def processes(self): return [self.process.pid]

import pytest
@pytest.fixture
def airpath():
    command = Command()
    yield command
    command.process.kill()
    command.process.wait()
    print("cleaned up")

def test_waits_for_ever(airpath):
    airpath.process.wait()

def test_after_it():
    pass
"""


def test_a_test_that_hangs_fails_with_its_place_and_its_processes(tmp_path: Path) -> None:
    file = tmp_path / "test_hanging.py"
    file.write_text(HANGS)
    words = ["-m", "pytest", "-p", "hang", "-p", "no:cacheprovider", "-rA", "-q", str(file)]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env={"PYTHONPATH": str(HERE), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "test_waits_for_ever was not over after 1 s" in done.stdout
    assert "input()" in done.stdout
    assert "airpath.process.wait()" in done.stdout
    assert "cleaned up" in done.stdout
