# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The programs at the ends."""

from __future__ import annotations

import os
import signal

from verdict.distortion import BROKEN, SOCKETS, case
from verdict.stage import Receiver, Running, Seen, Sender, Stage, pause, result_file
from verdict.truth import Truth


@case(
    "receiver-stopped",
    "receiver stopped 0.5 s, no datagram lost",
    ("stopped",),
    sure=True,
)
def _(stage: Stage) -> Seen:
    return stage.datagrams(lambda run: run.stop(run.program("receive"), 0.5))


@case(
    "sender-stopped",
    "sender stopped 0.5 s, so that datagrams go late",
    ("stopped",),
    sure=True,
)
def _(stage: Stage) -> Seen:
    return stage.datagrams(lambda run: run.stop(run.program("send"), 0.5))


@case("sender-traced", "sender under strace", ("traced",), needs=("strace",), uncertain=True)
def _(stage: Stage) -> Seen:
    strace = ("strace", "-f", "-o", "/dev/null")
    return stage.datagrams(client_prefix=strace, sender=Sender(8, 0.25, 300, 400))


@case(
    "receive-buffer",
    "receive buffer of 8000 bytes, receiver stalls 0.8 s",
    SOCKETS,
    sure=True,
)
def _(stage: Stage) -> Seen:
    stalls = Receiver(buffer_bytes=8000, stall_after=20, stall_s=0.8)
    return stage.datagrams(receiver=stalls, sender=Sender(count=300, interval_s=0.006))


@case(
    "receive-buffer-nobody",
    "bursts of 900 into a small buffer, by nobody",
    SOCKETS,
    nobody=True,
    sure=True,
)
def _(stage: Stage) -> Seen:
    stalls = Receiver(buffer_bytes=16000, stall_after=50, stall_s=0.2)
    return stage.datagrams(receiver=stalls, sender=Sender(4, 0.3, 300, 900))


@case(
    "listen-overflow",
    "60 connections at once to a server with room for two",
    ("listen_drops",),
    sure=True,
)
def _(stage: Stage) -> Seen:
    folder = stage.folder()
    answered = folder / "answered"
    words = ["--delay", "5 ms"]
    client = stage.program("connect", 5000, answered, 60, 0.8)
    with stage.running(folder, words, stage.program("reluctant", 5000, 2, 0.3), client) as run:
        pass
    found = result_file(answered)
    missed = found.get("tried", 0) - found.get("answered", 0)
    what = f"{missed} of {found.get('tried')} connections had no answer within 0.8 s"
    return stage.seen(folder, Truth(what, missed > 0), run)


@case(
    "server-killed",
    "server killed half-way",
    ("server_failed", *BROKEN),
    sure=True,
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        pause(0.8)
        os.kill(run.program("receive"), signal.SIGKILL)

    return stage.datagrams(disturb)
