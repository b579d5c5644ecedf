# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Other programs on the processors."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from verdict.distortion import ENDS, LATE, case
from verdict.stage import NotHere, Running, Seen, Sender, Stage
from verdict.truth import of_rounds


def with_hog(
    *words: object, sender: Sender | None = None, options: tuple[str, ...] = ()
) -> Callable[[Stage], Seen]:
    """Return a play of datagrams next to a busy program."""

    def play(stage: Stage) -> Seen:
        with stage.beside("hog", *words):
            return stage.datagrams(sender=sender, options=options)

    return play


def _hog(
    name: str, what: str, *words: object, codes: tuple[str, ...] = LATE + ENDS,
    nobody: bool = False, options: tuple[str, ...] = (), uncertain: bool = False,
) -> None:  # fmt: skip
    play = with_hog(*words, options=options)
    case(name, what, codes, nobody=nobody, needs=("root",), uncertain=uncertain)(play)


_hog("fifo-50-busy", "FIFO 50 on every processor, 400 ms of 500", "fifo", 50, 3, 400, 100)
_hog("fifo-5-busy", "FIFO 5 on every processor, 400 ms of 500", "fifo", 5, 3, 400, 100)
_hog("fifo-5-pauses", "FIFO 5 on every processor, 40 ms of 100", "fifo", 5, 3.5, 40, 60, codes=ENDS)
_hog("fifo-90-short", "FIFO 90 on every processor, 3 ms of 15", "fifo", 90, 3.5, 3, 12)
_hog("nice-15", "nice -15 on every processor", "nice", -15, 3.5, 500, 0, codes=ENDS, uncertain=True)
_hog(
    "nice-20-ordinary", "nice -20 on every processor, engine at no real-time priority",
    "nice", -20, 3.5, 500, 0, options=("--policy", "other"),
)  # fmt: skip
_hog(
    "nice-10-nobody",
    "nice -10 on every processor, by nobody",
    "nice",
    -10,
    3.5,
    500,
    0,
    nobody=True,
)
_hog(
    "busy-nobody",
    "a busy program on every processor, by nobody",
    "plain",
    0,
    3.5,
    500,
    0,
    nobody=True,
    uncertain=True,
)


@case("fifo-5-round-trips", "FIFO 5, 40 ms of 100: 120 round trips of TCP", ENDS, needs=("root",))
def _(stage: Stage) -> Seen:
    folder = stage.folder()
    rounds = folder / "rounds"
    client = stage.program("pingpong", 5000, rounds, 120, "server")
    words = ["--delay", "10 ms"]
    with (
        stage.beside("hog", "fifo", 5, 6, 40, 60),
        stage.running(folder, words, stage.program("echo", 5000), client) as run,
    ):
        pass
    return stage.seen(folder, of_rounds(rounds, 20_000_000), run)


@case(
    "host-port-starved",
    "FIFO 5, 40 ms of 100: round trips with a program of the host",
    ENDS,
    needs=("root",),
)
def _(stage: Stage) -> Seen:
    folder = stage.folder()
    rounds = folder / "rounds"
    client = stage.program("pingpong", 5377, rounds, 120, "server")
    words = ["--delay", "10 ms", "--host-port", "5377"]
    with (
        stage.beside("echo", 5377),
        stage.beside("hog", "fifo", 5, 6, 40, 60),
        stage.running(folder, words, None, client) as run,
    ):
        pass
    return stage.seen(folder, of_rounds(rounds, 20_000_000), run)


@case(
    "one-processor",
    "run on one processor beside a FIFO 50 program, 30 ms of 60",
    LATE + ENDS,
    needs=("taskset", "root"),
)
def _(stage: Stage) -> Seen:
    first = str(min(os.sched_getaffinity(0)))
    with stage.beside("hog", "fifo", 50, 3.5, 30, 30, prefix=("taskset", "-c", first)):
        return stage.datagrams(lambda run: _pin(run, {int(first)}))


def _pin(run: Running, processors: set[int]) -> None:
    for pid in run.descendants():
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(task.name), processors)


@case(
    "jobs-too-many",
    "sixteen runs at a time, 50 datagrams a second each, no priority",
    LATE + ENDS,
    uncertain=True,
)
def _(stage: Stage) -> Seen:
    with contextlib.ExitStack() as stack:
        for _ in range(15):
            folder = stage.folder()
            serve = stage.program("receive", 5000, folder / "received", 0, 0, 0)
            give = stage.program("send", 5000, folder / "sent", 3000, 0.001, 300, 1)
            words = ["--delay", "20 ms", "--policy", "other"]
            run = stack.enter_context(stage.running(folder, words, serve, give))
            stack.callback(_end, run)
        return stage.datagrams(options=("--policy", "other"))


def _end(run: Running) -> None:
    with contextlib.suppress(ProcessLookupError):
        run.process.send_signal(signal.SIGTERM)


@case(
    "idle-receiver",
    "receiver at SCHED_IDLE beside busy programs",
    ENDS,
    needs=("chrt",),
    uncertain=True,
)
def _(stage: Stage) -> Seen:
    with stage.beside("hog", "plain", 0, 3.5, 500, 0):
        return stage.datagrams(server_prefix=("chrt", "--idle", "0"))


@case("cpu-quota", "ends in a group with 2 ms of each 100 ms of a processor", ENDS, needs=("root",))
def _(stage: Stage) -> Seen:
    root = Path("/sys/fs/cgroup")
    second = (root / "cgroup.controllers").exists()
    base = root if second else root / "cpu"
    group = base / f"airpath-verdict-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise NotHere(f"no control group can be made: {error}") from error
    try:
        limits = {"cpu.max": "2000 100000"} if second else {
            "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "2000",
        }  # fmt: skip
        try:
            for name, text in limits.items():
                (group / name).write_text(text)
        except OSError as error:
            raise NotHere(f"no limit of processor time can be set: {error}") from error

        def disturb(run: Running) -> None:
            try:
                for pid in (run.program("receive"), run.program("send")):
                    (group / "cgroup.procs").write_text(str(pid))
            except OSError as error:
                raise NotHere(f"no program can be put into a group: {error}") from error

        return stage.datagrams(disturb, sender=Sender(count=600, interval_s=0.004))
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.05)
