# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The engine stopped, by which packets leave late."""

from __future__ import annotations

import subprocess
import time

from verdict.distortion import LATE, case, stop_often
from verdict.stage import Running, Seen, Sender, Stage, pause
from verdict.truth import Truth

for port in ("packet", "tun"):
    for user in (False, True):
        who = "nobody" if user else "root"

        def _stop_50(stage: Stage, port: str = port) -> Seen:
            return stage.datagrams(stop_often(0.05, 0.1, 12), port=port)

        case(
            f"stop-50ms-{port}-{who}", "engine stopped 50 ms, 12 times", LATE, nobody=user,
            needs=("tun",) if port == "tun" else (), sure=port == "packet",
        )(_stop_50)  # fmt: skip


@case("stop-15ms-packet", "engine stopped 15 ms, 40 times", LATE, sure=True)
def _(stage: Stage) -> Seen:
    return stage.datagrams(stop_often(0.015, 0.04, 40))


@case("stop-0.3ms-packet", "engine stopped 0.3 ms, 2500 times", LATE, uncertain=True)
def _(stage: Stage) -> Seen:
    return stage.datagrams(stop_often(0.0003, 0.0006, 2500))


@case("stop-80ms-tun", "TUN: engine stopped 80 ms each 0.1 s", LATE, needs=("tun",), sure=True)
def _(stage: Stage) -> Seen:
    return stage.datagrams(stop_often(0.08, 0.1, 12), port="tun")


@case("stop-90ms-tun", "TUN: engine stopped 90 ms each 0.3 s", LATE, needs=("tun",))
def _(stage: Stage) -> Seen:
    return stage.datagrams(stop_often(0.09, 0.3, 7), port="tun")


@case(
    "silence-2s-tun",
    "TUN: packets 7 s apart, engine stopped 2 s around the second",
    LATE,
    needs=("tun",),
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        # Six seconds after the first: the second comes while the engine is stopped.
        pause(6)
        run.stop(run.engine(), 2)

    return stage.datagrams(disturb, port="tun", sender=Sender(count=2, interval_s=7))


@case(
    "stop-at-packets-tun",
    "TUN: packets 1.5 s apart, engine stopped 60 ms at each",
    LATE,
    needs=("tun",),
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        engine, begun = run.engine(), time.monotonic()
        for packet in range(1, 5):
            pause(max(0.0, begun + packet * 1.5 - 0.06 - time.monotonic()))
            run.stop(engine, 0.06)

    return stage.datagrams(disturb, port="tun", sender=Sender(count=5, interval_s=1.5))


@case(
    "stop-in-silence-packet", "engine stopped 1 s around the second of two packets", LATE, sure=True
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        pause(1)
        run.stop(run.engine(), 1)

    return stage.datagrams(disturb, sender=Sender(count=2, interval_s=1.5))


@case("stop-no-packets", "no packet at all, engine stopped 0.5 s", ("no_packets",))
def _(stage: Stage) -> Seen:
    folder = stage.folder()
    with stage.running(folder, ["--delay", "20 ms"], None, ["sleep", "1"]) as run:
        pause(0.3)
        run.stop(run.engine(), 0.5)
    return stage.seen(folder, Truth("no packet, so that nothing was measured", True), run)


@case(
    "ptrace-engine",
    "strace follows the engine for 1.5 s",
    LATE,
    needs=("strace", "root"),
    uncertain=True,
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        line = ["strace", "-f", "-o", "/dev/null", "-p", str(run.engine())]
        with subprocess.Popen(line, stderr=subprocess.DEVNULL) as tracer:
            pause(1.5)
            tracer.terminate()

    return stage.datagrams(disturb, sender=Sender(count=400, interval_s=0.004, burst=5))
