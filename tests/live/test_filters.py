# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Filters in a scenario: errors and queues that choose by bytes of real programs' packets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from airpath.arrow import read_arrow_log
from airpath.run import load_run

if TYPE_CHECKING:
    from live.harness import Airpath, Way

COUNT = 100
ODD = "udp dst port 5000 and udp[11] & 1 = 1"
"""Datagrams with odd numbers: the number is at the beginning of the payload."""

SCENARIO = f"""
[[hops]]
name = "radio"
[hops.link]
propagation = "3 ms"
[hops.uplink]
errors = {{ type = "pattern", burst = 1, every = 2, only = {{ filter = "{ODD}" }} }}
[hops.link.queue]
type = "classes"
[[hops.link.queue.classes]]
name = "answers"
match = {{ filter = "udp src port 5000" }}
[[hops.link.queue.classes]]
name = "rest"
"""


def test_errors_hit_only_the_packets_of_a_filter_and_a_replay_is_identical(
    airpath: Airpath, port_way: Way
) -> None:
    out, path = airpath.path("run"), airpath.path("datagrams")
    server = airpath.server("datagram-server", 4, "udp", 0, 5000, path, airpath.path("counters"))
    client = airpath.program("datagram-client", 4, "udp", 0, 5000, COUNT, 200, 0.002, 0.3)
    link = ("--scenario", airpath.file("scenario.toml", SCENARIO), "--log", "events")
    airpath.exec(port_way, "--out", out, *link, "--server", server, "--", *client).check()
    received = [int(line.split()[1][:8], 16) for line in path.read_text().splitlines()]
    # Every other one of the odd ones is lost, and no even one.
    assert sorted(received) == [number for number in range(COUNT) if number % 4 != 1]

    offers = read_arrow_log(out / "input.arrow").frame.filter(pl.col("kind") == "offer")
    matches = offers["matches"].fill_null(0).value_counts().rows_by_key("matches", unique=True)
    assert sum(count for (count,) in matches.values()) == offers.height
    odd, answers = sorted(
        offers.filter(pl.col("matches") == bit)["source_port"].n_unique() for bit in (1, 2)
    )
    assert (odd, answers) == (1, 1)
    assert matches[1] == (COUNT // 2,) or matches[2] == (COUNT // 2,)
    lost = load_run(out).drops()["pdu"].to_list()
    assert offers.filter(pl.col("pdu").is_in(lost))["destination_port"].unique().to_list() == [5000]

    replay = airpath.run("replay", out, "--json", user=port_way.user).check()
    assert json.loads(replay.out)["identical"]
