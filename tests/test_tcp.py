# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""TCP transfers found in captures."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from airpath.run import load_run
from airpath.tcp import _new_bytes, goodput_events, transfers
from pcapng import Packet, capture, sack, tcp
from synthetic import CLIENT, SERVER, START_UNIX_NS, write_run

if TYPE_CHECKING:
    from pathlib import Path

RX, TX = 0, 1
MILLISECOND = 1_000_000


def write_captures(folder: Path, **ends: list[tuple[int, int, bytes]]) -> None:
    """Write a run of captures only; a packet is (time in ms, interface, content)."""
    folder.mkdir()
    (folder / "run.json").write_text(f'{{"start_unix_ns": {START_UNIX_NS}}}')
    for end, packets in ends.items():
        written = [
            Packet(START_UNIX_NS + time * MILLISECOND, interface, content, pdu=number + 1)
            for number, (time, interface, content) in enumerate(packets)
        ]
        (folder / f"{end}.pcapng").write_bytes(capture(written))


def test_a_download_as_its_sender_saw_it(download: Path) -> None:
    (transfer,) = transfers(load_run(download))
    assert transfer.direction == "downlink"
    assert transfer.vantage == "server"
    assert transfer.label == "10.77.0.2:8000 → 10.77.0.1:40000"
    assert transfer.payload_bytes == 102_400
    segments = transfer.segments
    assert segments.filter(~segments["retransmission"]).height == 400
    assert transfer.acknowledgements["number"].max() == 102_400
    assert transfer.selective.height > 0
    assert (transfer.selective["end"] <= 102_400).all()


def test_drops_are_those_of_the_event_log(tmp_path: Path) -> None:
    world = write_run(tmp_path / "run")
    (transfer,) = transfers(load_run(tmp_path / "run"))
    for direction, causes in (
        ("downlink", transfer.segments["cause"]),
        ("uplink", transfer.lost_acknowledgements["cause"]),
    ):
        logged = [
            row["cause"]
            for row in world.rows
            if row["kind"] == "dropped" and row["direction"] == direction
        ]
        assert sorted(cause for cause in causes if cause) == sorted(logged)


def test_without_events_the_comments_tell_of_drops(tmp_path: Path) -> None:
    write_captures(tmp_path / "run", server=[(0, RX, tcp(SERVER, CLIENT, sequence=1, payload=9))])
    path = tmp_path / "run" / "server.pcapng"
    said = Packet(
        START_UNIX_NS,
        RX,
        tcp(SERVER, CLIENT, sequence=1, payload=9),
        pdu=1,
        comment="dropped: queue_age at radio after 1.200000000 s",
    )
    path.write_bytes(capture([said]))
    (transfer,) = transfers(load_run(tmp_path / "run"))
    assert transfer.segments["cause"].to_list() == ["queue_age"]


def test_without_the_senders_capture_the_receivers_serves(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "server.pcapng").unlink()
    (transfer,) = transfers(load_run(tmp_path / "run"))
    assert (transfer.direction, transfer.vantage) == ("downlink", "client")
    assert transfer.payload_bytes == 102_400


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    start = 0xFFFFFFF0
    write_captures(
        tmp_path / "run",
        client=[
            (0, RX, tcp(CLIENT, SERVER, sequence=start - 1, flags=0x02)),
            (1, RX, tcp(CLIENT, SERVER, sequence=start, payload=10)),
            (2, RX, tcp(CLIENT, SERVER, sequence=start + 10, payload=10)),
            (3, RX, tcp(CLIENT, SERVER, sequence=start + 20, payload=10)),
            (4, TX, tcp(SERVER, CLIENT, sequence=1, acknowledgement=start + 10)),
            (
                5,
                TX,
                tcp(
                    SERVER,
                    CLIENT,
                    sequence=1,
                    acknowledgement=start + 10,
                    options=sack([(start + 20, start + 30)]),
                ),
            ),
            (6, RX, tcp(CLIENT, SERVER, sequence=start + 10, payload=10)),
            (7, TX, tcp(SERVER, CLIENT, sequence=1, acknowledgement=start + 30)),
        ],
    )
    (transfer,) = transfers(load_run(tmp_path / "run"))
    assert transfer.direction == "uplink"
    assert transfer.segments["first"].to_list() == [0, 10, 20, 10]
    assert transfer.segments["retransmission"].to_list() == [False, False, False, True]
    assert transfer.acknowledgements["number"].to_list() == [10, 10, 30]
    assert transfer.selective.rows() == [(5 * MILLISECOND, 20, 30)]


