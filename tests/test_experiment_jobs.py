# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Number of replications that run side by side, and the repetition of suspect ones."""

from __future__ import annotations

import errno
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.experiment.jobs import Jobs, Memory
from airpath.experiment.replicate import Outcome, Task
from experiments import LIVE, runner_of

if TYPE_CHECKING:
    from collections.abc import Callable


def test_suspect_runs_are_run_again_so_often_and_no_more(tmp_path: Path) -> None:
    tried: list[tuple[int, int]] = []

    def carry_out(task: Task) -> Outcome:
        tried.append((task.replication, task.attempt))
        bad = task.replication == 2 or (task.replication == 3 and task.attempt == 1)
        return Outcome("succeeded", "suspect" if bad else "trusted", "", {"elapsed": 1.0})

    told: list[str] = []
    runner, results = runner_of(tmp_path, LIVE, carry_out, Jobs.of("1"), told)
    report = runner.run()
    results.close()
    assert sorted(tried) == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert (report.succeeded, report.not_trusted) == (3, 1)
    assert any("set/all/0003: suspect; run again (1 of 1 times)" in line for line in told)


def drive(jobs: Jobs, verdict: Callable[[int], str], runs: int = 200, cell: str = "a") -> list[str]:
    """Run generations of made-up live runs, all with full company; return what was told."""
    told = []
    for _ in range(runs):
        number = jobs.now
        for _ in range(number):
            note = jobs.judged(verdict(number), number, cell)
            if note:
                told.append(note)
    return told


@pytest.mark.parametrize("holds", [1, 2, 3, 5, 11, 40])
def test_automatic_jobs_find_how_many_stay_trusted(holds: int) -> None:
    jobs = Jobs(4, automatic=True)
    told = drive(jobs, lambda number: "trusted" if number <= holds else "suspect")
    assert jobs.now == holds
    assert jobs.all_trusted_at == holds
    assert jobs.first_suspect_at == holds + 1
    assert len(told) <= 16, "what it found it keeps"
    assert f"all trusted at {holds}, the first suspect at {holds + 1}" in jobs.words()


def test_automatic_jobs_step_up_after_a_whole_generation() -> None:
    jobs = Jobs(4, automatic=True)
    assert [jobs.judged("trusted", 4, "a") for _ in range(3)] == [""] * 3
    assert jobs.judged("trusted", 4, "a") == ("6 at a time from now on, as all were trusted at 4")
    assert jobs.judged("trusted", 4, "a") == "", "it ran among the four of before"
    assert jobs.judged("suspect", 6, "a").startswith("4 at a time from now on, as a run became")
    assert jobs.judged("suspect", 6, "a") == "", "it ran among the same six"
    fixed = Jobs.of("4")
    assert drive(fixed, lambda _: "suspect", 3) == []
    assert fixed.now == 4
    with pytest.raises(ValueError, match="--jobs many"):
        Jobs.of("many")


def test_a_run_that_is_suspect_even_alone_does_not_keep_the_others_waiting() -> None:
    jobs = Jobs(8, automatic=True)
    told = drive(jobs, lambda _: "suspect")
    assert jobs.now == 8
    assert told[-1] == "8 at a time from now on, as a is suspect even when it runs alone"
    assert (jobs.all_trusted_at, jobs.first_suspect_at) == (None, None)
    drive(jobs, lambda number: "trusted" if number <= 9 else "suspect", cell="b")
    assert jobs.now == 9


def test_the_machine_bounds_how_many_run(tmp_path: Path) -> None:
    jobs = Jobs(4, automatic=True, bound=7)
    drive(jobs, lambda _: "trusted")
    assert jobs.now == 7
    assert "5 at a time at most" in jobs.short(5, "Too many open files")
    drive(jobs, lambda _: "trusted")
    assert jobs.now == 5
    meminfo = tmp_path / "meminfo"

    def available(mebibytes: int) -> None:
        meminfo.write_text(f"MemTotal: {1000 << 10} kB\nMemAvailable: {mebibytes << 10} kB\n")

    available(900)
    memory = Memory(meminfo)
    assert memory.holds_one_more(10)
    available(500)  # 200 MiB each for two
    assert memory.holds_one_more(2)
    available(250)
    assert not memory.holds_one_more(3)
    assert memory.holds_one_more(0), "one always may"


def test_a_machine_that_is_short_of_something_gets_less_to_do(tmp_path: Path) -> None:
    busy = threading.Semaphore(2)

    def carry_out(_task: Task) -> Outcome:
        if not busy.acquire(blocking=False):
            raise OSError(errno.EMFILE, "Too many open files")
        try:
            time.sleep(0.05)
            return Outcome("succeeded", "trusted", "", {})
        finally:
            busy.release()

    told: list[str] = []
    text = LIVE.replace("repetitions = 3", "repetitions = 12")
    jobs = Jobs(6, automatic=True)
    runner, results = runner_of(tmp_path, text, carry_out, jobs, told)
    runner.executor = lambda: ThreadPoolExecutor(8)
    report = runner.run()
    results.close()
    assert (report.succeeded, report.stopped) == (12, "")
    assert report.jobs["automatic"]
    assert any("at a time at most from now on: Too many open files" in line for line in told)
