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

NUMBERS = list(range(-32, 0))
PROCESSORS = {0, 1, 2}


@pytest.mark.parametrize("processes", [0, 2])
def test_results_come_in_order_and_progress_is_told(processes: int) -> None:
    told: list[tuple[int, int]] = []
    before = dict(os.environ)
    with workers.Crew(processes) as crew:
        found = list(crew.each(abs, NUMBERS, lambda done, total: told.append((done, total))))
    assert found == [abs(number) for number in NUMBERS]
    assert told == [(done, len(NUMBERS)) for done in range(1, len(NUMBERS) + 1)]
    assert dict(os.environ) == before


def test_a_crew_of_no_processes_does_what_is_asked_for() -> None:
    done: list[int] = []
    with workers.Crew(0) as crew:
        first, second = (crew.begin(done.append, number) for number in (1, 2))
        assert done == []
        crew.result(second)
        assert done == [2]
        crew.result(first)
        crew.result(first)
    assert done == [2, 1]


def test_processes_work_while_nobody_waits() -> None:
    here = f"/proc/{os.getpid()}"
    with workers.Crew(1) as crew:
        promise = crew.begin(os.path.realpath, "/proc/self")
        assert promise.done.wait(60)
        process = Path(crew.result(promise))
        assert str(process) != here
        assert process.exists()
    assert not process.exists(), "a worker outlives its crew"


def test_this_process_helps_where_it_waits() -> None:
    with workers.Crew(1) as crew:
        long = crew.begin(subprocess.check_output, ["sh", "-c", "sleep 2; echo long"])
        short = [crew.begin(os.path.realpath, "/proc/self") for _ in range(3)]
        # The process is at the long one, or this one takes it and the process the short ones.
        assert crew.result(long) == b"long\n"
        assert all(crew.result(one).startswith("/proc/") for one in short)


def test_a_crew_goes_on_without_a_process_that_ended() -> None:
    with workers.Crew(1) as crew:
        last = crew.begin(os._exit, 7)
        assert last.done.wait(60)
        with pytest.raises(workers.WorkerError, match="ended with status 7"):
            crew.result(last)
        assert crew.result(crew.begin(abs, -1)) == 1


def test_what_nobody_asked_for_is_not_done() -> None:
    done: list[int] = []
    with workers.Crew(0) as crew:
        crew.begin(done.append, 1)
    assert done == []


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
