# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Errors from files, and packets that are cut short: in virtual time, live, and played again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.run import Run, load_run
from live.programs import datagram
from live.test_corruption import FAMILIES, datagrams
from live.test_replay import changed, rewrite

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, User, Way

USAGE = 2
INVALID = 1
DIFFERENT = 1

SCENARIO = """
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
[hops.uplink]
errors = { type = "trace", file = "traces/walk", per = "packet" }

[[hops]]
name = "core"
[hops.uplink]
errors = { type = "positions", file = "more/walk", per = "packet", effect = "corrupt" }

[[states]]
name = "later"
at = "500 ms"
set = { "radio.uplink.errors" = { type = "pattern", burst = 2, every = 5, offset = 1 } }
"""
WALK = "# a short walk\nok 2\nlost 3\ntruncated 100\nflipped 300 400-402\nok 3\n"
CBR = 'cbr interval="10 ms" size=200 packets=100 from=client'


def scenario(airpath: Airpath) -> Path:
    """Write the scenario and its files; return its path."""
    path = airpath.path("scenario.toml")
    path.write_text(SCENARIO)
    for folder, text in (("traces", WALK), ("more", "7 20-21\n")):
        (path.parent / folder).mkdir()
        (path.parent / folder / "walk").write_text(text)
    return path


def delivered(run: Run) -> list[int]:
    """Return the places of the uplink's delivered packets in the order of sending, from 0."""
    offered = run.path_events("offered").filter(pl.col("direction") == "uplink")["pdu"].to_list()
    rows = run.path_events("delivered").filter(pl.col("direction") == "uplink")["pdu"].to_list()
    return [offered.index(pdu) for pdu in rows]


def lost_outside(run: Run) -> list[str]:
    """Return whether the kernel refused packets; how late it all was does not matter."""
    found = run.results["verdict"]["reasons"]
    return [reason["code"] for reason in found if reason["code"] == "outside_drops"]


def test_a_run_keeps_the_files_of_its_scenario(airpath: Airpath, user: User) -> None:
    path, out = scenario(airpath), airpath.path("run")
    printed = airpath.run("exec", "--scenario", path, "--print-scenario", user=user).check().out
    assert 'file = "traces/walk"' in printed
    airpath.run("check", path, user=user).check()
    airpath.run(
        "sim", "--scenario", path, "--workload", CBR, "--out", out, user=user
    ).check()  # fmt: skip
    kept = {file.name: file.read_text() for file in (out / "files").iterdir()}
    assert kept == {"walk": WALK, "walk-2": "7 20-21\n"}
    text = json.loads((out / "run.json").read_text())["scenario_toml"]
    assert 'file = "files/walk"' in text
    assert 'file = "files/walk-2"' in text
    # Half a second of the trace, ten packets long; then two of every five.
    first = [n for n in range(50) if n % 10 not in (2, 3, 4)]
    second = [50 + n for n in range(50) if n == 0 or (n - 1) % 5 > 1]
    assert delivered(load_run(out)) == first + second
    # Nothing but the folder is needed any more.
    for folder in ("traces", "more"):
        (path.parent / folder / "walk").unlink()
    assert airpath.run("replay", out, user=user).check().out.startswith("identical: ")
    again = airpath.path("again")
    airpath.run("replay", out, "--out", again, user=user).check()
    assert {file.name: file.read_text() for file in (again / "files").iterdir()} == kept
    assert airpath.run("replay", again, user=user).check().out.startswith("identical: ")
    # What is left of a packet is compared, and a trace that somebody changed is found out.
    events = again / "events.arrow"
    row = pl.read_ipc(events)["kept_bytes"].to_list().index(100)
    rewrite(events, lambda table: changed(table, "kept_bytes", row, 99))
    result = airpath.run("replay", again, user=user)
    assert result.status == DIFFERENT
    assert "kept_bytes is 99 in the log and 100 in the replay" in result.out + result.err
    (out / "files" / "walk").write_text(WALK.replace("truncated 100", "truncated 99"))
    result = airpath.run("replay", out, user=user)
    assert result.status == DIFFERENT
    assert "`truncated`" in result.out + result.err
    (out / "files" / "walk").write_text("ok\nlots\n")
    result = airpath.run("replay", out, user=user)
    assert result.status == USAGE
    assert "radio.uplink.errors.file: `files/walk` is no error trace: line 2: `lots`" in result.err


