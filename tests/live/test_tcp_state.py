# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The state of TCP that is recorded, against what sockets and the link say."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.plots import tcp_state
from airpath.plots.style import Span
from airpath.run import TCP_STATE_COLUMNS, load_run
from airpath.status import LACKING

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.run import Run
    from live.harness import Airpath, User

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND


def transfer(
    airpath: Airpath,
    user: User,
    *options: object,
    up: int = 1,
    down: int = 200_000,
    family: str = "4",
    tells: bool = True,
) -> tuple[Run, dict[str, object]]:
    """Fetch data over a link; return the run, and the client's last TCP_INFO of a quiet moment."""
    out = airpath.path("run")
    program = "tcp-info-client" if tells else "tcp-client"
    result = airpath.run(
        "exec", "--quiet", "--seed", 5, "--cc", "reno", "--out", out, *options,
        "--server", airpath.server("tcp-server", family, 5001, airpath.path("counters")),
        "--", *airpath.program(program, family, 5001, up, down),
        user=user,
    ).check()  # fmt: skip
    return load_run(out), json.loads(result.out)


@pytest.mark.parametrize("family", ["4", "6"])
def test_the_rows_say_what_the_socket_itself_says(
    airpath: Airpath, user: User, family: str
) -> None:
    run, told = transfer(
        airpath, user, "--rate", "4 Mbit/s", "--delay", "10 ms", "--loss", "0%,1%",
        up=100_000, down=1000, family=family,
    )  # fmt: skip
    rows = run.tcp_state
    assert dict(rows.schema) == TCP_STATE_COLUMNS
    client = rows.filter((pl.col("end") == "client") & (pl.col("source") == "sample"))
    # At the moment of the socket's own answer the connection had been quiet for some intervals.
    last = client.filter(pl.col("state") == "established").row(-1, named=True)
    same = {
        "cwnd": "cwnd", "mss": "mss", "total_retrans": "total_retrans",
        "bytes_acked": "bytes_acked", "bytes_received": "bytes_received", "snd_wnd": "snd_wnd",
        "delivered": "delivered",
    }  # fmt: skip
    assert {name: last[name] for name in same} == {name: told[key] for name, key in same.items()}
    assert last["srtt_ns"] == int(str(told["srtt_us"])) * 1000
    assert last["rto_ns"] == int(str(told["rto_us"])) * 1000
    assert last["unacked"] == 0
    assert last["congestion_control"] == "reno"
    assert last["bytes_acked"] > 100_000
    noted = run.manifest["tcp_state"]
    assert noted["rows"] == rows.height
    assert noted["interval_ns"] == 10 * MILLISECOND
    assert (noted["sockets"], noted["refused"], noted["incomplete"]) == (2, [], [])
    # Each socket ends with the kernel's word that it was closed, or in the middle of closing: the
    # run ends with the programs, and what they closed last may still be under way.
    closing = {"fin_wait_1", "fin_wait_2", "closing", "close_wait", "last_ack"}
    for socket in (1, 2):
        ended = rows.filter(pl.col("socket") == socket).row(-1, named=True)
        assert ended["source"] == "closed" or ended["state"] in closing, ended
    assert rows["time_ns"].is_sorted()


def test_rows_join_with_events_and_captures(airpath: Airpath, user: User) -> None:
    run, _ = transfer(airpath, user, "--rate", "2 Mbit/s", "--delay", "20 ms", down=50_000)
    rows = run.tcp_state
    client = rows.filter(pl.col("end") == "client").row(0, named=True)
    server = rows.filter(pl.col("end") == "server").row(0, named=True)
    assert client["flow"] == server["reverse_flow"]
    assert client["reverse_flow"] == server["flow"]
    flows = {
        direction: run.events.filter((pl.col("direction") == direction) & (pl.col("flow") != 0))[
            "flow"
        ].unique()
        for direction in ("uplink", "downlink")
    }
    assert client["flow"] in flows["uplink"]
    assert server["flow"] in flows["downlink"]
    # What the server has got acknowledged cannot be ahead of what left the link by then.
    acked = rows.filter(pl.col("end") == "server").select("time_ns", "bytes_acked").drop_nulls()
    came = run.path_events("delivered").filter(pl.col("direction") == "downlink")
    for time_ns, number in acked.iter_rows():
        delivered = came.filter(pl.col("time_ns") <= time_ns)["bits"].sum() // 8
        assert number <= delivered + 1
    assert rows["time_ns"].to_numpy().max() <= run.duration_ns


