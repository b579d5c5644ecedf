# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The wall clock stepped, the engine stopped, and a link that nothing can carry."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from airpath.run import load_run
from live.harness import Way, await_true, tun_opens
from processes import children

if TYPE_CHECKING:
    from live.harness import Airpath, User

MS = 1_000_000
SECOND = 1000 * MS

HEAVY = """\
[[hops]]
name = "radio"
[hops.link]
rate = "2 Mbit/s"
propagation = "30 ms"
[[background]]
name = "browsing"
hop = "radio"
direction = "downlink"
type = "users"
interval = { type = "exponential", mean = "2 ns" }
volume = { type = "exponential", mean = "200 kB" }
packet_size = "1500 bytes"
"""


@pytest.fixture
def preload(airpath: Airpath) -> Path:
    """Return a library that steps the wall clock of the program that loads it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("stepping a clock without touching the host's needs a C compiler")
    library = airpath.path("stepped.so")
    source = Path(__file__).with_name("stepped.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    library.chmod(0o755)
    return library


def stepped_run(
    airpath: Airpath, user: User, preload: Path, by_ns: int, *, stamps: bool, at_start: bool
) -> tuple[dict[str, Any], pl.DataFrame]:
    """Run 60 datagrams there and back; return the results and the events of the path.

    The clock is stepped while they are under way. At first it is ahead where `at_start` says so.
    """
    out, flag = airpath.path("run"), airpath.path("flag")
    if at_start:
        flag.touch()
    environment = {"LD_PRELOAD": str(preload), "STEP_FLAG": str(flag), "STEP_NS": str(by_ns)}
    if stamps:
        environment["STEP_STAMPS"] = "1"
    server = airpath.server(
        "datagram-server", 4, "udp", 0, 5000, airpath.path("datagrams"), airpath.path("counters")
    )
    client = airpath.program("datagram-client", 4, "udp", 0, 5000, 60, 300, 0.02, 0.5)
    words = ("exec", "--port", "packet", "--delay", "5 ms", "--out", out, "--server", server)
    process = airpath.start(*words, "--", *client, user=user, environment=environment)
    await_true(lambda: (out / "run.json").exists(), "the run never began")
    time.sleep(0.4)
    if at_start:
        flag.unlink()
    else:
        flag.touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    run = load_run(out)
    return run.manifest["results"], run.events


def discarded(events: pl.DataFrame) -> int:
    return events.filter(pl.col("cause") == "before_start").height


@pytest.mark.parametrize("by_ns", [-10 * SECOND, 500 * MS])
def test_a_step_of_the_clock_loses_and_moves_no_packet(
    airpath: Airpath, user: User, preload: Path, by_ns: int
) -> None:
    results, events = stepped_run(airpath, user, preload, by_ns, stamps=True, at_start=False)
    clock = results["wall_clock"]
    assert clock["count"] == 1, clock
    assert abs(clock["steps"][0]["by_ns"] - by_ns) < 100 * MS, clock
    assert (clock["unplaced"], clock["doubtful"]) == (0, 0), clock
    offered = events.filter((pl.col("kind") == "offered") & (pl.col("hop") == "path"))
    assert offered.height >= 120
    assert discarded(events) == 0
    # Nothing entered seconds after it came: a machine under load stops for less.
    assert results["timings"]["read_delay"]["max_ns"] < 400 * MS
    codes = [reason["code"] for reason in results["verdict"]["reasons"]]
    assert "clock_step" not in codes


def test_stamps_that_contradict_the_clock_cost_no_packet_and_are_told(
    airpath: Airpath, user: User, preload: Path
) -> None:
    # The engine believes in a clock ten seconds ahead of that of the stamps: everything seems to
    # have come before the run.
    results, events = stepped_run(airpath, user, preload, 10 * SECOND, stamps=False, at_start=True)
    clock = results["wall_clock"]
    assert clock["unplaced"] > 0, clock
    assert clock["count"] == 1, clock
    assert discarded(events) == 0
    assert events.filter((pl.col("kind") == "offered") & (pl.col("hop") == "path")).height >= 120
    verdict = results["verdict"]
    assert verdict["grade"] != "trusted", verdict
    assert "clock_step" in [reason["code"] for reason in verdict["reasons"]], verdict


def stop_engine_for(process: subprocess.Popen[str], seconds: float) -> None:
    # The process that waits has one child, the engine.
    engine = children(process.pid)[0]
    os.kill(engine, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(engine, signal.SIGCONT)


def test_tun_tells_a_stop_around_a_packet_with_a_bound_that_holds(
    airpath: Airpath, user: User
) -> None:
    if not tun_opens(user):
        pytest.skip(f"{user} may not open /dev/net/tun")
    out, mark, stop_s = airpath.path("run"), airpath.path("mark"), 0.4
    script = (
        "import pathlib, socket, time\n"
        "plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "plain.connect((socket.gethostbyname('server'), 5000))\n"
        "time.sleep(1)\n"
        f"pathlib.Path({str(mark)!r}).touch()\n"
        "time.sleep(0.2)\n"
        "plain.send(b'here')\n"
        "time.sleep(0.6)\n"
    )
    options = ("exec", "--port", "tun", "--delay", "5 ms", "--out", out)
    process = airpath.start(*options, "--", airpath.python, "-c", script, user=user)
    await_true(mark.exists, "the client never began")
    # Nothing is due but one datagram, which comes in the middle of the stop.
    stop_engine_for(process, stop_s)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    results = load_run(out).manifest["results"]
    verdict = results["verdict"]
    assert verdict["grade"] != "trusted", verdict
    assert "late_reads" in [reason["code"] for reason in verdict["reasons"]], verdict
    # It waited for half of the stop at least, where the machine is not loaded.
    assert results["loop"]["longest_unread_ns"] > stop_s / 2 * SECOND


def test_a_link_that_nothing_can_carry_ends_with_its_client(airpath: Airpath, user: User) -> None:
    out, scenario = airpath.path("run"), airpath.file("heavy.toml", HEAVY)
    words = ("--scenario", scenario, "--out", out, "--log", "none")
    begun = time.monotonic()
    result = airpath.run("exec", *words, "--", "sleep", "0.5", user=user).check()
    assert time.monotonic() - begun < 30
    assert "more than a million packets a second" in result.err
    results = load_run(out).manifest["results"]
    assert results["verdict"]["grade"] == "invalid"
    assert "unfinished" in [reason["code"] for reason in results["verdict"]["reasons"]]
    assert results["loop"]["unfinished_ns"] > 100 * MS
    assert results["duration_ns"] + results["loop"]["unfinished_ns"] > 400 * MS


def test_a_signal_ends_a_link_that_nothing_can_carry(airpath: Airpath, any_way: Way) -> None:
    out, scenario = airpath.path("run"), airpath.file("heavy.toml", HEAVY)
    words = ("exec", "--scenario", scenario, "--out", out, "--log", "none", "--", "sleep", "60")
    process = airpath.start(*words, user=any_way.user)
    await_true(lambda: any(line[:1] == ["sleep"] for line in airpath.tree().values()))
    time.sleep(0.3)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert time.monotonic() - begun < 30
    assert process.returncode == 128 + signal.SIGINT


def test_the_trace_of_an_unfinished_run_can_be_replayed(airpath: Airpath, any_way: Way) -> None:
    out, scenario = airpath.path("run"), airpath.file("heavy.toml", HEAVY)
    # So short that the log takes all of it.
    words = ("--scenario", scenario, "--out", out, "--log", "events", "--log-buffer", "1000 MB")
    airpath.run("exec", *words, "--", "true", user=any_way.user).check()
    results = load_run(out).manifest["results"]
    if not results["log"]["complete"]:
        pytest.skip("the disk was too slow for the log of so many packets")
    assert results["loop"]["unfinished_ns"] > 0, results["loop"]
    replayed = airpath.run("replay", out).check()
    assert "identical" in replayed.out + replayed.err


def test_check_warns_of_a_load_that_nothing_can_carry(airpath: Airpath) -> None:
    scenario = airpath.file("heavy.toml", HEAVY)
    result = airpath.run("check", scenario).check()
    assert ": ok (" in result.out
    assert "warning: the background load `browsing` sends more than a million" in result.err
    told = json.loads(airpath.run("check", "--json", scenario).check().out)
    assert told["valid"] is True
    assert len(told["warnings"]) == 1


def test_a_program_cannot_take_the_priority_of_the_engine(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    words = ("exec", "--delay", "1 ms", "--out", out)
    script = "kill -XCPU 1; sleep 0.3"
    result = airpath.run(*words, "--", "sh", "-c", script, user=user).check()
    assert "without sleeping" not in result.err
    record = load_run(out).manifest
    loop = record["results"]["loop"]
    assert loop["demoted_ns"] is None
    outcomes = {entry["name"]: entry["outcome"] for entry in record["privileges"]}
    guarded = outcomes.get("watchdog 500 ms") == "allowed"
    assert loop["false_alarms"] == (1 if guarded else 0), outcomes
