# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The clocks."""

from __future__ import annotations

import contextlib
import mmap
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator

from verdict.distortion import LATE, LOST, Play, case
from verdict.stage import HERE, NotHere, Running, Seen, Stage, pause
from verdict.truth import of_datagrams


@contextlib.contextmanager
def stepped_clock(stage: Stage) -> Iterator[tuple[dict[str, str], Callable[[int], None]]]:
    """Give an engine a wall clock that can be stepped: its environment, and the step."""
    if not shutil.which("cc"):
        raise NotHere("there is no C compiler")
    library, page = stage.root / "step.so", stage.folder() / "step"
    if not library.exists():
        words = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "step.c")]
        subprocess.run(words, check=True)
    page.write_bytes(bytes(4096))
    page.chmod(0o644)
    with page.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as shared:

        def step(by_ns: int) -> None:
            shared[:8] = struct.pack("=q", by_ns)

        yield {"LD_PRELOAD": str(library), "VERDICT_STEP": str(page)}, step


def _stepped(after_s: float, by_ns: int) -> Play:
    def play(stage: Stage) -> Seen:
        with stepped_clock(stage) as (environment, step):
            begun: list[float] = []

            def disturb(run: Running) -> None:
                begun.append(time.monotonic())
                pause(after_s)
                step(by_ns)

            return stage.datagrams(disturb, environment=environment)

    return play


CLOCK = ("clock_step", *LATE, *LOST)
for label, after, by in (
    ("back-10s", 0.5, -10_000_000_000),
    ("back-0.5s", 0.7, -500_000_000),
    ("back-3ms", 0.7, -3_000_000),
    ("forward-0.5s", 0.7, 500_000_000),
    ("forward-10s", 0.7, 10_000_000_000),
):
    case(
        f"clock-{label}", f"wall clock of the engine stepped {label.replace('-', ' ')}", CLOCK,
        needs=("cc",), uncertain=True,
    )(_stepped(after, by))  # fmt: skip


@case(
    "clock-before-start",
    "wall clock stepped back 10 s before the client starts",
    CLOCK,
    needs=("cc",),
    uncertain=True,
)
def _(stage: Stage) -> Seen:
    with stepped_clock(stage) as (environment, step):
        folder = stage.folder()
        wait = ("sh", "-c", f'until [ -e {folder}/go ]; do sleep 0.02; done; exec "$@"', "sh")

        def early(run: Running) -> None:
            step(-10_000_000_000)
            pause(1.5)
            (folder / "go").touch()

        take = stage.program("receive", 5000, folder / "received", 0, 0, 0)
        give = stage.program("send", 5000, folder / "sent", 120, 0.02, 300, 1)
        words = ["--port", "packet", "--delay", "20 ms"]
        with stage.running(folder, words, [*wait, *take], give, environment) as run:
            run.engine()
            pause(0.5)
            early(run)
        truth = of_datagrams(folder / "sent", folder / "received", 20_000_000, 120)
        return stage.seen(folder, truth, run)
