# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Recordings in virtual time, where what comes back is exactly what was put in."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warp.conftest import Warp


def test_trains_become_a_link_of_light_and_heavy_load(warp: Warp) -> None:
    name, out = warp.airpath.command, warp.airpath.path("recorded")
    link = ("--rate", "4 Mbit/s", "--delay", "10 ms", "--seed", "1")
    record = (name, "record", "--to", "server", "--out", out, "--train", "5", "--duration", "3 s")
    warp.run(*link, "--server", f"{name} recv --once", "--", *record).check()
    for direction in ("uplink", "downlink"):
        lines = (out / f"{direction}.light").read_text().splitlines()
        assert len(lines) > 10
        # 3 ms a packet: the first one arrives 13 ms after it was sent, and the others behind it.
        trains = Counter(" ".join(line.split()[1:]) for line in lines)
        assert trains.most_common(1)[0][0] == "13 0 3 6 9 12"
        assert trains.most_common(1)[0][1] > 0.9 * len(lines)
        under_load = [int(word) for word in (out / f"{direction}.trace").read_text().split()]
        assert 0.98 < 3 * len(under_load) / under_load[-1] < 1.02
    pings = ("ping", "-c", "4", "-i", "0.5", "server")
    replayed = warp.run("--scenario", out / "scenario.toml", "--seed", "1", "--", *pings).check()
    times = [float(time) for time in re.findall(r"time=([\d.]+) ms", replayed.out)]
    assert len(times) == 4
    # Replies come within a millisecond of their own in the light trace.
    assert 26 <= min(times) <= max(times) < 28


def test_long_trains_on_a_slow_path_do_not_wait_for_each_other(warp: Warp) -> None:
    """One train of 2.4 Mbit takes 24 s: the delay is that of the idle path, and a warning tells."""
    name, out = warp.airpath.command, warp.airpath.path("recorded")
    link = ("--rate", "100 kbit/s", "--delay", "10 ms", "--seed", "1")
    record = (name, "record", "--to", "server", "--out", out, "--train", "200")
    limit = ("--duration", "12 s", "--max-bytes", "1 MB", "--json")
    found = warp.run(*link, "--server", f"{name} recv --once", "--", *record, *limit).check()
    recorded = json.loads(found.out)
    assert any("fewer than two trains of 200 packets" in text for text in recorded["warnings"])
    for direction in ("uplink", "downlink"):
        estimates = recorded["estimates"][direction]
        # The one train may find a word of the connection on its way: some packets of 5 ms.
        assert 9e6 < estimates["delay"]["propagation_ns"] < 50e6
        assert f"[hops.{direction}]" in (out / "scenario.toml").read_text()
    assert "cellreplay" not in (out / "scenario.toml").read_text()
    files = [
        out / f"{direction}-{load}.csv"
        for direction in ("uplink", "downlink")
        for load in ("saturating", "light")
    ]
    packets = [len(file.read_text().splitlines()) - 1 for file in files]
    assert 1500 * sum(packets) <= 1_000_000


def test_results_come_through_bursts_of_losses(warp: Warp) -> None:
    """The connection beside the load ends no recording, although nothing else passes then."""
    name, out = warp.airpath.command, warp.airpath.path("recorded")
    bursts = (
        '[[hops]]\nname = "path"\n[hops.link]\nrate = "5 Mbit/s"\npropagation = "20 ms"\n'
        'errors = { type = "gilbert_elliott", per = "packet", good_to_bad = 0.02, '
        "bad_to_good = 0.1 }\n"
    )
    scenario = ("--scenario", warp.airpath.file("bursts.toml", bursts))
    for seed in (1, 2, 3):
        record = (name, "record", "--to", "server", "--out", f"{out}-{seed}", "--duration", "5 s")
        words = (*scenario, "--seed", seed, "--server", f"{name} recv --once", "--", *record)
        warp.run(*words).check()
