# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Links in links, priorities, logs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from verdict.distortion import LATE, case, stop_often
from verdict.stage import NotHere, Running, Seen, Sender, Stage, pause
from verdict.truth import Truth, of_datagrams


@case(
    "nested-outer-stopped",
    "engine of the run around it stopped 100 ms, 8 times",
    ("around",),
    sure=True,
)
def _(stage: Stage) -> Seen:
    return _nested(stage, stop_often(0.1, 0.1, 8))


def _nested(stage: Stage, disturb: Callable[[Running], None]) -> Seen:
    folder, inner = stage.folder(), stage.folder()
    rows, sent = folder / "received", folder / "sent"
    source = (stage.root / "programs.py").read_text().replace('"server"', '"server0"')
    (folder / "inner.py").write_text(source)
    give = [
        stage.python,
        str(folder / "inner.py"),
        "send",
        "5000",
        str(sent),
        "120",
        "0.02",
        "300",
        "1",
    ]
    words = [str(stage.engine), "exec", "--quiet", "--out", str(inner / "run"), "--delay", "10 ms"]
    take = stage.program("receive", 5000, rows, 0, 0, 0)
    with stage.running(folder, ["--delay", "10 ms"], take, [*words, "--", *give]) as run:
        run.await_traffic()
        disturb(run)
    truth = of_datagrams(sent, rows, 20_000_000, 120)
    return (
        stage.seen(inner, truth, run)
        if (inner / "errors").exists()
        else _inner(inner, truth, run, stage)
    )


def _inner(inner: Path, truth: Truth, run: Running, stage: Stage) -> Seen:
    (inner / "errors").touch()
    return stage.seen(inner, truth, run)


@case("nested-inner-stopped", "engine of the inner run stopped 50 ms, 10 times", LATE, sure=True)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        outer = run.engine()
        engines = [
            pid for pid in run.descendants()
            if pid != outer and Path(f"/proc/{pid}/comm").read_text().startswith("airpath-engine")
        ]  # fmt: skip
        for _ in range(10):
            run.stop(engines[-1], 0.05)
            pause(0.08)

    return _nested(stage, disturb)


@case(
    "demoted",
    "engine that ran for 500 ms without sleeping and lost its priority",
    ("demoted", "overload", *LATE),
    needs=("root",),
)
def _(stage: Stage) -> Seen:
    # By default a packet of a link of 600 ms may leave 30 ms late.
    options = ("--policy", "rr:3", "--spin", "5 s", "--lateness-bound", "1 ms")
    with stage.beside("hog", "plain", 0, 5, 500, 0):
        return stage.datagrams(
            options=options, delay_ms=600, sender=Sender(count=100, interval_s=0.02)
        )


@case(
    "disk-full",
    "run's folder on a file system of 10 MB that fills up",
    ("log_incomplete", "log"),
    needs=("mount", "root"),
)
def _(stage: Stage) -> Seen:
    folder = stage.folder()
    small = folder / "run"
    small.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", str(small)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        raise NotHere("no file system can be mounted")
    try:
        seen = stage.datagrams(
            folder=folder, options=("--snaplen", "full"), sender=Sender(100, 0.02, 1400, 100)
        )
        size = sum(path.stat().st_size for path in small.iterdir())
        full = shutil.disk_usage(small).free < 1 << 20
        seen.truth = Truth(f"{size / 1e6:.1f} MB of the log were kept, disk full: {full}", full)
        return seen
    finally:
        subprocess.run(["umount", str(small)], capture_output=True, check=False)


@case(
    "log-too-slow",
    "log's writer held up by a small buffer and a stopped disk reader",
    ("log_incomplete", "log", *LATE),
    needs=("root",),
    uncertain=True,
)
def _(stage: Stage) -> Seen:
    with stage.beside("hog", "nice", -20, 5, 500, 0):
        return stage.datagrams(
            options=("--log-buffer", "8 MB", "--snaplen", "full"),
            sender=Sender(200, 0.01, 1400, 60),
        )
