# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Packets that the link damages: caught by the receiving kernel's checks, or let through as sent.

A corrupted packet must look to the receiving kernel as it would after a radio link: with a complete
checksum that no longer fits. Both ends of a virtual link share a kernel that would rather not
compute checksums at all, so this is where an emulator goes wrong unnoticed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from airpath.run import Run, load_run
from live.harness import Airpath, Result, Way
from live.programs import datagram
from live.test_protocols import needs_udplite

if TYPE_CHECKING:
    from pathlib import Path

FAMILIES = ("4", "6")
TCP_HEADERS = {"4": 20 + 32, "6": 40 + 32}
"""Bytes of a data segment's headers, with time stamps."""


def corrupting(probability: float, headers: str = "spared", flips: int = 1) -> str:
    """Return what makes an uplink damage packets."""
    return (
        'radio.uplink.errors={ type = "bernoulli", per = "packet", '
        f'probability = {probability}, effect = "corrupt", headers = "{headers}", '
        f"flips = {flips} }}"
    )


def damaged(run: Run) -> pl.DataFrame:
    return run.events.filter(pl.col("kind") == "damaged")


def damaged_payloads(run: Run, headers: int) -> int:
    """Return how many packets with a payload were damaged and delivered."""
    bits = run.path_events("delivered").select("pdu", pl.col("bits").alias("length"))
    rows = damaged(run).select("pdu").unique().join(bits, on="pdu")
    return rows.filter(pl.col("length") > 8 * headers).height


