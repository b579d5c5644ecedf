# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments for tests: files, the command, runners with made-up replications."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.experiment.folder import Results
from airpath.experiment.jobs import Jobs
from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.plan import make_plan
from airpath.experiment.replicate import Outcome, Task
from airpath.experiment.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent

START = "import sys; from airpath.cli import main; sys.exit(main())"

SMALL = """\
name = "small"
seed = 5
clock = "virtual"
[networks.gprs]
profile = "gprs-cs2-3+1"
link = { loss = "0%,2%" }
[workloads.bulk]
parameters = { bytes = 20000 }
virtual = ["tcp bytes={{bytes}} from=server cc=reno"]
[[sets]]
name = "queues"
network = "gprs"
workload = "bulk"
repetitions = 3
sweep.grid."network.radio.link.queue.limit" = ["4 packets", "8 packets"]
[[sets]]
name = "sizes"
network = "gprs"
workload = "bulk"
repetitions = 2
sweep.zip = { "workload.bytes" = [5000, 10000], "mtu" = [1500, 1400] }
"""


def airpath(*words: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def written(folder: Path, text: str) -> Path:
    file = folder / "experiment.toml"
    file.write_text(text)
    return file


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        make_plan(load(written(folder, text)), [])
    return [f"{one.line}: {one.what}" for one in caught.value.problems]


def journal(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "journal").read_text().splitlines()]


def run_folders(root: Path) -> set[str]:
    return {str(path.relative_to(root / "runs")) for path in root.glob("runs/*/*/*")}


class AtOnce(Executor):
    """Carries everything out when it is handed in: another engine in place of threads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


LIVE = """\
name = "live"
reruns = 1
[networks.link]
link = { rate = "5 Mbit/s", delay = "5 ms" }
[workloads.work]
programs = [{ name = "one", end = "client", command = "true" }]
[[sets]]
name = "set"
network = "link"
workload = "work"
repetitions = 3
"""


def runner_of(
    tmp_path: Path, text: str, carry_out: Callable[[Task], Outcome], jobs: Jobs, told: list[str]
) -> tuple[Runner, Results]:
    results = Results(tmp_path / "out")
    results.root.mkdir()
    results.lock()
    plan = make_plan(load(written(tmp_path, text)), [])
    return Runner(plan, results, jobs, told.append, AtOnce, carry_out), results
