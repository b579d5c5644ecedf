"""Worker processes for what is done to many runs, one run at a time in each."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, TypeVar

from airpath import interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Result = TypeVar("Result")
Work = TypeVar("Work")

LEAST_FOR_WORKERS = 16
"""With fewer tasks starting processes takes longer than they save."""

MOST_WORKERS = 8
"""Each takes some 200 MB."""

_ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def workers(tasks: int) -> int:
    """Return how many worker processes a number of tasks is worth; 0 for none."""
    if tasks < LEAST_FOR_WORKERS:
        return 0
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS)


def each(
    function: Callable[[Work], Result],
    tasks: Sequence[Work],
    progress: Callable[[int, int], None],
) -> Iterator[Result]:
    """Yield the result of each task in order, by worker processes where there are many.

    Args:
        function: of a module's top level.
        tasks: what it is called with, which can be pickled.
        progress: told how many are done, and how many there are.

    """
    number = workers(len(tasks))
    with contextlib.ExitStack() as stack:
        results: Iterable[Result] = map(function, tasks)
        if number > 1:
            stack.enter_context(_one_thread_each())
            stack.enter_context(interrupt.at_end(_kill_children))
            # It lets signals through again that are held back where it is started.
            resource_tracker.ensure_running()
            with interrupt.held():
                # Not forked: the threads of polars would not be there in the child.
                spawned = multiprocessing.get_context("spawn")
                pool = ProcessPoolExecutor(number, spawned, initializer=_end_with_parent)
                stack.callback(partial(pool.shutdown, cancel_futures=True))
                results = pool.map(function, tasks, chunksize=4)
        for done, result in enumerate(results, 1):
            yield result
            progress(done, len(tasks))


def _kill_children() -> None:
    for process in multiprocessing.active_children():
        process.kill()


def _end_with_parent() -> None:
    """Have a worker end when its parent was killed: it waits for work on a pipe that it holds."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Have processes that are started meanwhile compute with one thread."""
    before: dict[str, Any] = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
