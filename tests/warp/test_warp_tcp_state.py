# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The state of TCP in virtual time: there, and the same for the same seed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import polars as pl

from airpath.run import load_run

if TYPE_CHECKING:
    from airpath.run import Run
    from warp.conftest import Warp


def transfer(warp: Warp, name: str, seed: int) -> Run:
    out = warp.airpath.path(name)
    warp.run(
        "--rate", "1 Mbit/s", "--delay", "50 ms", "--loss", "2%", "--cc", "reno",
        "--tcp-state", "10 ms", "--seed", seed, "--out", out,
        "--server", warp.airpath.server("tcp-server", 4, 5001, warp.airpath.path("counters")),
        "--", *warp.airpath.program("tcp-info-client", 4, 5001, 1, 200_000),
    ).check()  # fmt: skip
    return load_run(out)


def test_the_same_seed_gives_the_same_states(warp: Warp) -> None:
    first, again, other = (transfer(warp, *run) for run in (("a", 3), ("b", 3), ("c", 4)))
    for name in ("tcp.arrow", "client.pcapng", "server.pcapng", "events.arrow"):
        content = (first.directory / name).read_bytes()
        assert (again.directory / name).read_bytes() == content, name
        assert (other.directory / name).read_bytes() != content, name
    sender = first.tcp_state.filter(pl.col("end") == "server")
    assert sender["bytes_acked"].to_numpy().max() >= 200_000
    assert "recovery" in sender["congestion_state"].cast(pl.String).to_list()
    # Virtual time is exact: every sample but the last, at the end of the run, is on the grid, but
    # for the looks at the clock.
    sampled = first.tcp_state.filter(pl.col("source") == "sample")["time_ns"].to_numpy()
    ended = first.manifest["results"]["duration_ns"]
    assert (sampled[sampled < ended - 1_000_000] % 10_000_000 < 1_000_000).all()
    noted = first.manifest["tcp_state"]
    assert (noted["incomplete"], noted["lost"]) == ([], 0)


def test_a_connection_after_an_idle_hour_is_seen_from_its_first_packet(warp: Warp) -> None:
    out = warp.airpath.path("run")
    client = warp.airpath.program("tcp-info-client", 4, 5001, 1, 20_000)
    wait = "sleep 3600.003 && exec " + shlex.join(map(str, client))
    result = warp.run(
        "--rate", "1 Mbit/s", "--delay", "50 ms", "--tcp-state", "10 ms", "--out", out,
        "--server", warp.airpath.server("tcp-server", 4, 5001, warp.airpath.path("counters")),
        "--", "sh", "-c", wait,
    ).check()  # fmt: skip
    run = load_run(out)
    state = run.tcp_state
    first = state.filter(pl.col("end") == "client").row(0, named=True)
    assert first["state"] == "syn_sent"
    assert 3_600 * 10**9 < first["time_ns"] < 3_601 * 10**9
    assert first["time_ns"] % 10_000_000 < 1_000_000
    # Nobody was asked while nothing could change: 360000 samples would be an hour's.
    assert run.manifest["tcp_state"]["samples"] < 3_000
    assert result.seconds < 40


def test_the_tracepoint_is_refused(warp: Warp) -> None:
    out = warp.airpath.path("run")
    result = warp.run("--tcp-state", "probe", "--out", out, "--", "true").check(2)
    assert "is not available with --clock warp" in result.err
