# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Ctrl-C in commands of Python, at instants all over their time: silent, and nothing is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airpath.files import write_whole
from experiments import SMALL, written
from synthetic import write_run

# What runs before it is the interpreter's own start.
READY = """\
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("ready", flush=True)
from airpath.app import run
sys.exit(run(sys.argv[1:]))
"""

MARK = "AIRPATH_TEST_INTERRUPT"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with more runs than one process would read."""
    folder = tmp_path_factory.mktemp("runs") / "set"
    for number in range(17):
        write_run(folder / str(number), size=2_560, seed=number)
    return folder


def marked(mark: str) -> list[int]:
    """Return the processes with a mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def interrupted(words: list[str], cwd: Path, after_s: float) -> tuple[int, str]:
    """Run a command, and send its group a SIGINT some time later, as a terminal does."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    process = subprocess.Popen(
        [sys.executable, "-c", READY, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        start_new_session=True,
        env=os.environ | {MARK: mark},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(after_s)
    # All of them at once, but for what has a session of its own.
    for number in marked(mark):
        try:
            if os.getsid(number) == process.pid:
                os.kill(number, signal.SIGINT)
        except ProcessLookupError:
            continue
    _, said = process.communicate(timeout=60)
    until = time.monotonic() + 20
    while left := marked(mark):
        assert time.monotonic() < until, f"processes were left: {left}"
        time.sleep(0.05)
    return process.returncode, said


COMMANDS = {
    "analyse": ["analyse", "RUNS", "--jobs", "2"],
    "plot": ["plot", "RUNS/0", "--out", "plots"],
    "report": ["report", "RUNS", "--pictures", "0", "--out", "page.html"],
    "check": ["check", "experiment.toml"],
    "run": ["run", "experiment.toml", "--out", "results"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_said_and_nothing_is_left(name: str, runs: Path, tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    generator = random.Random(name)
    for number in range(3):
        words = [word.replace("RUNS", str(runs)) for word in COMMANDS[name]]
        if number and name == "run":
            words.append("--resume")
        status, said = interrupted(words, tmp_path, generator.uniform(0, 2.5))
        assert "Traceback" not in said, said
        assert "KeyboardInterrupt" not in said, said
        # It may have been done before, or told itself how to go on.
        assert status in (-signal.SIGINT, 130, 0), (status, said)
        assert not list(tmp_path.rglob("*.new"))
        assert not [path for path in tmp_path.rglob("*.part") if name == "run"]


def test_a_signal_takes_temporary_files_away(tmp_path: Path) -> None:
    code = """
import os, signal
from pathlib import Path
from airpath import files, interrupt
interrupt.arm()
with interrupt.temporary_folder("airpath-test-") as folder, files.fresh(Path("page")) as handle:
    os.write(handle, b"half of it")
    assert Path("page.new").exists()
    print(folder, flush=True)
    os.kill(os.getpid(), signal.{})
"""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        write_whole(tmp_path / "page", "before")
        done = subprocess.run(
            [sys.executable, "-c", code.format(number.name)],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == -number
        assert done.stderr == ""
        assert not Path(done.stdout.strip()).exists()
        assert [path.name for path in tmp_path.iterdir()] == ["page"]
        assert (tmp_path / "page").read_text() == "before"
