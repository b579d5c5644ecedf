# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Marks of queue management reach the real kernel, which answers to them as to losses."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import polars as pl
import pytest

import pcapng
from airpath.arrow import read_arrow_log
from airpath.run import load_run

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, Way

UPLOAD_BYTES = 2_500_000
ECT0 = 2
CE = 3

QUEUES = {
    "codel": '{ type = "codel", ecn = true, limit = "1000 packets" }',
    "red": '{ type = "red", min = "10 packets", max = "40 packets", probability = 0.05, '
    'weight = 0.05, packet_time = "1500 us", gentle = true, ecn = true, limit = "1000 packets" }',
}

# A first SYN that is not answered within a second is sent again, on a busy machine also where
# nothing was lost, and the kernel would then do without ECN.
ECN_ON = (
    "echo 1 > /proc/sys/net/ipv4/tcp_ecn && echo 0 > /proc/sys/net/ipv4/tcp_ecn_fallback && "
    'exec "$@"'
)


def ecn_field(packet: bytes) -> int:
    """Return the ECN field of an IP packet, whose IPv4 header checksum has to be right."""
    if packet[0] >> 4 == 6:
        return packet[1] >> 4 & 3
    words = [int.from_bytes(packet[at : at + 2]) for at in range(0, (packet[0] & 15) * 4, 2)]
    total = sum(words)
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF, packet[:20].hex()
    return packet[1] & 3


def marked_in(capture: Path) -> set[int]:
    """Return which packets left with CE; their comments have to say so."""
    content = capture.read_bytes()
    sent = [packet for packet in pcapng.packets(content) if packet.interface == 1]
    marked = {packet.pdu for packet in sent if ecn_field(packet.content) == CE}
    assert content.count(b"marked: congestion experienced") == len(marked)
    return marked


@pytest.mark.parametrize("family", ["4", "6"])
@pytest.mark.parametrize("queue", QUEUES)
def test_tcp_sees_marks_and_no_drops(
    airpath: Airpath, port_way: Way, queue: str, family: str
) -> None:
    out, report = airpath.path("run"), airpath.path("counters")
    sh = ["sh", "-c", ECN_ON, "sh"]
    server = shlex.join([*sh, *airpath.program("tcp-server", family, 5000, report)])
    client = [*sh, *airpath.program("tcp-client", family, 5000, UPLOAD_BYTES, 1000)]
    result = airpath.exec(
        port_way, "--rate", "8 Mbit/s", "--delay", "10 ms",
        "--set", f"radio.uplink.queue={QUEUES[queue]}",
        "--out", out, "--log", "packets", "--server", server, "--", *client,
    ).check()  # fmt: skip

    events = load_run(out).events.filter(pl.col("direction") == "uplink")
    marked = events.filter(pl.col("kind") == "marked")["pdu"].to_list()
    dropped = events.filter(pl.col("kind") == "dropped")["pdu"].to_list()
    delivered = set(events.filter(pl.col("kind") == "delivered")["pdu"].to_list())
    offers = read_arrow_log(out / "input.arrow").frame.filter(pl.col("ecn").is_not_null())
    capable = set(offers.filter(pl.col("ecn") == ECT0)["pdu"].to_list())
    assert len(capable) > UPLOAD_BYTES / 1500
    # The queue is far from full: what is not capable may be hit, what is capable is marked.
    assert marked
    assert set(marked) <= capable
    assert not capable & set(dropped)

    # Every mark got there, and the sender was told of them.
    counters = json.loads(report.read_text())
    arrived = counters["IpExt.InCEPkts" if family == "4" else "Ip6InCEPkts"]
    assert arrived == len(delivered & set(marked)) == len(marked)
    sender = json.loads(result.out.splitlines()[-1])
    assert sender["TcpExt.TCPDeliveredCE"] > 0

    # The capture at the server shows what the kernel saw.
    assert marked_in(out / "server.pcapng") == set(marked)
    airpath.run("replay", out).check()


def test_a_late_handshake_keeps_ecn(airpath: Airpath, port_way: Way) -> None:
    out, report = airpath.path("run"), airpath.path("counters")
    sh = ["sh", "-c", ECN_ON, "sh"]
    server = shlex.join([*sh, *airpath.program("tcp-server", "4", 5000, report)])
    client = [*sh, *airpath.program("tcp-client", "4", 5000, 50_000, 1000)]
    # The first SYN meets no link.
    airpath.exec(
        port_way, "--delay", "5 ms", "--blackout", "0 s,600 ms,drop",
        "--out", out, "--log", "packets", "--server", server, "--", *client,
    ).check()  # fmt: skip
    offers = read_arrow_log(out / "input.arrow").frame.filter(pl.col("ecn").is_not_null())
    assert load_run(out).events.filter(pl.col("kind") == "dropped").height > 0
    assert offers.filter(pl.col("ecn") == ECT0).height > 50_000 / 1500


def test_marks_are_in_the_captures_of_virtual_runs(airpath: Airpath) -> None:
    out = airpath.path("run")
    airpath.run(
        "sim", "--rate", "8 Mbit/s", "--delay", "20 ms", "--seed", 1,
        "--set", f"radio.downlink.queue={QUEUES['codel']}",
        "--workload", "quic bytes=3000000 from=server", "--log", "packets", "--out", out,
    ).check()  # fmt: skip
    events = load_run(out).events
    marked = events.filter(pl.col("kind") == "marked")["pdu"].to_list()
    assert len(marked) > 3
    assert events.filter(pl.col("kind") == "dropped").is_empty()
    assert marked_in(out / "client.pcapng") == set(marked)
    airpath.run("replay", out).check()
