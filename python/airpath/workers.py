# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Worker processes for what is done to many runs, and for many pictures.

Workers are programs of their own that are told a function and what to call it with, one task at a
time, and answer with results. They import nothing of the program that uses them (a script need not
guard its main part, a notebook has none), and share no locks with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from airpath import interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Work = TypeVar("Work")
Result = TypeVar("Result")

LEAST_EACH = 8
"""Runs with large logs that are worth a process."""

LEAST_SMALL = 100
"""Runs with small logs that are worth a process: one takes 10 ms, and a process 0.7 s to start."""

SMALL_BYTES = 1_000_000
"""Size of all files of a run up to which its logs are small."""

MOST_WORKERS = 8
"""Of a crew with this process: one takes some 200 MB."""

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


def other_processes() -> int:
    """Return how many processes of a crew this machine has processors for, beside this one."""
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS) - 1


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
    done: SimpleQueue[Promise[Any]] = SimpleQueue()
    with Crew(processes) as crew:
        for place, task in enumerate(tasks):
            crew.begin(function, task, place, done.put)
        for _ in tasks:
            promise = done.get()
            yield promise.place, promise.value()


class Promise(Generic[Result]):
    """The result of a task that was given to a crew."""

    def __init__(
        self,
        function: Callable[[Any], Result],
        task: object,
        place: int,
        told: Callable[[Promise[Any]], None] | None,
    ) -> None:
        """Take the task; ``told`` is called with this once it is done."""
        self.function = function
        self.task: object = task
        self.place = place
        """Place of the task among others."""
        self.done = threading.Event()
        self._told = told
        self._value: Any = None
        self._error: Exception | None = None

    def keep(self, value: Any, error: Exception | None) -> None:
        """Keep the result, or what was raised."""
        self._value, self._error = value, error
        self.task = None
        self.done.set()
        if self._told is not None:
            self._told(self)

    def value(self) -> Result:
        """Return the result of a task that is done.

        Raises:
            Exception: what the task raised.

        """
        if self._error is not None:
            raise self._error
        result: Result = self._value
        return result


class Crew:
    """Processes that do tasks beside this one, each once it is asked for or a process is free.

    Processes start with the first task. What is asked for (``result``) before a process has taken
    it is done by this one, so that a crew of no processes does everything when it is asked for.
    """

    def __init__(self, processes: int) -> None:
        """Take the number of processes beside this one."""
        self._processes = processes
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []
        self._waiting: deque[Promise[Any]] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._at_end = contextlib.ExitStack()

    def __enter__(self) -> Crew:
        """Have the processes end with the block, or with this process if a signal ends it."""
        self._at_end.enter_context(interrupt.at_end(self._kill))
        return self

    def __exit__(self, *_error: object) -> None:
        """End the processes; what nobody asked for is not done any more."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._changed.notify_all()
        for worker in self._workers:
            worker.end()
        for thread in self._threads:
            thread.join()
        self._at_end.close()

    def _kill(self) -> None:
        for worker in self._workers:
            worker.process.kill()

    def begin(
        self,
        function: Callable[[Work], Result],
        task: Work,
        place: int = 0,
        told: Callable[[Promise[Any]], None] | None = None,
    ) -> Promise[Result]:
        """Have a task done; return the promise of its result.

        Args:
            function: of a module's top level, or a partial one of such.
            task: what it is called with. Function, task and result must pickle, and nobody may
                change the task any more.
            place: place of the task among others, for who wants to know.
            told: called with the promise once a process has kept it, in a thread.

        """
        promise = Promise(function, task, place, told)
        with self._changed:
            self._waiting.append(promise)
            self._changed.notify()
        if len(self._workers) < self._processes:
            # Between the start of a process and its place in the crew nobody would end it.
            with interrupt.held():
                self._workers.append(_Worker())
            thread = threading.Thread(target=self._work, args=(self._workers[-1],), daemon=True)
            self._threads.append(thread)
            thread.start()
        return promise

    def result(self, promise: Promise[Result]) -> Result:
        """Return the result of a task, and do waiting ones until a process has done it.

        Raises:
            WorkerError: the process that worked on it ended by itself.
            Exception: what the task raised.

        """
        while not promise.done.is_set():
            # The one that is asked for first, and else one that others will ask for.
            other = self._taken(promise) or self._taken(None)
            if other is None:
                promise.done.wait()
            else:
                other.keep(*_carried_out(other.function, other.task))
        return promise.value()

    def each(
        self,
        function: Callable[[Work], Result],
        tasks: Sequence[Work],
        progress: Callable[[int, int], None],
    ) -> Iterator[Result]:
        """Yield the result of each task in order.

        Args:
            function: as for ``begin``.
            tasks: as for ``begin``.
            progress: told how many are done, and how many there are.

        """
        promises = [self.begin(function, task, place) for place, task in enumerate(tasks)]
        for done, promise in enumerate(promises, 1):
            result = self.result(promise)
            progress(done, len(tasks))
            yield result

    def _taken(self, promise: Promise[Any] | None) -> Promise[Any] | None:
        """Take a task that waits, or the first of all; none if it does not."""
        with self._changed:
            if promise is None:
                return self._waiting.popleft() if self._waiting else None
            if promise in self._waiting:
                self._waiting.remove(promise)
                return promise
            return None

    def _work(self, worker: _Worker) -> None:
        """Have a process do tasks until there will be none; of a thread."""
        while True:
            with self._changed:
                while not self._waiting:
                    if self._ended:
                        return
                    self._changed.wait()
                promise = self._waiting.popleft()
            try:
                promise.keep(*worker.carry_out((promise.function, promise.task)))
            except (OSError, EOFError) as error:
                status = worker.process.wait()
                how = f"ended with status {status} ({error})"
                promise.keep(None, WorkerError(promise.place, how))
                return
            except Exception as error:  # a task that does not pickle: nobody else would hear of it
                promise.keep(None, error)


def _carried_out(function: Callable[[Any], Any], task: object) -> tuple[Any, Exception | None]:
    try:
        return function(task), None
    except Exception as error:
        return None, error


class _Worker:
    """The parent's side of one process."""

    def __init__(self) -> None:
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

    def carry_out(self, task: tuple[Callable[[Any], Any], object]) -> tuple[Any, Exception | None]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
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
    """Be a worker: read functions and their tasks from standard input until that ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a function prints is no answer
    with contextlib.suppress(EOFError):
        while True:
            function, task = _read(sys.stdin.buffer)
            answer = _carried_out(function, task)
            try:
                _write(answers, answer)
            except BrokenPipeError:  # nobody waits for it any more
                os._exit(1)
