"""How many replications run side by side, and what becomes of suspect ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath.experiment.jobs import Jobs
from airpath.experiment.replicate import Outcome, Task
from experiments import LIVE, runner_of


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


def test_automatic_jobs_step_down_once_for_runs_that_disturbed_one_another() -> None:
    jobs = Jobs(4, automatic=True)
    assert jobs.judged("trusted", 4) == ""
    assert "3 at a time" in jobs.judged("suspect", 4)
    assert jobs.judged("suspect", 4) == "", "it ran among the same four"
    assert "2 at a time" in jobs.judged("invalid", 3)
    assert jobs.judged("suspect", 1) == ""
    assert jobs.now == 2
    fixed = Jobs.of("4")
    fixed.judged("suspect", 4)
    assert fixed.now == 4
    with pytest.raises(ValueError, match="--jobs many"):
        Jobs.of("many")
