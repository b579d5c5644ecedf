# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""All distortions, each one entry: what is done to a run, and what the truth at its ends is then.

A case returns what was seen: the truth and the verdict. A distortion that did not get through (the
truth is within the bound) allows either verdict, and counts as not reached; one that never gets
through says nothing and fails the bench.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from verdict.stage import HERE, NotHere, Receiver, Running, Seen, Sender, Stage, pause, result_file
from verdict.truth import Truth, of_datagrams, of_rounds

Play = Callable[[Stage], Seen]


@dataclass(frozen=True)
class Distortion:
    """One way to make a run report wrong results."""

    name: str
    what: str
    play: Play
    codes: tuple[str, ...]
    """Codes of reasons that name this distortion; one of them is expected."""
    nobody: bool = False
    """True if an ordinary user starts the run."""
    needs: tuple[str, ...] = ()
    """Programs, or `root`."""
    sure: bool = False
    """True if it gets through on any machine: these are in the tests."""
    uncertain: bool = False
    """True if a run on a good machine may withstand it, and is rightly trusted then."""
    own: bool = False
    """True if the programs at the ends are slow by themselves, so that a trusted run is right."""


ALL: list[Distortion] = []

LATE = ("late_emissions", "late_reads", "overload", "unwatched_reads")
LOST = ("outside_drops",)
ENDS = ("ends_waited", "relays_waited")
SOCKETS = ("socket_losses", "tcp_receive_drops")
BROKEN = ("broken_off", "never_started")


def case(
    name: str,
    what: str,
    codes: tuple[str, ...],
    *,
    nobody: bool = False,
    needs: tuple[str, ...] = (),
    sure: bool = False,
    uncertain: bool = False,
    own: bool = False,
) -> Callable[[Play], Play]:
    """Register a distortion."""

    def register(play: Play) -> Play:
        ALL.append(Distortion(name, what, play, codes, nobody, needs, sure, uncertain, own))
        return play

    return register


def stop_often(stopped_s: float, going_s: float, count: int) -> Callable[[Running], None]:
    """Return a disturbance that stops the engine over and over."""

    def disturb(run: Running) -> None:
        engine = run.engine()
        for _ in range(count):
            if run.over:
                return
            run.stop(engine, stopped_s)
            pause(going_s)

    return disturb


# The engine stopped, by which packets leave late.


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


# Other programs on the processors.


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


# The programs at the ends.


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


# Interfaces and queues outside the model.


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


# The clocks.


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


# Links in links, priorities, logs.


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


def calm(stage: Stage, interval_s: float, *, delay_ms: float = 20.0, count: int = 100) -> Seen:
    """Run without any disturbance."""
    return stage.datagrams(delay_ms=delay_ms, sender=Sender(count=count, interval_s=interval_s))