def test_a_drop_halves_the_window_of_reno(airpath: Airpath, rootless: User) -> None:
    # A queue of 12 packets ends slow start by a drop or several.
    run, _ = transfer(
        airpath, rootless, "--rate", "4 Mbit/s", "--delay", "25 ms", "--queue", "12 packets",
        down=1_500_000, tells=False,
    )  # fmt: skip
    assert not run.drops().is_empty()
    sender = run.tcp_state.filter((pl.col("end") == "server") & pl.col("cwnd").is_not_null())
    assert sender["ssthresh"][0] is None, "no threshold before the first loss"
    states = sender["congestion_state"].cast(pl.String).to_list()
    assert "recovery" in states
    first = states.index("recovery")
    before = sender["cwnd"].head(first).to_numpy().max()
    threshold = sender["ssthresh"][first]
    # Between the newest sample and the loss the window may have grown, at most to twice as much.
    assert before / 2 - 1 <= threshold <= before + 1
    after = sender.slice(first).filter(pl.col("congestion_state") == "open")
    assert after["cwnd"][0] <= threshold + 2
    assert after["total_retrans"].to_numpy().max() > 0


def test_a_blackout_doubles_the_timeout(airpath: Airpath, rootless: User) -> None:
    run, _ = transfer(
        airpath, rootless, "--rate", "2 Mbit/s", "--delay", "20 ms",
        "--blackout", "500 ms,2 s,drop", down=400_000, tells=False,
    )  # fmt: skip
    sender = run.tcp_state.filter(pl.col("end") == "server")
    dark = sender.filter(pl.col("time_ns").is_between(500 * MILLISECOND, 2500 * MILLISECOND))
    states = dark["congestion_state"].cast(pl.String).to_list()
    assert "loss" in states
    timeouts = dark.filter(pl.col("congestion_state") == "loss")
    assert timeouts["backoff"].to_numpy().max() >= 2
    assert timeouts["cwnd"].to_numpy().min() == 1
    doubled = timeouts.unique("backoff", keep="first", maintain_order=True)
    steps = doubled.filter(pl.col("backoff") > 0)["rto_ns"].to_list()
    assert all(later == 2 * earlier for earlier, later in pairwise(steps))
    [picture] = [
        picture for picture in tcp_state.draw(run, Span()) if picture.name.endswith("server")
    ]
    labels = picture.figure.axes[0].get_legend_handles_labels()[1]
    assert "timeout recovery" in labels
    assert any("retransmission" in label for label in labels)


def test_short_connections_leave_their_last_values(airpath: Airpath, rootless: User) -> None:
    run, _ = transfer(airpath, rootless, "--tcp-state", "1 h", down=3000, tells=False)
    rows = run.tcp_state
    assert set(rows["source"].cast(pl.String)) <= {"closed", "sample"}
    server = rows.filter((pl.col("end") == "server") & (pl.col("source") == "closed"))
    assert server.height == 1
    assert server["bytes_acked"][0] >= 3000


