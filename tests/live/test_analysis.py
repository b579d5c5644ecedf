"""Metrics of live runs: the naive second implementation and tshark on the same captures agree."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest

from agreement import assert_agrees
from airpath.analysis.traffic import Traffic
from airpath.run import load_run

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
    if shutil.which("tshark") is None and not os.environ.get("CI"):
        pytest.skip("tshark is not installed: scripts/system-packages test installs it")
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
    theirs = dict(frames.drop_nulls("ack_rtt").select("time", "ack_rtt").iter_rows())
    ours = traffic.tcp.acknowledgements.filter(pl.col("direction") == "uplink").drop_nulls("rtt_ns")
    assert ours.height > 10
    for time, rtt in ours.select("time_ns", "rtt_ns").iter_rows():
        assert theirs[time + start] == rtt
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


def dissected(path: Path) -> pl.DataFrame:
    """Return what tshark says of each TCP packet."""
    analysis = "tcp.analysis."
    fields = {
        "time": "frame.time_epoch",
        "frame": "frame.len",
        "len": "tcp.len",
        "dstport": "tcp.dstport",
        "retransmission": f"{analysis}retransmission",
        "fast": f"{analysis}fast_retransmission",
        "spurious": f"{analysis}spurious_retransmission",
        "out_of_order": f"{analysis}out_of_order",
        "duplicate": f"{analysis}duplicate_ack",
        "ack_rtt": f"{analysis}ack_rtt",
    }
    words = [word for name in fields.values() for word in ("-e", name)]
    done = subprocess.run(
        ["tshark", "-r", str(path), "-Y", "tcp", "-T", "fields", "-E", "occurrence=f", *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    text = pl.DataFrame(rows, schema=dict.fromkeys(fields, pl.String), orient="row")
    flags = [pl.col(name) != "" for name in ("retransmission", "fast", "spurious", "duplicate")]
    return text.with_columns(
        pl.col("time").map_elements(_nanoseconds, return_dtype=pl.Int64),
        pl.col("frame").cast(pl.Int64),
        pl.col("len").cast(pl.Int64),
        pl.col("dstport").cast(pl.Int64),
        pl.when(pl.col("ack_rtt") != "").then(
            pl.col("ack_rtt").map_elements(_nanoseconds, return_dtype=pl.Int64)
        ),
        *flags,
        again=(pl.col("retransmission") != "") | (pl.col("out_of_order") != ""),
    )


def _nanoseconds(seconds: str) -> int:
    whole, _, fraction = seconds.partition(".")
    return int(whole or 0) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9] or 0)
