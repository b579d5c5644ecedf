# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Background load: what it does to a run, in virtual time and live, and where it is seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from matplotlib.text import Text

from airpath.plots import draw
from airpath.plots.delay import one_way_delays
from airpath.plots.style import Span
from airpath.run import load_run

if TYPE_CHECKING:
    from live.harness import Airpath, Way

HALF_LOADED = """
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
queue = { type = "tail_drop", limit = "20 packets" }

[[background]]
name = "others"
hop = "radio"
direction = "uplink"
type = "poisson"
rate = "400 kbit/s"
packet_size = "125 bytes"
"""

SATURATED = """
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
propagation = "10 ms"
queue = { type = "tail_drop", limit = "5 packets" }

[[hops]]
name = "core"

[[background]]
name = "burst"
hop = "radio"
direction = "uplink"
until = "core"
type = "on_off"
rate = "2 Mbit/s"
packet_size = "500 bytes"
on = { type = "exponential", mean = "50 ms" }
off = { type = "exponential", mean = "50 ms" }

[[background]]
name = "list"
hop = "core"
direction = "downlink"
type = "trace"
file = "FILE"
repeat = "20 ms"
"""


def test_half_a_load_makes_packets_wait_as_in_m_d_1(airpath: Airpath) -> None:
    """Packets take 1 ms; users have a tenth of the rate and others four tenths.

    At a load of r the mean wait is r/(2(1-r)) packets (Pollaczek-Khinchine), here 0.5 ms.
    The standard error of the mean over 20,000 packets is about 0.01 ms; the bound is five of them.
    """
    out = airpath.path("run")
    scenario = airpath.file("scenario.toml", HALF_LOADED)
    workload = 'poisson rate="100 kbit/s" size=125 from=client duration="200 s"'
    arguments = ("--workload", workload, "--seed", 1, "--out", out, "--log", "events")
    result = airpath.run("sim", "--scenario", scenario, *arguments).check()
    line = next(line for line in result.err.splitlines() if line.startswith("background"))
    assert "packets, 399 kbit/s, dropped none" in line
    assert line.endswith("downlink none")
    run = load_run(out)
    delay = one_way_delays(run)["delay_ns"]
    assert delay.len() > 19_000
    assert delay.mean() == pytest.approx(1_500_000, abs=50_000)
    # Endpoints and goodput know nothing of it.
    origins = run.events["origin"].cast(pl.String)
    assert set(origins) == {"user", "background"}
    delivered = run.events.filter(pl.col("kind") == "delivered")["origin"].cast(pl.String)
    assert set(delivered) == {"user"}
    assert airpath.run("replay", out).check().out.startswith("identical: ")


def test_drops_of_the_load_are_told_and_drawn_apart(airpath: Airpath) -> None:
    out = airpath.path("run")
    listed = airpath.file("list.txt", "0 1500\n0.005 40\n")
    scenario = airpath.file("scenario.toml", SATURATED.replace("FILE", str(listed)))
    workload = 'cbr rate="300 kbit/s" size=300 from=client duration="5 s"'
    arguments = ("--workload", workload, "--seed", 1, "--out", out, "--json")
    found = json.loads(airpath.run("sim", "--scenario", scenario, *arguments).check().out)
    burst, listed_load = found["uplink"]["background"], found["downlink"]["background"]
    assert burst["dropped"][0]["cause"] == "queue_packets"
    assert listed_load["dropped"] == []
    assert burst["generated_packets"] == (
        burst["consumed_packets"] + burst["inside_packets"] + burst["dropped"][0]["packets"]
    )
    run = load_run(out)
    dropped = run.events.filter(pl.col("kind") == "dropped")
    assert run.drops().height == found["uplink"]["dropped"][0]["packets"]
    assert dropped.height == run.drops().height + burst["dropped"][0]["packets"]
    (packets, _) = draw(run, ["queue"], Span())
    texts = [text.get_text() for text in packets.figure.findobj(Text)]
    assert any(text.startswith("background dropped, ") for text in texts)
    assert any(text.startswith("dropped, ") for text in texts)
    said = airpath.run("log", out, "--origin", "background", "--kind", "consumed").check().out
    consumed = burst["consumed_packets"] + listed_load["consumed_packets"]
    assert len(said.splitlines()) == 1 + consumed
    shown = airpath.run("log", out, "--pdu", "b1.0").check().out.splitlines()
    assert [line.split()[4] for line in shown[1:]][::5] == ["generated", "consumed"]
    assert airpath.run("replay", out).check().out.startswith("identical: ")


def test_a_live_link_with_a_load_is_exact_and_replayed(airpath: Airpath, way: Way) -> None:
    out = airpath.path("run")
    listed = airpath.file("list.txt", "0 1500\n0.005 40\n")
    scenario = airpath.file("scenario.toml", SATURATED.replace("FILE", str(listed)))
    server = airpath.server(
        "datagram-server", 4, "udp", 0, 9000, airpath.path("received"), airpath.path("counters")
    )
    client = airpath.program("datagram-client", 4, "udp", 0, 9000, 100, 300, 0.004, 0.3)
    arguments = ("--out", out, "--log", "events", "--seed", 11, "--scenario", scenario)
    result = airpath.exec(way, *arguments, "--server", server, "--", *client).check()
    found = json.loads(result.err.splitlines()[-1])
    assert found["uplink"]["background"]["generated_packets"] > 10
    assert found["downlink"]["background"]["dropped"] == []
    events = load_run(out).events
    generated = events.filter(pl.col("kind") == "generated")
    assert generated["hop"].cast(pl.String).unique().sort().to_list() == ["core", "radio"]
    left = events.filter(pl.col("kind") == "delivered")["origin"].cast(pl.String)
    assert set(left) == {"user"}
    assert airpath.run("replay", out, user=way.user).check().out.startswith("identical: ")
