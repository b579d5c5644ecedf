# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""An experiment in virtual time: broken off and gone on with, and nearly for nothing while idle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from airpath.engine import find_engine
from airpath.run import load_run
from live.harness import await_true

if TYPE_CHECKING:
    from pathlib import Path

    from warp.conftest import Warp

START = "import sys; from airpath.cli import main; sys.exit(main())"

SWEEP = """\
name = "sweep"
clock = "warp"
[networks.link]
link = { rate = "2 Mbit/s", delay = "50 ms", loss = "0%,2%", queue = "8 packets" }
[workloads.download]
[[workloads.download.programs]]
template = "send"
name = "download"
bytes = "50 kB"
sender = "server"
[[sets]]
name = "queues"
network = "link"
workload = "download"
repetitions = 4
sweep.grid."network.radio.link.queue.limit" = ["4 packets", "8 packets", "16 packets"]
"""

PAUSE = """\
name = "pause"
clock = "warp"
[networks.link]
link = { rate = "2 Mbit/s", delay = "50 ms" }
[workloads.pause]
[[workloads.pause.programs]]
name = "pause"
end = "client"
command = ["sleep", "36000"]
time_limit = "20 h"
[[workloads.pause.programs]]
name = "other"
end = "server"
command = ["true"]
[[sets]]
name = "pause"
network = "link"
workload = "pause"
repetitions = 1
"""


def start(warp: Warp, *arguments: object) -> subprocess.Popen[str]:
    environment = {
        **warp.airpath.environment(),
        **warp.environment,
        "AIRPATH_ENGINE": find_engine(),
    }
    return subprocess.Popen(
        [sys.executable, "-c", START, "run", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def done(root: Path) -> list[dict[str, Any]]:
    """Return what the journal says is complete; a line that was cut off is none."""
    path = root / "journal"
    text = path.read_text() if path.exists() else ""
    entries = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [entry for entry in entries if entry["kind"] == "done"]


def name(entry: dict[str, Any]) -> str:
    return f"{entry['set']}/{entry['cell']}/{entry['replication']:04}"


def test_a_killed_runner_leaves_no_guest_and_is_gone_on_with(warp: Warp) -> None:
    file, root = warp.airpath.file("sweep.toml", SWEEP), warp.airpath.path("out")
    first = start(warp, file, "--out", root, "--jobs", "2")
    until = time.monotonic() + 150
    # In the middle of a guest's run, after some have been completed.
    while len(done(root)) < 3 or not warp.kernels():
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < until, "three runs took longer than 150 s"
        time.sleep(0.01)
    first.kill()
    first.communicate(timeout=60)
    assert first.returncode == -signal.SIGKILL
    await_true(lambda: not warp.kernels(), lambda: f"guests left: {warp.kernels()}", 20)
    before = done(root)
    assert 3 <= len(before) < 12

    again = start(warp, file, "--out", root, "--resume", "--jobs", "2")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, (out, err)
    after = done(root)
    assert after[: len(before)] == before, "what was complete must stay as it was"
    names = [name(entry) for entry in after]
    assert len(names) == len(set(names)) == 12
    folders = {str(path.relative_to(root / "runs")) for path in (root / "runs").glob("*/*/*")}
    assert folders == set(names)
    for entry in after:
        assert (entry["status"], entry["verdict"]) == ("succeeded", "trusted")
        assert load_run(root / "runs" / name(entry)).manifest["status"] == "finished"


def test_hours_of_waiting_for_the_other_end_cost_next_to_nothing(warp: Warp) -> None:
    file, root = warp.airpath.file("pause.toml", PAUSE), warp.airpath.path("out")
    run = start(warp, file, "--out", root)
    out, err = run.communicate(timeout=150)
    assert run.returncode == 0, (out, err)
    (entry,) = done(root)
    assert entry["metrics"]["elapsed"] == pytest.approx(36_000, abs=0.1)
    # To look for the other end's word every 20 ms would take minutes.
    assert entry["wall_s"] < 40
