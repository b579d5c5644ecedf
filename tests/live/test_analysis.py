# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of live runs: the naive second implementation and tshark on the same captures agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from agreement import assert_agrees
from airpath.analysis.traffic import Traffic
from airpath.run import load_run
from dissected import dissected, need_tshark

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, Way

LINKS = {
    "cubic-losses": ("--loss", "2%", "--cc", "cubic"),
    "reno-disorder": (
        *("--loss", "1%", "--reorder", "2% 30 ms", "--duplicate", "2%", "--cc", "reno"),
    ),
    "blackout": ("--loss", "0.5%", "--blackout", "500 ms, 1 s, store"),
}
SIZE = 200_000


@pytest.fixture(params=LINKS, ids=str)
def folder(request: pytest.FixtureRequest, airpath: Airpath, any_way: Way) -> Path:
    """Return the folder of an upload over a link with errors."""
    out = airpath.path("run")
    airpath.exec(
        any_way,
        *("--rate", "2 Mbit/s", "--delay", "20 ms", "--queue", "30 packets", "--seed", 5),
        *LINKS[request.param],
        *("--out", out, "--server", "airpath recv --once"),
        *("--", "airpath", "send", "server", "--bytes", SIZE),
    ).check()
    return out


def test_the_naive_way_and_tshark_agree(folder: Path) -> None:
    found = assert_agrees(folder)
    assert found["received_bytes", "tcp-1", "", "uplink"] >= SIZE
    need_tshark()
    frames = dissected(folder / "client.pcapng")
    data = frames.filter((pl.col("len") > 0) & (pl.col("dstport") == 5201))
    traffic = Traffic(load_run(folder))
    sent = traffic.tcp.sent.filter(pl.col("direction") == "uplink")
    # Conversations: frames and bytes of both directions at the client.
    seen = traffic.captured.filter((pl.col("end") == "client") & (pl.col("protocol") == 6))
    assert frames.height == seen.height
    assert frames["frame"].sum() == seen["length"].sum()
    assert data["len"].sum() == found["sent_bytes", "tcp-1", "", "uplink"]
    # What tshark takes for disorder, since it came soon, the sender itself has sent again.
    again = data.filter(pl.col("again"))["time"].to_list()
    start = traffic.run.start_unix_ns
    repaired = sent.filter("retransmission")["time_ns"].to_list()
    assert sorted(again) == [time + start for time in repaired]
    assert set(data.filter("fast")["time"]) <= set(again)
    # A round trip that Karn's rule allows is tshark's for the same acknowledgement.
    # The pairs are compared: several acknowledgements that a blackout held come at one instant.
    theirs = set(frames.drop_nulls("ack_rtt").select("time", "ack_rtt").iter_rows())
    ours = traffic.tcp.acknowledgements.filter(pl.col("direction") == "uplink").drop_nulls("rtt_ns")
    assert ours.height > 10
    for time, rtt in ours.select("time_ns", "rtt_ns").iter_rows():
        assert (time + start, rtt) in theirs
    # Its duplicates have the same window; acknowledgements with SACK blocks count here besides.
    acks = traffic.tcp.acknowledgements.filter(
        (pl.col("direction") == "uplink") & pl.col("duplicate")
    )
    duplicates = {time - start for time in frames.filter("duplicate")["time"]}
    # Nor does it ask whether an acknowledgement is an old one, or whether data are outstanding.
    heard = traffic.tcp.acknowledgements.filter(pl.col("direction") == "uplink")
    others = heard.filter(pl.col("time_ns").is_in(duplicates - set(acks["time_ns"])))
    for time, number, highest in others.select("time_ns", "number", "acknowledged").iter_rows():
        before = sent.filter(pl.col("time_ns") <= time)["end"].max()
        assert number < highest or before is None or number >= before


HARD = {
    "losses": ("--loss", "8%", "--cc", "reno"),
    "blackout": ("--loss", "3%", "--blackout", "700 ms, 900 ms, drop"),
}


@pytest.mark.parametrize("link", HARD.values(), ids=HARD)
def test_timeouts_are_those_that_the_kernel_counted(
    airpath: Airpath, any_way: Way, link: tuple[str, ...]
) -> None:
    out = airpath.path("run")
    counters = "airpath send server --bytes 200000 >&2; cat /proc/net/netstat"
    result = airpath.exec(
        any_way,
        *("--rate", "2 Mbit/s", "--delay", "20 ms", "--queue", "30 packets", "--seed", 9),
        *(*link, "--out", out, "--server", "airpath recv --once"),
        *("--", "sh", "-c", counters),
    ).check()
    names, amounts = (
        line.split()[1:] for line in result.out.splitlines() if line.startswith("TcpExt:")
    )
    kernel = dict(zip(names, map(int, amounts), strict=True))
    traffic = Traffic(load_run(out))
    timeouts = traffic.tcp.sent.filter(pl.col("kind") == "timeout").height
    at_client = traffic.captured.filter((pl.col("end") == "client") & pl.col("sent"))
    # The kernel's timer repeats a SYN, or a FIN without data, as well.
    syns = at_client.filter(pl.col("flags") & 2 > 0).height - 1
    fins = at_client.filter((pl.col("flags") & 1 > 0) & (pl.col("payload") == 0)).height
    least = kernel["TCPTimeouts"] - syns - max(0, fins - 1)
    # A probe that repeats the only segment outstanding looks like a timeout.
    assert least <= timeouts <= kernel["TCPTimeouts"] + kernel["TCPLossProbes"], kernel
