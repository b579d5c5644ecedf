"""The state of TCP in virtual time: there, and the same for the same seed."""

from __future__ import annotations

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
    # Virtual time is exact: every sample but those at closed sockets is on the grid, but for the
    # looks at the clock.
    sampled = first.tcp_state.filter(pl.col("source") == "sample")["time_ns"].to_numpy()
    assert (sampled % 10_000_000 < 1_000_000).all()
    noted = first.manifest["tcp_state"]
    assert (noted["incomplete"], noted["lost"]) == ([], 0)


def test_the_tracepoint_is_refused(warp: Warp) -> None:
    out = warp.airpath.path("run")
    result = warp.run("--tcp-state", "probe", "--out", out, "--", "true").check(2)
    assert "does not go with --clock warp" in result.err
