# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Disturbances of a run (stalled disks, engines that run away), and their record."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from airpath.run import load_run
from live.harness import Way, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from live.harness import Airpath, Result, User

MS = 1_000_000
STALL_S = 3.0


def called(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def disk(airpath: Airpath) -> Iterator[Path]:
    """Return the mount point of a file system of its own, which can be frozen."""
    missing = [name for name in ("mkfs.ext4", "fsfreeze", "mount") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"a disk that can be stalled needs root and {', '.join(missing) or 'a mount'}")
    image, mount = airpath.path("disk.img"), airpath.folder("disk")
    with image.open("wb") as file:
        file.truncate(64 << 20)
    made = called("mkfs.ext4", "-q", image)
    assert made.returncode == 0, made.stderr
    mounted = called("mount", "-o", "loop", image, mount)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted from a file here: {mounted.stderr}")
    try:
        yield mount
    finally:
        called("fsfreeze", "--unfreeze", mount)
        await_true(lambda: called("umount", mount).returncode == 0, "it stays mounted", 20)


def traffic(airpath: Airpath, count: int, gap: float) -> tuple[object, ...]:
    """Return the words of a run over 20 ms that sends datagrams there and back."""
    server = airpath.server(
        "datagram-server", 4, "udp", 0, 5000, airpath.path("datagrams"), airpath.path("counters")
    )
    client = airpath.program("datagram-client", 4, "udp", 0, 5000, count, 300, gap, 1)
    return ("--delay", "20 ms", "--server", server, "--", *client)


def manifest(folder: Path) -> dict[str, Any]:
    content = json.loads((folder / "run.json").read_text())
    assert isinstance(content, dict)
    return content


@pytest.mark.alone
def test_a_log_disk_that_stalls_makes_no_packet_late_and_costs_no_record(
    airpath: Airpath, any_way: Way, disk: Path
) -> None:
    out, count = disk / "run", 500
    words = ("--port", any_way.port, "--json", "--out", out, *traffic(airpath, count, 0.01))
    process = airpath.start("exec", *words)
    await_true(lambda: (out / "run.json").exists(), "the run never began")
    time.sleep(0.5)
    frozen = called("fsfreeze", "--freeze", disk)
    assert frozen.returncode == 0, frozen.stderr
    try:
        time.sleep(STALL_S)
        assert process.poll() is None, "it ended before the disk did its work"
    finally:
        called("fsfreeze", "--unfreeze", disk)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    results = manifest(out)["results"]
    assert results["log"]["complete"], results["log"]
    # Whatever had waited for the disk would have been late by most of the stall.
    assert results["timings"]["lateness"]["max_ns"] < STALL_S / 2 * 1e9
    run = load_run(out)
    assert run.path_events("delivered").height == 2 * count
    stalled = run.path_events("delivered")["time_ns"]
    assert stalled.diff().max() < STALL_S / 2 * 1e9  # type: ignore[operator]


def real_time_refused(result: Result) -> bool:
    return "was refused" in result.err


@pytest.mark.alone
def test_an_engine_that_runs_away_loses_its_priority_and_the_run_goes_on(
    airpath: Airpath, any_way: Way
) -> None:
    out = airpath.path("run")
    # It watches the clock while a packet is under way; with stamps, that is, as
    # without them it looks up ten times a second and sleeps before.
    words = ("--out", out, "--policy", "rr:3", "--spin", "5 s", "--delay", "1 s")
    way = Way(any_way.user, "packet")
    result = airpath.exec(way, *words, *traffic(airpath, 3, 0.01)[2:]).check()
    if real_time_refused(result):
        pytest.skip(f"real-time priority is refused here: {result.err}")
    record = manifest(out)
    assert record["settings"]["policy"] == "rr:3"
    assert record["results"]["loop"]["demoted_ns"] > 400 * MS
    assert "at real-time priority without sleeping" in result.err
    outcomes = {entry["name"]: entry["outcome"] for entry in record["privileges"]}
    assert outcomes["SCHED_RR 3"] == outcomes["watchdog 500 ms"] == "allowed"
    summary = result.summary()
    assert summary["uplink"]["delivered_packets"] == 3


def test_commands_inherit_nothing_that_the_engine_asked_for(airpath: Airpath, any_way: Way) -> None:
    script = (
        "ls -l /proc/self/fd; grep 'realtime timeout' /proc/self/limits; "
        "cut -d' ' -f40 /proc/self/stat"
    )
    result = airpath.exec(any_way, "--", "sh", "-c", script).check()
    assert "cpu_dma_latency" not in result.out
    assert result.out.count("unlimited") == 2
    assert result.out.splitlines()[-1] == "0"


def test_the_record_says_what_bore_on_timing(airpath: Airpath, any_way: Way) -> None:
    out = airpath.path("run")
    words = ("--out", out, "--policy", "other", "--wake-latency", "leave", "--log-buffer", "16 MB")
    airpath.exec(any_way, *words, *traffic(airpath, 20, 0.005)).check()
    record = manifest(out)
    assert record["settings"]["policy"] == "other"
    assert 8_000_000 < record["settings"]["log_buffer_bytes"] <= 16_000_000
    names = [entry["name"] for entry in record["privileges"]]
    assert not [name for name in names if name.startswith(("SCHED", "watchdog", "wake latency"))]
    loop = record["results"]["loop"]
    assert loop["demoted_ns"] is None
    assert loop["wake_ups"] > 0
    assert {"minor_faults", "major_faults", "involuntary_switches"} <= loop.keys()
    host = airpath.run("timing", "host", "--json").check()
    now = json.loads(host.out)
    assert now["tick_hz"] == record["host"]["tick_hz"] > 0
    assert now["clock_sources"] == record["host"]["clock_sources"]
    assert now.keys() <= record["host"].keys()
    told = airpath.run("timing", "host").check().out
    assert f"{now['tick_hz']} Hz" in told


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--policy", "deadline", "not a policy; write other, fifo[:PRIORITY] or rr[:PRIORITY]"),
        ("--policy", "fifo:100", "priorities are 1 to 99"),
        ("--wake-latency", "low", "[possible values: hold, leave]"),
        ("--log-buffer", "1 MB", "at least 8 MB"),
        ("--log-buffer", "much", "much"),
    ],
)
def test_bad_settings_are_refused_with_a_way_out(
    airpath: Airpath, option: str, value: str, complaint: str
) -> None:
    result = airpath.run("exec", option, value, "--", "true").check(2)
    assert complaint in result.err


def test_a_refused_priority_is_told_with_a_way_out(airpath: Airpath, rootless: User) -> None:
    result = airpath.run("exec", "--policy", "fifo:5", "--", "true", user=rootless).check()
    if not real_time_refused(result):
        pytest.skip("real-time priority is open to this user")
    assert "rtprio in /etc/security/limits.conf" in result.err