def test_an_acknowledgement_of_what_was_never_sent_is_left_out(tmp_path: Path) -> None:
    write_captures(
        tmp_path / "run",
        client=[
            (0, RX, tcp(CLIENT, SERVER, sequence=100, payload=10)),
            (1, TX, tcp(SERVER, CLIENT, sequence=1, acknowledgement=0x7000_0000)),  # damaged
            (2, TX, tcp(SERVER, CLIENT, sequence=1, acknowledgement=110)),
        ],
    )
    (transfer,) = transfers(load_run(tmp_path / "run"))
    assert transfer.acknowledgements["number"].to_list() == [10]


def test_a_reused_pair_of_ports_is_two_transfers(tmp_path: Path) -> None:
    write_captures(
        tmp_path / "run",
        client=[
            (0, RX, tcp(CLIENT, SERVER, sequence=10, flags=0x02)),
            (1, RX, tcp(CLIENT, SERVER, sequence=10, flags=0x02)),  # a repeated SYN
            (2, RX, tcp(CLIENT, SERVER, sequence=11, payload=5)),
            (3, RX, tcp(CLIENT, SERVER, sequence=9_000_000, flags=0x02)),
            (4, RX, tcp(CLIENT, SERVER, sequence=9_000_001, payload=7)),
        ],
    )
    found = transfers(load_run(tmp_path / "run"))
    assert sorted(transfer.payload_bytes for transfer in found) == [5, 7]


def test_a_request_is_no_transfer_beside_its_answer_but_a_second_stream_is(tmp_path: Path) -> None:
    def conversation(request_segments: int) -> int:
        folder = tmp_path / f"run{request_segments}"
        client = [
            (n, RX, tcp(CLIENT, SERVER, sequence=1 + 100 * n, payload=100))
            for n in range(request_segments)
        ]
        server = [
            (n, RX, tcp(SERVER, CLIENT, sequence=1 + 100 * n, payload=100)) for n in range(100)
        ]
        write_captures(folder, client=client, server=server)
        return len(transfers(load_run(folder)))

    assert conversation(1) == 1
    assert conversation(50) == 2


def test_discarded_packets_are_no_part_of_the_run(tmp_path: Path) -> None:
    write_captures(tmp_path / "run", client=[])
    packet = Packet(
        START_UNIX_NS,
        RX,
        tcp(CLIENT, SERVER, sequence=1, payload=100),
        comment="discarded: before_start",
    )
    (tmp_path / "run" / "client.pcapng").write_bytes(capture([packet]))
    assert transfers(load_run(tmp_path / "run")) == []


def test_goodput_counts_every_byte_once(download: Path) -> None:
    run = load_run(download)
    arrived = goodput_events(run, "downlink")
    assert arrived["bytes"].sum() == 102_400
    assert goodput_events(run, "uplink").is_empty()


@pytest.mark.parametrize("seed", range(20))
def test_new_bytes_against_a_set_of_bytes(seed: int) -> None:
    generator = random.Random(seed)
    first = [generator.randrange(200) for _ in range(60)]
    first[0] = 0
    end = [begin + generator.randrange(0, 40) for begin in first]
    seen: set[int] = set()
    expected = []
    for begin, stop in zip(first, end, strict=True):
        fresh = set(range(begin, stop)) - seen
        expected.append(len(fresh))
        seen |= fresh
    assert _new_bytes(np.array(first), np.array(end)).tolist() == expected
