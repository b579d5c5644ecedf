# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The pool of worker processes."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from operator import truediv
from pathlib import Path

import pytest

from airpath import workers

NUMBERS = list(range(-4 * workers.LEAST_EACH, 0))
PROCESSORS = {0, 1, 2}


def test_results_come_in_order_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: PROCESSORS)
    told: list[tuple[int, int]] = []
    before = dict(os.environ)
    found = list(workers.each(abs, NUMBERS, lambda done, total: told.append((done, total))))
    assert found == [abs(number) for number in NUMBERS]
    assert told == [(done, len(NUMBERS)) for done in range(1, len(NUMBERS) + 1)]
    assert dict(os.environ) == before


def test_few_tasks_are_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: PROCESSORS)
    here = [f"/proc/{os.getpid()}"]
    few = ["/proc/self"] * (2 * workers.LEAST_EACH - 1)
    assert list(workers.each(os.path.realpath, few, lambda *_: None)) == here * len(few)
    many = ["/proc/self"] * (2 * workers.LEAST_EACH)
    assert here[0] not in workers.each(os.path.realpath, many, lambda *_: None)


def test_every_task_is_done_once_and_by_several_processes(tmp_path: Path) -> None:
    # The first task of a worker waits until the other worker has one: a worker that starts late on
    # a loaded machine would find nothing left to do.
    script = f"""
        touch {tmp_path}/$PPID
        for wait in $(seq 600); do
            [ $(ls {tmp_path} | wc -l) -ge 2 ] && break
            sleep 0.1
        done
        echo $PPID
    """
    run = partial(subprocess.check_output, shell=True, text=True)
    found = list(workers.as_done(run, [script] * 50, 2))
    assert sorted(place for place, _ in found) == list(range(50))
    processes = {process.strip() for _, process in found}
    assert len(processes) == 2
    for process in processes:
        assert not Path("/proc", process).exists(), "a worker outlives its tasks"


def test_workers_compute_with_one_thread_each() -> None:
    assert list(workers.as_done(os.getenv, ["POLARS_MAX_THREADS"], 1)) == [(0, "1")]


def test_what_a_function_prints_is_no_answer() -> None:
    assert list(workers.as_done(print, ["loud"] * 3, 1)) == [(place, None) for place in range(3)]


def test_what_a_function_raises_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        list(workers.as_done(partial(truediv, 1), [1, 0, 2], 2))


def test_a_task_that_cannot_be_sent_is_an_error() -> None:
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        list(workers.as_done(id, [lambda: None], 2))


def test_a_worker_that_ends_is_told_with_its_task() -> None:
    with pytest.raises(workers.WorkerError, match="ended with status 7") as caught:
        list(workers.as_done(os._exit, [7], 2))
    assert caught.value.place == 0


def test_a_user_may_ask_for_more_processes_than_there_are_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: PROCESSORS)
    assert workers.processes_for(1000, 40) == 3
    assert workers.processes_for(119, 40) == 2
    assert workers.processes_for(39, 40) == 1
    assert workers.processes_for(1000, 40, jobs=16) == 16
    assert workers.processes_for(3, 40, jobs=16) == 3
