"""Measuring many runs in several processes.

Workers are programs of their own that are told folders, one at a time, and answer with tables: they
import nothing of the program that uses them (a script need not guard its main part, a notebook has
none), share no locks with it, and have one run at a time in memory.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from typing import IO, TYPE_CHECKING

import polars as pl

from airpath import interrupt
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST_RUNS = 40
"""With fewer runs than this for each process, starting another takes longer than it saves."""

_LENGTH = struct.Struct("<II")


@dataclass(frozen=True)
class Measurement:
    """What a run has come to."""

    values: pl.DataFrame
    """As ``airpath.analysis.measure`` returns them; without rows if the run could not be read."""
    seed: int | None
    verdict: str
    """The run's, or "damaged" (see ``Run.damage``)."""
    notes: list[str]
    damage: list[str]
    failure: str
    """Why the run could not be read; else nothing."""


def usable_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def processes_for(runs: int, jobs: int | None) -> int:
    """Return how many processes measure so many runs, if ``jobs`` does not say."""
    if jobs is not None:
        return max(1, min(jobs, runs))
    return max(1, min(usable_processors(), runs // LEAST_RUNS))


def measure_apart(
    folders: Sequence[Path], metrics: Sequence[str], processes: int
) -> Iterator[tuple[int, Measurement]]:
    """Measure runs in processes; yield the place of each in the sequence, as they are done.

    Raises:
        RunError: a process ended by itself; the message names the run and how.

    """
    waiting: Queue[int] = Queue()
    for place in range(len(folders)):
        waiting.put(place)
    done: Queue[tuple[int, Measurement | Exception]] = Queue()
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
                    crew.append(_Worker(metrics))
                task = (crew[-1], folders, waiting, done)
                threads.append(threading.Thread(target=_keep_busy, args=task, daemon=True))
                threads[-1].start()
            for _ in folders:
                place, result = done.get()
                if isinstance(result, Exception):
                    raise result
                yield place, result
    finally:
        for worker in crew:
            worker.end()
        for thread in threads:
            thread.join()


def _keep_busy(
    worker: _Worker,
    folders: Sequence[Path],
    waiting: Queue[int],
    done: Queue[tuple[int, Measurement | Exception]],
) -> None:
    while not waiting.empty():
        place = waiting.get()
        try:
            done.put((place, worker.measure(folders[place])))
        except (OSError, struct.error, ValueError) as error:
            status = worker.process.wait()
            message = (
                f"{folders[place]}: the process that measured it ended with status {status} "
                f"({error}); --jobs 1 measures without processes"
            )
            done.put((place, RunError(message)))
            return


class _Worker:
    """The parent's side of one process."""

    def __init__(self, metrics: Sequence[str]) -> None:
        package = str(Path(__file__).resolve().parents[2])
        paths = [package, os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            # Several processes with several threads each would be in one another's way.
            "POLARS_MAX_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import work; work()", *metrics],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            # Ctrl-C is for the parent, which ends them.
            start_new_session=True,
        )

    def measure(self, folder: Path) -> Measurement:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(str(folder.resolve())).encode() + b"\n")
        self.process.stdin.flush()
        return _read(self.process.stdout)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # What it was not told any more does not matter.
                with contextlib.suppress(OSError):
                    pipe.close()


def _write(pipe: IO[bytes], found: Measurement) -> None:
    """Write the values as Arrow, all else as JSON, and before both their lengths."""
    table = io.BytesIO()
    found.values.write_ipc_stream(table)
    about = {name: value for name, value in asdict(found).items() if name != "values"}
    text = json.dumps(about).encode()
    pipe.write(_LENGTH.pack(len(text), table.tell()) + text + table.getvalue())
    pipe.flush()


def _read(pipe: IO[bytes]) -> Measurement:
    text_bytes, table_bytes = _LENGTH.unpack(pipe.read(_LENGTH.size))
    about = json.loads(pipe.read(text_bytes))
    table = pl.read_ipc_stream(io.BytesIO(pipe.read(table_bytes)))
    return Measurement(values=table, **about)


def work() -> None:
    """Be a worker: measure the runs that standard input names, until it ends.

    Arguments are the names of metrics.
    """
    from airpath.analysis.metric import choose
    from airpath.analysis.table import measure_folder

    chosen = choose(sys.argv[1:])
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        for line in sys.stdin.buffer:
            _write(sys.stdout.buffer, measure_folder(Path(json.loads(line)), chosen))
        return
    os._exit(1)
