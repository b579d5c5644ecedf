# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Interfaces and queues outside the model, and more than the machine can carry."""

from __future__ import annotations

import subprocess

from verdict.distortion import BROKEN, ENDS, LATE, LOST, case, stop_often
from verdict.stage import Running, Seen, Sender, Stage, pause, result_file
from verdict.truth import Truth


@case(
    "mtu-raised",
    "MTU of the client's interface raised, datagrams of 2500 bytes",
    LOST,
    needs=("nsenter", "ip", "root"),
    sure=True,
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        run.inside(run.program("send"), "ip", "link", "set", "airpath0", "mtu", "4000")

    return stage.datagrams(
        disturb, port="packet", sender=Sender(count=150, interval_s=0.01, bytes=2500)
    )


@case(
    "tun-queue",
    "TUN queue of 20 packets, engine stopped, bursts of 200",
    LOST + LATE,
    needs=("nsenter", "ip", "root", "tun"),
    sure=True,
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        client = run.program("send")
        run.inside(client, "ip", "link", "set", "airpath0", "txqueuelen", "20")
        stop_often(0.1, 0.02, 12)(run)

    return stage.datagrams(disturb, port="tun", sender=Sender(10, 0.2, 300, 200))


@case("bursts", "bursts of 1500 datagrams", LATE + LOST + ENDS, uncertain=True, own=True)
def _(stage: Stage) -> Seen:
    return stage.datagrams(sender=Sender(8, 0.25, 300, 1500))


@case(
    "interface-down",
    "client's interface taken down for 0.4 s",
    LOST + BROKEN + ("refused", "interface"),
    needs=("nsenter", "ip", "root"),
    sure=True,
)
def _(stage: Stage) -> Seen:
    return stage.datagrams(_down_and_up)


def _down_and_up(run: Running) -> None:
    client = run.program("send")
    pause(0.4)
    run.inside(client, "ip", "link", "set", "airpath0", "down")
    pause(0.4)
    run.inside(client, "ip", "link", "set", "airpath0", "up")


@case(
    "interface-down-tun",
    "TUN: client's interface taken down for 0.4 s",
    ("interface",),
    needs=("nsenter", "ip", "root", "tun"),
    sure=True,
)
def _(stage: Stage) -> Seen:
    return stage.datagrams(_down_and_up, port="tun")


@case(
    "addresses-flushed",
    "addresses of the client's interface removed for good",
    ("interface",),
    needs=("nsenter", "ip", "root"),
    sure=True,
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        client = run.program("send")
        pause(0.4)
        run.inside(client, "ip", "address", "flush", "dev", "airpath0")

    return stage.datagrams(disturb)


@case(
    "shaped-for-a-while",
    "client's interface shaped to 100 kbit/s for 0.8 s",
    ("interface",),
    needs=("nsenter", "tc", "root"),
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        client = run.program("send")
        pause(0.2)
        run.inside(client, "tc", "qdisc", "replace", "dev", "airpath0", "root", "tbf",
                   "rate", "100kbit", "burst", "2000", "limit", "40000")  # fmt: skip
        pause(0.8)
        run.inside(client, "tc", "qdisc", "del", "dev", "airpath0", "root")

    return stage.datagrams(disturb, sender=Sender(count=300, interval_s=0.006))


@case(
    "interface-moved",
    "client's interface moved to another namespace",
    BROKEN + LOST,
    needs=("nsenter", "ip", "unshare", "root"),
    sure=True,
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        client = run.program("send")
        with subprocess.Popen(["unshare", "-n", "sleep", "20"]) as other:
            try:
                pause(0.4)
                run.inside(client, "ip", "link", "set", "airpath0", "netns", str(other.pid))
                pause(1)
            finally:
                other.kill()

    return stage.datagrams(disturb)


@case(
    "shaped-inside",
    "client's interface shaped to 100 kbit/s by its own queue",
    (*LOST, "socket", "interface"),
    needs=("nsenter", "tc", "root"),
)
def _(stage: Stage) -> Seen:
    def disturb(run: Running) -> None:
        client = run.program("send")
        run.inside(client, "tc", "qdisc", "replace", "dev", "airpath0", "root", "tbf",
                   "rate", "100kbit", "burst", "2000", "limit", "4000")  # fmt: skip

    return stage.datagrams(disturb, sender=Sender(count=300, interval_s=0.006))


def _wanted(stage: Stage, gigabits: int, seconds: float) -> Seen:
    folder = stage.folder()
    counted = folder / "counted"
    words = ["--rate", f"{gigabits} Gbit/s", "--delay", "1 ms", "--log", "counters"]
    serve, give = stage.program("drain", 5000, counted), stage.program("flood", 5000, seconds)
    with stage.running(folder, words, serve, give) as run:
        pass
    found = result_file(counted)
    had = found.get("bytes", 0) * 8 / max(1, found.get("ns", 1))
    truth = Truth(f"{had:.2f} Gbit/s of data instead of {gigabits}", had < 0.85 * gigabits)
    return stage.seen(folder, truth, run)


@case(
    "rate-2g",
    "a rate of 2 Gbit/s, which the machine may not reach",
    LATE + LOST + ("rate",),
    uncertain=True,
)
def _(stage: Stage) -> Seen:
    return _wanted(stage, 2, 2)


@case("rate-10g", "a rate of 10 Gbit/s, which the machine does not reach", LATE + LOST + ("rate",))
def _(stage: Stage) -> Seen:
    return _wanted(stage, 10, 2)


LOADED = """
[[hops]]
name = "radio"
[hops.link]
propagation = "20 ms"

[[background]]
name = "others"
hop = "radio"
direction = "downlink"
type = "cbr"
rate = "8 Gbit/s"
packet_size = "125 bytes"
"""


@case(
    "heavy-load", "a background load of 8 million packets a second", LATE + BROKEN + ("unfinished",)
)
def _(stage: Stage) -> Seen:
    folder = stage.folder()
    scenario = folder / "heavy.toml"
    scenario.write_text(LOADED)
    scenario.chmod(0o644)
    return stage.datagrams(scenario=scenario, folder=folder, sender=Sender(count=40))