def test_a_missing_file_is_told_before_anything_is_made(airpath: Airpath) -> None:
    path, out = scenario(airpath), airpath.path("run")
    (path.parent / "more" / "walk").unlink()
    sim = ("sim", "--scenario", path, "--workload", CBR, "--out", out)
    for words, status in ((("check", path), INVALID), (sim, USAGE)):
        result = airpath.run(*words)
        assert result.status == status
        assert f"{path}:12:" in result.err
        assert "core.uplink.errors.file: cannot read" in result.err
    assert not out.exists()


def test_a_truncated_packet_is_in_every_file(airpath: Airpath) -> None:
    path, out = scenario(airpath), airpath.path("run")
    airpath.run("sim", "--scenario", path, "--workload", CBR, "--out", out).check()
    run = load_run(out)
    cut = run.events.filter(pl.col("kind") == "truncated")
    # The sixth of every ten packets, until the trace is over; what the far hop does comes on top.
    assert cut["bits"].to_list() == [800] * 5
    events = pl.read_ipc(out / "events.arrow")
    rows = events.filter(pl.col("kept_bytes").is_not_null())
    assert rows["pdu"].to_list() == cut["pdu"].to_list()
    assert rows["kept_bytes"].to_list() == [100] * 5
    assert rows["kind"].unique().to_list() == ["delivered"]
    assert (out / "server.pcapng").read_bytes().count(b"truncated: 100 of 200 bytes left") == 5
    said = airpath.run("log", out, "--tcpdump").check().out
    assert said.count("truncated to 100 bytes, delivered after") == 5
    summary = airpath.run("sim", "--scenario", path, "--workload", CBR, "--json").check().out
    assert json.loads(summary)["uplink"]["truncated_packets"] == 5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kernel_drops_what_is_cut(airpath: Airpath, port_way: Way, family: str) -> None:
    errors = (
        'radio.uplink.errors={ type = "pattern", burst = 2, every = 5, offset = 3, '
        'effect = "truncate", kept = "100 bytes" }'
    )
    received, kernel, run = datagrams(airpath, port_way, family, "udp", 0, "--set", errors)
    cut = run.events.filter((pl.col("kind") == "truncated") & (pl.col("direction") == "uplink"))
    assert cut["bits"].unique().to_list() == [800]
    assert 150 < cut.height < 170
    key = "IpExt.InTruncatedPkts" if family == "4" else "Ip6InTruncatedPkts"
    assert kernel[key] == cut.height
    # The datagrams are the uplink's only packets, so that they are in step with the pattern.
    assert received == [datagram(n, 500) for n in range(400) if n < 3 or (n - 3) % 5 > 1]
    assert lost_outside(run) == []
    content = (run.directory / "server.pcapng").read_bytes()
    assert content.count(b"bytes left") == cut.height
    result = airpath.run("replay", run.directory, user=port_way.user)
    assert result.check().out.startswith("identical: ")


def test_cuts_of_every_length_do_no_harm(airpath: Airpath, any_way: Way) -> None:
    errors = (
        'radio.uplink.errors={ type = "bernoulli", probability = 0.5, effect = "truncate", '
        'kept = { type = "uniform", from = "0 bytes", to = "60 bytes" } }'
    )
    received, _, run = datagrams(airpath, any_way, "4", "udp", 0, "--set", errors)
    sent = {datagram(number, 500) for number in range(400)}
    assert 100 < len(received) < 300
    assert all(data in sent for data in received)
    assert lost_outside(run) == []


def test_a_live_run_keeps_its_files(airpath: Airpath, port_way: Way) -> None:
    path = airpath.path("errors")
    path.write_text("# one of four radio blocks\n0100\n")
    errors = f'radio.uplink.errors={{ type = "trace", file = "{path}" }}'
    received, _, run = datagrams(airpath, port_way, "4", "udp", 0, "--set", errors)
    assert received == [datagram(n, 500) for n in range(400) if n % 4 != 1]
    assert (run.directory / "files" / "errors").read_text() == path.read_text()
    path.unlink()
    result = airpath.run("replay", run.directory, user=port_way.user)
    assert result.check().out.startswith("identical: ")