def test_the_log_command_shows_rows(airpath: Airpath, rootless: User) -> None:
    run, _ = transfer(airpath, rootless, down=20_000)
    table = airpath.run("log", run.directory, "--tcp").check().out.splitlines()
    assert table[0].split()[:3] == ["time/s", "end", "socket"]
    assert len(table) == run.tcp_state.height + 1
    lines = airpath.run("log", run.directory, "--tcp", "--json").check().out.splitlines()
    parsed = [json.loads(line) for line in lines]
    assert list(parsed[0]) == list(TCP_STATE_COLUMNS)
    assert [row["cwnd"] for row in parsed] == run.tcp_state["cwnd"].to_list()
    middle = parsed[len(parsed) // 2]["time_ns"]
    shown = airpath.run("log", run.directory, "--tcp", "--json", "--from", f"{middle} ns").check()
    assert len(shown.out.splitlines()) == sum(row["time_ns"] >= middle for row in parsed)
    replayed = airpath.run("replay", run.directory)
    assert replayed.status == 0, replayed.err


def test_off_and_mistakes(airpath: Airpath, rootless: User) -> None:
    run, _ = transfer(airpath, rootless, "--tcp-state", "off", down=2000, tells=False)
    assert not (run.directory / "tcp.arrow").exists()
    assert run.tcp_state.is_empty()
    assert dict(run.tcp_state.schema) == TCP_STATE_COLUMNS
    assert "tcp_state" not in run.manifest
    refused = airpath.run("log", run.directory, "--tcp")
    assert refused.status != 0
    assert "without the state of TCP" in refused.err
    for words, reason in (
        (("--tcp-state", "often"), "off, or probe"),
        (("--tcp-state", "10 us"), "too short"),
        (("--tcp-state", "10 ms"), "add --out DIR"),
    ):
        result = airpath.run("exec", *words, "--", "true", user=rootless).check(2)
        assert reason in result.err


def test_probe_without_root_is_refused_and_leaves_nothing(airpath: Airpath, rootless: User) -> None:
    if os.geteuid() == 0 and rootless.name == "root":
        pytest.skip("nobody else than root to be")
    out = airpath.path("run")
    result = airpath.run(
        "exec", "--tcp-state", "probe", "--out", out, "--", "true", user=rootless
    ).check(LACKING)
    assert "--tcp-state probe:" in result.err
    assert "--tcp-state '1 ms'" in result.err
    assert not out.exists()


def may_probe(airpath: Airpath) -> str:
    """Return why the tracepoint cannot be had here; nothing if it can."""
    words = ("exec", "--quiet", "--tcp-state", "probe", "--out", airpath.path("try"), "--", "true")
    result = airpath.run(*words)
    return "" if result.status == 0 else result.err


def test_probe_tells_of_every_acknowledgement(airpath: Airpath, user: User) -> None:
    if user.name != "root":
        pytest.skip("the tracepoint is root's")
    if reason := may_probe(airpath):
        pytest.skip(reason)
    run, _ = transfer(
        airpath, user, "--tcp-state", "probe", "--rate", "4 Mbit/s", "--delay", "10 ms",
        down=200_000, tells=False,
    )  # fmt: skip
    rows = run.tcp_state
    acks = rows.filter((pl.col("source") == "ack") & (pl.col("end") == "server"))
    assert run.manifest["tcp_state"]["lost"] == 0
    # One row for each packet of the client's that reached the established socket.
    packets = run.path_events("delivered").filter(pl.col("direction") == "uplink").height
    assert packets - 4 <= acks.height <= packets
    una = acks["snd_una"].to_numpy().astype("int64")
    assert (una[1:] >= una[:-1]).all() or una.min() < 1 << 20, "acknowledgements move on"
    assert acks["cwnd"].null_count() == 0
    assert rows["time_ns"].is_sorted()
    came = run.path_events("delivered").filter(pl.col("direction") == "uplink")
    joined = acks.select("time_ns").join_asof(
        came.select("time_ns", left_ns="emitted_ns"), on="time_ns"
    )
    late = (joined["time_ns"] - joined["left_ns"]).drop_nulls()
    assert sorted(late.to_list())[late.len() // 2] < 50 * MILLISECOND


def test_a_killed_run_keeps_what_was_written(airpath: Airpath, rootless: User) -> None:
    from live.harness import await_true, end_process

    out: Path = airpath.path("run")
    process = airpath.start(
        "exec", "--rate", "1 Mbit/s", "--out", out,
        "--server", airpath.server("tcp-server", 4, 5001, airpath.path("counters")),
        "--", *airpath.program("tcp-client", 4, 5001, 1, 10_000_000),
        user=rootless,
    )  # fmt: skip
    try:
        log = out / "tcp.arrow"
        await_true(lambda: log.exists() and log.stat().st_size > 30_000, "no rows came")
    finally:
        end_process(process)
        process.communicate()
    airpath.wait_until_gone()
    run = load_run(out)
    assert run.tcp_state.height > 10
    assert any("tcp.arrow" in note for note in run.notes)
    shown = airpath.run("log", out, "--tcp").check()
    assert "is still active or was killed" in shown.err
