# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The clocks of two hosts compared through an emulated link, and logs corrected by it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from live.harness import User, await_true
from pcapng import packets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from live.harness import Airpath, Way

ASK = ("--seconds", "2", "--interval", "20 ms")
MESSAGE = 80


def compared(
    airpath: Airpath, way: Way, *link: str, error: str = "0,0", asked: tuple[str, ...] = ASK
) -> Any:
    """Compare the clocks of the two ends of a link; the server's has this error."""
    name = airpath.command.name
    server = f"{name} timing sync --serve --simulated-error={error}"
    client = (name, "timing", "sync", "server", "--json", *asked)
    result = airpath.exec(way, *link, "--server", server, "--", *client).check()
    estimate = json.loads(result.out)
    assert estimate["from_unix_ns"] <= estimate["at_unix_ns"] <= estimate["to_unix_ns"]
    return estimate


def drift_is_possible(estimate: Any, ppm: float) -> bool:
    least, greatest = estimate["drift_bound_ppm"]
    return bool(least <= ppm <= greatest)


def test_two_ends_of_one_host_have_one_clock(airpath: Airpath, way: Way) -> None:
    estimate = compared(airpath, way, "--delay", "20 ms", "--seed", "1")
    assert abs(estimate["offset_ns"]) <= estimate["bound_ns"]
    assert abs(estimate["monotonic_offset_ns"]) <= estimate["bound_ns"]
    assert drift_is_possible(estimate, 0)
    # The kernel's stamps and the engine's clock are set beside one another to some microseconds.
    assert estimate["least_round_trip_ns"] >= 39_980_000
    # Both directions are bounded apart, so that this is half of the least round trip, or less.
    assert estimate["bound_ns"] <= estimate["least_round_trip_ns"]
    counts = estimate["exchanges"]
    assert counts["answered"] == counts["used"] == counts["sent"] == 101
    # T2 and T4 are the kernel's; T1 and T3 are where the device tells.
    assert counts["kernel_stamps"][1] > 90
    assert counts["kernel_stamps"][3] > 90
    assert estimate["steps"] == []


def test_an_uneven_way_stays_within_the_bound(airpath: Airpath, any_way: Way) -> None:
    estimate = compared(airpath, any_way, "--delay", "2 ms,60 ms")
    # A request that is faster than the answer looks like a clock that is behind.
    assert -estimate["bound_ns"] <= estimate["offset_ns"] <= -20_000_000
    assert estimate["bound_ns"] >= 29_000_000


def test_a_clock_that_is_off_and_drifts_is_found(airpath: Airpath, any_way: Way) -> None:
    error = "-3600000000000,5000"
    estimate = compared(airpath, any_way, "--delay", "1 ms", error=error)
    # The server's clock began to drift at some time before the first exchange.
    drifted = 0.005 * 60e9
    assert -3.6e12 - 1e9 <= estimate["offset_ns"] <= -3.6e12 + drifted
    assert drift_is_possible(estimate, 5000)
    assert abs(estimate["drift_ppm"] - 5000) < 1500
    least, greatest = estimate["offset_interval_ns"]
    assert least <= estimate["offset_ns"] <= greatest


def test_a_step_is_told(airpath: Airpath, any_way: Way) -> None:
    error = "0,0,-2000000000,2500000000"
    asked = ("--seconds", "5", "--interval", "20 ms")
    estimate = compared(airpath, any_way, "--delay", "5 ms", error=error, asked=asked)
    (step,) = estimate["steps"]
    assert step["host"] == "remote"
    assert abs(step["by_ns"] + 2_000_000_000) < 100_000
    assert "the remote clock was set by -2.000" in estimate["warnings"][0]
    either = (estimate["offset_ns"], estimate["offset_ns"] + 2_000_000_000)
    assert min(map(abs, either)) <= estimate["bound_ns"] + 1_000


def test_loss_and_reordering_and_copies(airpath: Airpath, any_way: Way) -> None:
    link = ("--delay", "10 ms", "--loss", "20%", "--reorder", "10% 30 ms", "--duplicate", "20%")
    estimate = compared(airpath, any_way, *link, "--seed", "5")
    counts = estimate["exchanges"]
    assert 20 < counts["answered"] < counts["sent"] == 101
    assert counts["duplicates"] > 0
    assert abs(estimate["offset_ns"]) <= estimate["bound_ns"]


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


