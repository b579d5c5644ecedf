# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Replications on the workers of a dask cluster: nothing lost, nothing twice, the same results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.experiment import replicate as replication
from airpath.experiment.executors import errands
from airpath.experiment.executors.inputs import inputs_of
from airpath.experiment.load import load
from airpath.experiment.plan import make_plan
from airpath.experiment.replicate import make_task, replicate
from experiments import START, airpath, written

if TYPE_CHECKING:
    from collections.abc import Iterator

REPLICATIONS = 24
SWEEP = f"""
name = "sweep"
description = "A download with losses"
seed = 1
clock = "virtual"
[networks.link]
link = {{ rate = "2 Mbit/s", delay = "20 ms", loss = "1%,1%" }}
[workloads.download]
virtual = ["tcp bytes=20000"]
[[sets]]
name = "downloads"
network = "link"
workload = "download"
repetitions = {REPLICATIONS}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """Return a cluster of two workers on loopback."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
        local_directory=str(tmp_path / "dask"),
    ) as made:
        yield made


def journal(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "journal").read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == "done"]


def figures(folder: Path) -> dict[int, tuple[int, dict[str, float]]]:
    return {one["replication"]: (one["seed"], one["metrics"]) for one in journal(folder)}


def test_a_killed_worker_loses_nothing_and_results_are_those_of_the_local_executor(
    cluster: Any, tmp_path: Path
) -> None:
    file = written(tmp_path, SWEEP)
    there, here = tmp_path / "there", tmp_path / "here"
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", START, "run", str(file), "--out", str(there)),
            *("--executor", f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (there / "journal").exists() and len(journal(there)) >= 3:
            break
        time.sleep(0.02)
    victim = next(iter(cluster.workers.values())).pid
    os.kill(victim, signal.SIGKILL)
    out, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert f"{REPLICATIONS} succeeded" in out
    numbers = [one["replication"] for one in journal(there)]
    assert sorted(numbers) == list(range(1, REPLICATIONS + 1)), "each once"
    folders = sorted(path.name for path in (there / "runs" / "downloads" / "all").iterdir())
    assert folders == [f"{number:04}" for number in range(1, REPLICATIONS + 1)], "and nothing else"
    local = airpath("run", file, "--out", here)
    assert local.returncode == 0, local.stderr
    assert figures(there) == figures(here)


def test_a_worker_that_sees_nothing_of_this_machine_sends_the_run_back(tmp_path: Path) -> None:
    """The folder of the experiment, with a scenario and a trace, is gone when the worker runs."""
    here, away, home = (tmp_path / name for name in ("experiment", "away", "home"))
    (here / "files").mkdir(parents=True)
    (here / "files" / "link.toml").write_text(
        'name = "link"\n[[hops]]\nname = "radio"\nlink = { rate = { type = "trace", '
        'file = "rates.csv" } }\n'
    )
    (here / "files" / "rates.csv").write_text("time_s,rate_bps\n0,1000000\n1,2000000\n")
    text = SWEEP.replace('link = { rate = "2 Mbit/s", delay = "20 ms", loss = "1%,1%" }', "")
    file = written(
        here, text.replace("[networks.link]", '[networks.link]\nscenario="files/link.toml"')
    )
    made = make_plan(load(file), [])
    task = make_task(made.loaded.experiment, made.cells[0], 3, 1, home, here)
    usual = replicate(task)
    assert usual.status == "succeeded"
    packed = inputs_of(made, home)
    here.rename(away)
    shutil.rmtree(home)
    errand = errands.Errand(task, "token", str(tmp_path / "unseen"), errands.facts(), "inputs-3")
    answer = errands.carry_out(errand, packed)
    assert not home.exists(), "the worker writes nothing there"
    assert errands.land(answer, Path(task.folder)).metrics == usual.metrics
    record = json.loads((Path(task.folder) / "replication.json").read_text())
    assert record["here"] == str(here), "paths are those of this machine"
    errands.stop_here("token")
    assert errands.carry_out(errand, packed).outcome.status == "stopped"
    other = replace(errand, run="other", facts="of another version")
    with pytest.raises(OSError, match="another version of Airpath"):
        errands.carry_out(other, packed)


def test_a_worker_looks_for_the_line_of_readiness_with_its_own_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = """
[[workloads.download.programs]]
name = "web"
end = "server"
command = "echo ready; sleep 50"
ready = { output = "^ready$" }
[[workloads.download.programs]]
name = "client"
end = "client"
command = "true"
"""
    text = SWEEP.replace('"virtual"', '"live"').replace('virtual = ["tcp bytes=20000"]', ready)
    made = make_plan(load(written(tmp_path, text)), [])
    with monkeypatch.context() as there:
        there.setattr(sys, "executable", "/elsewhere/bin/python3")
        there.setattr(replication, "MATCHER", "/elsewhere/matcher.py")
        task = make_task(made.loaded.experiment, made.cells[0], 1, 1, tmp_path / "out", tmp_path)
    assert "/elsewhere" not in repr(task)
    started = []

    def run(_task: object, command: list[str], work: Path, _stop: object) -> tuple[int, bool]:
        started.append(json.loads((work / "server.specification.json").read_text()))
        errands.stop_here("stopped at once")
        return 1, False

    monkeypatch.setattr(replication, "_run", run)
    errand = errands.Errand(
        task, "stopped at once", str(tmp_path / "unseen"), errands.facts(), "inputs-4"
    )
    answer = errands.carry_out(errand, errands.pack_files([]))
    assert answer.outcome.status == "stopped"
    (program,) = started[0]["programs"]
    ready_by = program["ready"]["matcher"]
    assert ready_by == [sys.executable, "-I", "-S", replication.MATCHER, "^ready$"]


def test_a_run_that_took_over_the_folder_discards_what_the_one_before_asked_for(
    tmp_path: Path,
) -> None:
    made = make_plan(load(written(tmp_path, SWEEP)), [])
    task = make_task(made.loaded.experiment, made.cells[0], 1, 1, tmp_path / "out", tmp_path)
    (tmp_path / "out").mkdir()
    token = tmp_path / "out" / errands.TOKEN
    token.write_text("mine")
    errand = errands.Errand(task, "mine", str(tmp_path / "out"), errands.facts(), "inputs-1")
    stop = errands.Stop(errand, shared=True)
    assert not stop.is_set()
    token.write_text("of the next one")
    stop.looked = 0.0
    assert stop.is_set()


def test_the_temporary_folder_goes_with_a_command_that_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    code = """
import time
from airpath.experiment.executors.dask import _swept_folder
with _swept_folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(300)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert (folder / "file").exists()
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()


def test_a_cluster_of_this_machine_and_resuming(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    file = written(tmp_path, SWEEP.replace(f"= {REPLICATIONS}", "= 4"))
    done = airpath("run", file, "--out", tmp_path / "out", "--executor", "dask")
    assert done.returncode == 0, done.stderr
    more = written(tmp_path, SWEEP.replace(f"= {REPLICATIONS}", "= 6"))
    resumed = airpath("run", more, "--out", tmp_path / "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "6 succeeded" in resumed.stdout
    assert not list((tmp_path / "out").glob(".workers*"))


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        ("dusk", "there is no such executor; did you mean `dask`?"),
        ("local://x", "there is no such executor"),
        ("slurm", "there is no such executor; there are: local, dask"),
        ("dask://127.0.0.1:9", "no scheduler answers there"),
        ("dask://127.0.0.1", "no scheduler answers there"),
    ],
)
def test_executors_that_cannot_be_used_are_told(executor: str, said: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    file = written(tmp_path, SWEEP)
    done = airpath("run", file, "--out", tmp_path / "out", "--executor", executor)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_live_runs_stay_on_the_machine_that_watches_them(tmp_path: Path) -> None:
    live = SWEEP.replace('"virtual"\n', '"live"\n').replace(
        'virtual = ["tcp bytes=20000"]',
        'programs = [{ end = "client", command = "true" }]',
    )
    file = written(tmp_path, live)
    done = airpath("run", file, "--out", tmp_path / "out", "--executor", "dask")
    assert done.returncode == 2
    assert "the sets downloads are live" in done.stderr
    assert not (tmp_path / "out").exists()