def transfer(airpath: Airpath, way: Way, family: str, *arguments: object) -> tuple[Result, Run]:
    """Send 3 MB over TCP; the programs check the content."""
    server = airpath.server("tcp-server", family, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", family, 5000, 3_000_000, 100_000)
    out = airpath.path("run")
    plain = ("--cc", "cubic", "--out", out, "--log", "events", "--server-grace", "5 s")
    result = airpath.exec(way, *plain, "--server", server, *arguments, "--", *client).check()
    return result, load_run(out)


def counters(airpath: Airpath) -> dict[str, Any]:
    """Return the counters of the server's kernel."""
    found = json.loads(airpath.path("counters").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_tcp_over_a_corrupting_link_is_exact(airpath: Airpath, port_way: Way, family: str) -> None:
    result, run = transfer(airpath, port_way, family, "--delay", "2 ms", "--set", corrupting(0.01))
    # Every damaged data segment was caught by the server's kernel, and sent again.
    hit = damaged_payloads(run, TCP_HEADERS[family])
    server, client = counters(airpath), json.loads(result.out)
    assert hit > 3
    assert server["Tcp.InCsumErrors"] == hit
    # A loss probe may have been damaged too, and one retransmission may replace several.
    assert client["Tcp.RetransSegs"] >= hit // 2
    # The sending kernel handed over super-packets; nevertheless each segment met errors by itself.
    assert client["longest"] > 1500
    assert int(run.path_events("offered")["bits"].max()) <= 1500 * 8  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
def test_corrupted_headers_do_no_harm(airpath: Airpath, port_way: Way, family: str) -> None:
    # A flip anywhere: addresses, lengths, ports, versions. (One flip, which no checksum misses.)
    _, run = transfer(
        airpath, port_way, family, "--delay", "2 ms", "--set", corrupting(0.02, "included")
    )
    rows = damaged(run)
    assert rows.height > 10
    assert rows["bits"].unique().to_list() == [1]


def test_segments_of_a_super_packet_are_lost_one_by_one(airpath: Airpath, port_way: Way) -> None:
    result, run = transfer(airpath, port_way, "6", "--loss", "1%", "--delay", "2 ms")
    client = json.loads(result.out)
    dropped = run.drops()
    assert client["longest"] > 1500
    uplink = dropped.filter(pl.col("direction") == "uplink")
    assert uplink.height > 3
    assert uplink["bits"].max() <= 1500 * 8  # type: ignore[operator]
    assert client["Tcp.RetransSegs"] >= uplink.filter(pl.col("bits") > 8 * 100).height // 2
    server = counters(airpath)
    assert server["Tcp.InCsumErrors"] == 0


def datagrams(
    airpath: Airpath, way: Way, family: str, protocol: str, coverage: int, *arguments: object
) -> tuple[list[bytes], dict[str, Any], Run]:
    """Send 400 datagrams of 500 bytes; return what the server's program received."""
    path, report = airpath.path("datagrams"), airpath.path("counters")
    server = airpath.server("datagram-server", family, protocol, coverage, 5000, path, report)
    client = airpath.program(
        "datagram-client", family, protocol, coverage, 5000, 400, 500, 0.0005, 0.5
    )
    out = airpath.path("run")
    plain = ("--out", out, "--snaplen", "full", "--server", server, "--delay", "1 ms")
    airpath.exec(way, *plain, *arguments, "--", *client).check()
    received = [bytes.fromhex(line.split()[1]) for line in path.read_text().splitlines()]
    return received, counters(airpath), load_run(out)


@pytest.mark.parametrize("headers", ["spared", "included"])
@pytest.mark.parametrize("family", FAMILIES)
def test_corrupted_udp_is_never_delivered(
    airpath: Airpath, port_way: Way, family: str, headers: str
) -> None:
    sent = [datagram(number, 500) for number in range(400)]
    received, kernel, run = datagrams(
        airpath, port_way, family, "udp", 0, "--set", corrupting(0.2, headers)
    )
    hit = damaged(run).filter(pl.col("direction") == "uplink")["pdu"].n_unique()
    assert 30 < hit < 160
    key = "Udp.InCsumErrors" if family == "4" else "Udp6InCsumErrors"
    if headers == "spared":
        assert kernel[key] == hit
        assert len(received) == 400 - hit
    else:
        assert 0 < kernel[key] <= hit
        # Bits that no checksum covers (IPv6: traffic class, flow label, hop limit) do no harm.
        assert len(received) >= 400 - hit
    wanted = set(sent)
    assert all(data in wanted for data in received)


@needs_udplite
@pytest.mark.parametrize("family", FAMILIES)
def test_udplite_delivers_damage_where_it_was_done(
    airpath: Airpath, port_way: Way, family: str
) -> None:
    flips = 5
    received, kernel, run = datagrams(
        airpath, port_way, family, "udplite", 8, "--set", corrupting(0.2, "spared", flips)
    )
    assert len(received) == 400
    key = "UdpLite.InCsumErrors" if family == "4" else "UdpLite6InCsumErrors"
    assert kernel[key] == 0
    rows = damaged(run).filter(pl.col("direction") == "uplink")
    assert 30 < rows.height < 160
    assert rows["bits"].unique().to_list() == [flips]
    # Datagram N is the Nth packet of the uplink; what differs must be what the log tells of it.
    pdus = run.path_events("offered").filter(pl.col("direction") == "uplink")["pdu"].to_list()
    told = set(rows["pdu"].to_list())
    assert len(pdus) == 400
    for number, (pdu, data) in enumerate(zip(pdus, received, strict=True)):
        flipped = differing_bits(data, datagram(number, 500))
        assert flipped == (flips if pdu in told else 0), f"datagram {number}"
    capture_agrees(run.directory, received)


@needs_udplite
def test_udplite_with_full_coverage_is_checked(airpath: Airpath, port_way: Way) -> None:
    received, kernel, run = datagrams(
        airpath, port_way, "4", "udplite", 0, "--set", corrupting(0.2, "spared")
    )
    hit = damaged(run).filter(pl.col("direction") == "uplink").height
    assert hit > 30
    assert kernel["UdpLite.InCsumErrors"] == hit
    assert len(received) == 400 - hit


def differing_bits(one: bytes, other: bytes) -> int:
    """Return how many bits differ."""
    assert len(one) == len(other)
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()


def capture_agrees(folder: Path, received: list[bytes]) -> None:
    """Check that the capture at the server's end holds the damaged bytes."""
    content = (folder / "server.pcapng").read_bytes()
    missing = [number for number, data in enumerate(received) if data not in content]
    assert not missing, f"not in server.pcapng as received: {missing}"


def test_bit_errors_flip_the_expected_share(airpath: Airpath, any_way: Way) -> None:
    # 400 packets of 528 bytes at a bit error rate of 1e-4: 0.42 flips each on average.
    errors = (
        'radio.uplink.errors={ type = "bernoulli", per = "bit", probability = 0.0001, '
        'effect = "corrupt" }'
    )
    received, kernel, run = datagrams(airpath, any_way, "4", "udp", 0, "--set", errors)
    rows = damaged(run).filter(pl.col("direction") == "uplink")
    assert 90 < int(rows["bits"].sum()) < 260
    sent = {datagram(number, 500): number for number in range(400)}
    offered = run.path_events("offered").filter(pl.col("direction") == "uplink")
    pdus = offered.filter(pl.col("bits") == 528 * 8)["pdu"].to_list()
    flips = dict(rows.select("pdu", "bits").iter_rows())
    assert len(pdus) == 400
    # The Internet checksum misses two flips that cancel each other (one pair in 32), never one.
    # One of the two may be in the header: in the checksum, or a port.
    for data in set(received) - set(sent):
        nearest = min(sent, key=lambda other: differing_bits(data, other))
        flipped = flips[pdus[sent[nearest]]]
        assert flipped >= 2
        assert 1 <= differing_bits(data, nearest) <= flipped
    assert sum(data not in sent for data in received) < 20
    assert len(received) >= 400 - rows.height
    assert kernel["Udp.InCsumErrors"] > 0
