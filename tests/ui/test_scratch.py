# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Hidden scenarios beside the files that they name: what a killed server leaves is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airpath.ui import scratch
from airpath.ui.scratch import Scratch, remove_leftovers
from ui.served import PATIENCE_S, Served

WRITE = """
import sys
from pathlib import Path
from airpath.ui.scratch import Scratch
held = Scratch.write("name = 'left'", Path(sys.argv[1]))
print(held.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take new files for left over, too."""
    monkeypatch.setattr(scratch, "LEAST_AGE_S", -3600.0)


def test_a_file_of_a_killed_process_is_removed_and_one_in_use_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITE, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdout is not None
        left = tmp_path / writer.stdout.readline().strip()
        own = Scratch.write("name = 'own'", tmp_path)
        assert remove_leftovers([tmp_path]) == []
        writer.send_signal(signal.SIGKILL)
    assert left.read_text() == "name = 'left'"
    with subprocess.Popen(
        ["tail", "-f", "/dev/null", str(left)], stdout=subprocess.DEVNULL
    ) as reader:
        try:
            # Its command line is another until the program has begun.
            line = Path(f"/proc/{reader.pid}/cmdline")
            while str(left) not in line.read_text():
                time.sleep(0.01)
            assert remove_leftovers([tmp_path]) == []
        finally:
            reader.kill()
    assert remove_leftovers([tmp_path]) == [left]
    assert [*tmp_path.iterdir()] == [own.path]
    own.remove()
    assert not [*tmp_path.iterdir()]


def test_new_files_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LEAST_AGE_S", 60.0)
    kept = [tmp_path / name for name in (".airpath-ui-x.toml", "airpath-ui-x.toml", ".other.toml")]
    for file in kept:
        file.write_text("")
    (tmp_path / "secret").write_text("")
    link = tmp_path / ".airpath-ui-link.toml"
    link.symlink_to(tmp_path / "secret")
    folder = tmp_path / ".airpath-ui-folder.toml"
    folder.mkdir()
    assert remove_leftovers([tmp_path, tmp_path / "nothing"]) == []
    monkeypatch.setattr(scratch, "LEAST_AGE_S", -60.0)
    assert remove_leftovers([tmp_path]) == kept[:1]
    assert link.is_symlink()
    assert folder.is_dir()


def test_the_next_server_removes_what_one_that_was_killed_left(tmp_path: Path) -> None:
    deep = tmp_path / "links"
    deep.mkdir()
    old = time.time() - 10
    for place in (tmp_path, deep):
        file = place / ".airpath-ui-left.toml"
        file.write_text("name = 'left'\n")
        os.utime(file, (old, old))
    with Served(tmp_path) as page:
        end = time.monotonic() + PATIENCE_S
        while [*tmp_path.rglob(".airpath-ui-*")]:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert page.ask("/api/files").json["scenarios"] == []
