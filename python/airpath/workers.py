# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Worker processes for what is done to many runs, one run at a time in each.

Workers are programs of their own that are told a function and its tasks, one at a time, and answer
with results. They import nothing of the program that uses them (a script need not guard its main
part, a notebook has none), and share no locks with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, TypeVar

from airpath import interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Work = TypeVar("Work")
Result = TypeVar("Result")

LEAST_EACH = 8
"""Tasks of ``each`` that are worth a process."""

LEAST_SMALL = 40
"""Runs with small logs that are worth a process: one takes some 50 ms, a process 1.7 s to start."""

SMALL_BYTES = 1_000_000
"""Size of all files of a run up to which its logs are small."""

MOST_WORKERS = 8
"""Of ``each``: a worker takes some 200 MB."""

_LENGTH = struct.Struct("<Q")

_ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Several processes with several threads each would be in one another's way."""


class WorkerError(Exception):
    """A worker ended by itself."""

    def __init__(self, place: int, how: str) -> None:
        """Tell the place of the task that it was at, and how it ended."""
        super().__init__(f"the process that worked on it {how}")
        self.place = place


def processes_for(tasks: int, least_each: int, jobs: int | None = None) -> int:
    """Return how many processes share tasks; with 1 they need none beside this one.

    Args:
        tasks: how many there are.
        least_each: with fewer for each process, starting another takes longer than it saves.
        jobs: how many the user asked for.

    """
    if jobs is not None:
        return max(1, min(jobs, tasks))
    return max(1, min(len(os.sched_getaffinity(0)), tasks // least_each))


def least_runs(folders: Sequence[Path]) -> int:
    """Return how many of some runs are worth a process, by the size of their files."""
    sizes = sum(
        entry.stat().st_size
        for folder in folders
        for entry in os.scandir(folder)
        if entry.is_file()
    )
    return LEAST_SMALL if sizes <= SMALL_BYTES * len(folders) else LEAST_EACH


def as_done(
    function: Callable[[Work], Result], tasks: Sequence[Work], processes: int
) -> Iterator[tuple[int, Result]]:
    """Do tasks in processes; yield the place of each in the sequence, and its result, when done.

    Args:
        function: of a module's top level, or a partial one of such; what it raises is raised here.
        tasks: what it is called with. Tasks and results must pickle.
        processes: how many.

    Raises:
        WorkerError: a process ended by itself.

    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(len(tasks)):
        waiting.put(place)
    done: SimpleQueue[tuple[int, Any, Exception | None]] = SimpleQueue()
    crew: list[_Worker] = []
    threads: list[threading.Thread] = []

    def kill() -> None:
        for worker in crew:
            worker.process.kill()

    try:
        with interrupt.at_end(kill):
            for _ in range(processes):
                # Between the start of a process and its place in the crew nobody would end it.
                with interrupt.held():
                    crew.append(_Worker(function))
                task = (crew[-1], tasks, waiting, done)
                threads.append(threading.Thread(target=_keep_busy, args=task, daemon=True))
                threads[-1].start()
            for _ in tasks:
                place, result, error = done.get()
                if error is not None:
                    raise error
                yield place, result
    finally:
        for worker in crew:
            worker.end()
        for thread in threads:
            thread.join()


def each(
    function: Callable[[Work], Result],
    tasks: Sequence[Work],
    progress: Callable[[int, int], None],
    least_each: int = LEAST_EACH,
) -> Iterator[Result]:
    """Yield the result of each task in order, by worker processes where there are many.

    Args:
        function: as for ``as_done``.
        tasks: as for ``as_done``.
        progress: told how many are done, and how many there are.
        least_each: tasks that are worth a process.

    """
    processes = min(processes_for(len(tasks), least_each), MOST_WORKERS)
    if processes < 2:
        for done, task in enumerate(tasks, 1):
            result = function(task)
            progress(done, len(tasks))
            yield result
        return
    early: dict[int, Result] = {}
    following = 0
    for done, (place, result) in enumerate(as_done(function, tasks, processes), 1):
        progress(done, len(tasks))
        early[place] = result
        while following in early:
            yield early.pop(following)
            following += 1


def _keep_busy(
    worker: _Worker,
    tasks: Sequence[Any],
    waiting: SimpleQueue[int],
    done: SimpleQueue[tuple[int, Any, Exception | None]],
) -> None:
    while True:
        try:
            place = waiting.get_nowait()
        except Empty:
            return
        try:
            done.put((place, *worker.carry_out(tasks[place])))
        except (OSError, EOFError) as error:
            status = worker.process.wait()
            done.put((place, None, WorkerError(place, f"ended with status {status} ({error})")))
            return
        except Exception as error:  # a task that does not pickle: nobody else would hear of it
            done.put((place, None, error))
            return


class _Worker:
    """The parent's side of one process."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        package = str(Path(__file__).resolve().parents[1])
        paths = [package, os.environ.get("PYTHONPATH", "")]
        environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        # Nothing of the working directory is imported (-P).
        command = [sys.executable, "-P", "-c", f"from {__name__} import work; work()"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            # Ctrl-C is for the parent, which ends them.
            start_new_session=True,
        )
        self._function: Callable[[Any], Any] | None = function

    def carry_out(self, task: object) -> tuple[Any, Exception | None]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self._function is not None:
            _write(self.process.stdin, self._function)
            self._function = None
        _write(self.process.stdin, task)
        result, error = _read(self.process.stdout)
        return result, error

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # What it was not told any more does not matter.
                with contextlib.suppress(OSError):
                    pipe.close()


def _write(pipe: IO[bytes], what: object) -> None:
    content = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    """Return what was written.

    Raises:
        EOFError: there is no more, or not the whole of it.

    """
    head = pipe.read(_LENGTH.size)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    content = pipe.read(length)
    if not length or len(content) < length:
        message = f"{len(head) + len(content)} bytes of its answer came"
        raise EOFError(message)
    return pickle.loads(content)


def work() -> None:
    """Be a worker: read a function, then its tasks, from standard input until that ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a function prints is no answer
    with contextlib.suppress(EOFError):
        function = _read(sys.stdin.buffer)
        while True:
            task = _read(sys.stdin.buffer)
            try:
                answer: tuple[Any, Exception | None] = (function(task), None)
            except Exception as error:
                answer = (None, error)
            try:
                _write(answers, answer)
            except BrokenPipeError:  # nobody waits for it any more
                os._exit(1)
