# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Recordings in virtual time, where what comes back is exactly what was put in."""

from __future__ import annotations

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
