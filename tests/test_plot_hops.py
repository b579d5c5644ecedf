# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Times of packets hop by hop, against a schedule computed by hand, and the picture of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from airpath.analysis.hop_times import hop_times
from airpath.engine import find_engine
from airpath.plots import hops
from airpath.plots.style import Span
from airpath.run import load_run

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
[[hops]]
name = "radio"
[hops.link]
rate = "40 kbit/s"
propagation = "30 ms"
send_buffer = "1 packets"
queue = { type = "tail_drop", limit = "2 packets" }

[[hops]]
name = "core"
[hops.link]
rate = "400 kbit/s"
propagation = "5 ms"
queue = { type = "tail_drop", limit = "100 packets" }
"""
MILLISECOND = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of 6 packets of 500 bytes from the server, one a millisecond."""
    base = tmp_path_factory.mktemp("hops")
    (base / "scenario.toml").write_text(SCENARIO)
    workload = "cbr packets=6 size=500 rate=4Mbit/s from=server"
    subprocess.run(
        [
            *(str(find_engine()), "sim", "--quiet", "--seed", "1", "--out", str(base / "run")),
            *("--scenario", str(base / "scenario.toml"), "--workload", workload),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return base / "run"


def test_times_of_each_hop_are_those_computed_by_hand(folder: Path) -> None:
    """Core: 10 ms a packet. Radio: 100 ms a packet, one in transmission, two in the queue.

    Packets reach the radio 10 ms apart, 15 ms after packet 0 was offered. Packet 0 is sent at once,
    1 and 2 wait in the queue; 3, 4 and 5 find it full.
    """
    times = hop_times(load_run(folder)).sort("pdu", "hop")
    core = times.filter(hop="core")
    assert core["queue_ns"].to_list() == [place * 9 * MILLISECOND for place in range(6)]
    assert core["link_ns"].to_list() == [15 * MILLISECOND] * 6
    radio = times.filter(hop="radio")
    assert radio["queue_ns"].to_list() == [0, 90 * MILLISECOND, 180 * MILLISECOND]
    assert radio["buffer_ns"].to_list() == [0, 0, 0]
    assert radio["link_ns"].to_list() == [130 * MILLISECOND] * 3


def test_the_picture_tells_hops_in_order_of_travel_and_what_was_lost_there(folder: Path) -> None:
    (picture,) = hops.draw(load_run(folder), Span())
    (axis,) = picture.figure.get_axes()
    assert [label.get_text() for label in axis.get_yticklabels()] == ["core", "radio"]
    texts = [text.get_text() for text in axis.texts]
    assert texts == ["mean 37.5 ms; none lost", "mean 220 ms; lost: 3 queue full"]


def test_a_run_of_one_hop_has_no_such_picture(download: Path) -> None:
    assert hops.draw(load_run(download), Span()) == []