@contextmanager
def answering(answer: Callable[[bytes], bytes | None]) -> Iterator[int]:
    """Answer datagrams at a port of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    request, sender = server.recvfrom(2048)
                except TimeoutError:
                    continue
                if (reply := answer(request)) is not None:
                    server.sendto(reply, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            thread.join()


def sync(airpath: Airpath, *words: object, status: int = 1) -> str:
    """Run a comparison that fails; return what it says."""
    result = airpath.run("timing", "sync", *words).check(status)
    assert result.out == ""
    return result.err


def test_nobody_answers(airpath: Airpath) -> None:
    error = sync(airpath, f"127.0.0.1:{free_port()}", "--seconds", "1")
    assert "the port is closed; start `airpath timing sync --serve`" in error
    with answering(lambda _: None) as port:
        error = sync(airpath, f"127.0.0.1:{port}", "--seconds", "1")
        assert f"no answer from 127.0.0.1:{port} to 21 requests" in error
    error = sync(airpath, "no-such-host.invalid", status=2)
    assert "cannot find no-such-host.invalid" in error


def test_somebody_else_answers(airpath: Airpath) -> None:
    with answering(lambda _: b"220 welcome") as port:
        error = sync(airpath, f"127.0.0.1:{port}", "--seconds", "1")
        assert "is not `airpath timing sync --serve`" in error
    with answering(lambda request: request[:4] + b"\x09" + request[5:]) as port:
        error = sync(airpath, f"127.0.0.1:{port}", "--seconds", "1")
        assert "speaks version 9 of this protocol and this Airpath version 1" in error


def test_wrong_options(airpath: Airpath) -> None:
    for words in (
        ("--interval", "2 s"),
        ("--interval", "1 ms", "--seconds", "86400"),
        ("--seconds", "0"),
        ("--serve",),
        ("--status",),
    ):
        airpath.run("timing", "sync", "127.0.0.1", *words).check(2)
    nowhere = ("--serve", "--listen", "nowhere:1")
    others: list[tuple[str, ...]] = [(), ("host:0",), nowhere, ("--listen", ":1")]
    for other in others:
        airpath.run("timing", "sync", *other).check(2)
    where = airpath.work / "none" / "clocks.json"
    error = sync(airpath, "127.0.0.1", "--out", where, status=122)
    assert "clocks.json" in error
    assert "is not a directory" in error


@contextmanager
def serving(airpath: Airpath, user: User | None = None) -> Iterator[tuple[Any, int]]:
    """Serve at a port of the loopback until the test ends it."""
    port = free_port()
    words = ("timing", "sync", "--serve", "--listen", f"127.0.0.1:{port}")
    process = airpath.start(*words, user=user)
    try:
        assert process.stderr is not None
        assert f"listening on 127.0.0.1:{port}" in process.stderr.readline()
        yield process, port
    finally:
        process.kill()
        process.wait()


def test_a_server_answers_no_more_than_it_was_asked_and_ends_with_ctrl_c(airpath: Airpath) -> None:
    with serving(airpath) as (process, port):
        taken = airpath.run("timing", "sync", "--serve", "--listen", f"127.0.0.1:{port}").check(1)
        assert "the port is taken: name another with --listen" in taken.err
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", port))
            client.settimeout(60)
            request = b"APCK\x01\x01".ljust(MESSAGE, b"\0")
            other = b"APCK\x63\x01".ljust(MESSAGE, b"\0")
            # Nothing shorter, longer or else is answered: the first answer is that to `request`.
            for datagram in (b"", b"x" * 1400, request[:-1], request + b"\0", other[:-1], request):
                client.send(datagram)
            answer = client.recv(2048)
            assert (len(answer), answer[:6]) == (MESSAGE, b"APCK\x01\x02")
            client.send(other)
            answer = client.recv(2048)
            assert (len(answer), answer[:6]) == (MESSAGE, b"APCK\x01\x03")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGINT
        assert "2 requests answered" in errors


def test_the_monotonic_clocks_are_compared_as_well(airpath: Airpath) -> None:
    # A time namespace has a CLOCK_MONOTONIC of its own, and the CLOCK_REALTIME of all.
    later = ("unshare", "-r", "-T", "--monotonic", "1000", "--fork", "--kill-child")
    probe = subprocess.run([*later, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no time namespace can be made here: {probe.stderr.strip()}")
    with serving(airpath, User("later", later)) as (_, port):
        words = (f"127.0.0.1:{port}", "--seconds", "1", "--json")
        estimate = json.loads(airpath.run("timing", "sync", *words).check().out)
    assert abs(estimate["offset_ns"]) <= estimate["bound_ns"]
    error = estimate["monotonic_offset_ns"] - 1_000_000_000_000
    assert abs(error) <= estimate["bound_ns"] + 100_000


def test_an_interrupted_comparison_writes_nothing(airpath: Airpath) -> None:
    out = airpath.path("clocks.json")
    with serving(airpath) as (server, port):
        words = ("timing", "sync", f"127.0.0.1:{port}", "--seconds", "600", "--out", out)
        process = airpath.start(*words)
        assert server.stderr is not None
        await_true(lambda: "measurement" in server.stderr.readline())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "nothing was written" in errors
    assert list(out.parent.iterdir()) == []


def test_the_state_of_this_hosts_clock(airpath: Airpath) -> None:
    status = json.loads(airpath.run("timing", "sync", "--status", "--json").check().out)
    assert status["host"]
    assert (status["kernel"] is None) != (status["kernel_unavailable"] is None)
    if status["kernel"]:
        assert isinstance(status["kernel"]["synchronised"], bool)
    text = airpath.run("timing", "sync", "--status").check().out
    assert status["host"] in text
    assert ("synchronised" in text) == (status["kernel"] is not None)


@pytest.fixture
def recorded(airpath: Airpath, any_way: Way) -> tuple[Path, Path]:
    """Return a run, and an estimate made while it went on, of a clock 2 s ahead."""
    run, estimate = airpath.path("run"), airpath.path("clocks.json")
    name = airpath.command.name
    server = f"{name} timing sync --serve --simulated-error=2000000000,0"
    client = (name, "timing", "sync", "server", *ASK, "--out", str(estimate))
    airpath.exec(any_way, "--out", run, "--server", server, "--", *client).check()
    return run, estimate


def test_a_run_is_corrected(airpath: Airpath, recorded: tuple[Path, Path]) -> None:
    run, estimate_file = recorded
    estimate = json.loads(estimate_file.read_text())
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["host"]["clock"]["identity"] == estimate["local"]["identity"]
    out = airpath.path("corrected")
    words = ("timing", "correct", run, "--by", estimate_file, "--out", out)
    # The run began before the first exchange and ended after the last.
    refused = airpath.run(*words).check(2).err
    assert "the estimate holds from" in refused
    assert "--extrapolate" in refused
    assert not out.exists()
    record = json.loads(airpath.run(*words, "--extrapolate", "--json").check().out)
    assert abs(record["offset_ns"] - 2_000_000_000) <= record["bound_ns"]
    corrected = json.loads((out / "run.json").read_text())
    assert corrected["start_unix_ns"] == manifest["start_unix_ns"] + record["offset_ns"]
    for port in ("client", "server"):
        old = packets((run / f"{port}.pcapng").read_bytes())
        new = packets((out / f"{port}.pcapng").read_bytes())
        assert len(old) == len(new) > 100
        for one, other in zip(old, new, strict=True):
            assert (one.content, one.pdu, one.interface) == (
                other.content,
                other.pdu,
                other.interface,
            )
            since = one.unix_ns - estimate["at_unix_ns"]
            moved = estimate["offset_ns"] + since * estimate["drift_ppm"] / 1e6
            assert abs(other.unix_ns - one.unix_ns - moved) <= 1
    assert (run / "events.arrow").read_bytes() == (out / "events.arrow").read_bytes()
    assert json.loads((out / "correction.json").read_text()) == record
    again = airpath.run(*words, "--extrapolate").check(2).err
    assert "is not empty" in again
    # The copy is a run like any other.
    for command in (("log", "--tcpdump", out), ("replay", out)):
        airpath.run(*command).check()


def test_a_correction_that_cannot_be(airpath: Airpath, recorded: tuple[Path, Path]) -> None:
    run, estimate = recorded
    out = airpath.path("corrected")
    wrong = airpath.file("wrong.json", '{"what": "else"}')
    for file, what in ((wrong, "is no estimate"), (airpath.path("none.json"), "check the name")):
        words = ("timing", "correct", run, "--by", file, "--out", out)
        assert what in airpath.run(*words).check(2).err
    by = ("--by", estimate, "--out", out)
    refused = airpath.run("timing", "correct", wrong, *by).check(2).err
    assert "neither a pcapng nor a pcap" in refused
    airpath.run("timing", "correct", run, *by, "--recorded-at", "nowhere").check(2)
    airpath.run("timing", "correct", run, "--by", estimate).check(2)
    if os.geteuid() != 0:
        run.chmod(0)
        assert "check the rights" in airpath.run("timing", "correct", run, *by).check(2).err
        run.chmod(0o755)
    assert not out.exists()
