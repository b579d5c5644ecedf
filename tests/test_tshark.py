# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of TCP against tshark, and counts in the manner of tcptrace, on runs in virtual time."""

from __future__ import annotations

import subprocess
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.analysis import find, frame
from airpath.analysis.traffic import Traffic
from airpath.engine import find_engine
from airpath.run import load_run
from dissected import conversations, dissected, need_tshark, only_from
from naive.tcptrace import arrived_in_vain, tcptrace

if TYPE_CHECKING:
    from pathlib import Path

LINKS = {
    "losses": ("--loss", "2%"),
    "disorder": ("--loss", "1%", "--reorder", "2% 30 ms"),
    "congestion": ("--queue", "8 packets"),
}


@pytest.fixture(scope="module", params=LINKS, ids=str)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with a download and an upload, one after the other."""
    need_tshark()
    folder = tmp_path_factory.mktemp(request.param) / "run"
    workloads = [
        "--workload=tcp bytes=150000 from=server cc=cubic",
        "--workload=tcp bytes=100000 from=client cc=reno start=5s",
    ]
    subprocess.run(
        [
            *(str(find_engine()), "sim", "--quiet", "--seed", "3", "--out", str(folder)),
            *("--rate", "2 Mbit/s", "--delay", "20 ms", *LINKS[request.param], *workloads),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


@cache
def values(folder: Path) -> dict[tuple[str, str, str], float]:
    table = frame(find([folder]), ["all"])
    keys = ("metric", "flow", "direction")
    return {tuple(row[key] for key in keys): row["value"] for row in table.iter_rows(named=True)}


WAYS = (("tcp-1", "downlink", 0), ("tcp-2", "uplink", 1))
SENDER = {"uplink": "client", "downlink": "server"}
RECEIVER = {"uplink": "server", "downlink": "client"}


def test_tshark_dissects_the_same(folder: Path, tmp_path: Path) -> None:
    found = values(folder)
    start = load_run(folder).start_unix_ns
    frames = {end: dissected(folder / f"{end}.pcapng") for end in ("client", "server")}
    traffic = Traffic(load_run(folder))
    lost_segments = 0
    for flow, direction, stream in WAYS:
        mine = {end: part.filter(pl.col("stream") == stream) for end, part in frames.items()}
        begun = min(part["time"].min() for part in mine.values())  # type: ignore[type-var]
        ended = max(part["time"].max() for part in mine.values())  # type: ignore[type-var]
        assert isinstance(begun, int)
        assert isinstance(ended, int)
        assert found["flow_elapsed_time", flow, direction] == pytest.approx((ended - begun) / 1e9)
        # In virtual time the end of the handshake is sent at the instant at which it is due.
        initial = mine["client"]["initial_rtt"].drop_nulls().unique().to_list()
        assert initial == [pytest.approx(1e9 * found["connection_setup_time", flow, ""])]
        sent = mine[SENDER[direction]]
        arrived = mine[RECEIVER[direction]]
        port = sent.filter(pl.col("len") > 0)["srcport"][0]
        data = arrived.filter((pl.col("len") > 0) & (pl.col("srcport") == port))
        first = data["time"].min()
        assert isinstance(first, int)
        assert found["time_to_first_byte", flow, direction] == pytest.approx((first - begun) / 1e9)
        # Where tshark misses a segment, one arrived that begins beyond the highest before it.
        received = traffic.tcp.received.filter(
            (pl.col("direction") == direction) & (pl.col("flow") == stream)
        )
        gaps = received.filter(pl.col("first") > pl.col("end").cum_max().shift(1).fill_null(0))
        missed = data.filter("lost_segment")["time"].to_list()
        assert missed == [time + start for time in gaps["time_ns"]]
        lost_segments += len(missed)
        # What arrives below the highest is disorder or repetition to tshark, by its age.
        # Seen without the answers, which may be stamped before what they answer.
        one_way = only_from(
            folder / f"{RECEIVER[direction]}.pcapng", port, tmp_path / f"{flow}.pcapng"
        )
        alone = dissected(one_way).filter(pl.col("len") > 0)
        below = alone.filter(pl.any_horizontal("again", "fast", "spurious")).height
        ours = ("out_of_order_segments", "duplicate_segments")
        assert below == sum(found[name, flow, direction] for name in ours)
    assert lost_segments > 0


def test_conversations_have_the_same_frames(folder: Path) -> None:
    found = values(folder)
    flows = Traffic(load_run(folder)).flows
    for end in ("client", "server"):
        rows = conversations(folder / f"{end}.pcapng")
        assert len(rows) == flows.height
        for row in rows:
            client_first = pl.format("{}:{}", "client", "client_port") == row["a"]
            server_first = pl.format("{}:{}", "server", "server_port") == row["a"]
            (of,) = flows.filter(client_first | server_first).iter_rows(named=True)
            from_client = f"{of['client']}:{of['client_port']}" == row["a"]
            counts = {
                "uplink": int(row["to_b" if from_client else "to_a"]),
                "downlink": int(row["to_a" if from_client else "to_b"]),
            }
            for direction, count in counts.items():
                kind = "offered" if SENDER[direction] == end else "delivered"
                copies = found["flow_duplicates", of["label"], direction]
                expected = found[f"flow_packets_{kind}", of["label"], direction]
                assert count == expected + (copies if kind == "delivered" else 0)


def test_counts_in_the_manner_of_tcptrace(folder: Path) -> None:
    found = values(folder)
    run = load_run(folder)
    repaired = 0.0
    for flow, direction, stream in WAYS:
        theirs = tcptrace(folder, run.start_unix_ns, stream, SENDER[direction], direction)
        for name, count in theirs.items():
            assert found[name, flow, direction] == pytest.approx(count, rel=1e-12), name
        repaired += theirs["retransmitted_segments"]
    assert repaired > 0


def test_spurious_retransmissions_are_those_that_arrive_in_vain(folder: Path) -> None:
    """Judge by the receiver's capture alone, as a receiver that sends DSACK would (RFC 2883)."""
    found = values(folder)
    run = load_run(folder)
    for flow, direction, stream in WAYS:
        vain = arrived_in_vain(folder, run.start_unix_ns, stream, direction)
        # A spurious one that was lost itself reports nothing.
        sent = Traffic(run).tcp.sent.filter(
            (pl.col("direction") == direction) & (pl.col("flow") == stream)
        )
        spurious = sent.filter("spurious")
        arrived = set(spurious.filter("arrived")["pdu"])
        overtaken = set(sent.filter("late")["pdu"])
        # What was overtaken by its repetition arrives in vain in the repetition's place.
        assert arrived - overtaken <= vain
        assert len(vain) == found["duplicate_segments", flow, direction]
        assert len(vain) >= len(arrived - overtaken)
