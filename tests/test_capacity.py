# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Capacity of a path over time, by hand: steps, lines, traces, states, blackouts, commands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from airpath.plots.capacity import capacity

if TYPE_CHECKING:
    from airpath.run import Run

STEPS = {"type": "steps", "steps": ["0 s: 2 Mbit/s", "3 s: 0 bit/s", "4 s: 500 kbit/s"]}


@dataclass
class Told:
    """Description of the link, as a run has it."""

    scenario: dict[str, Any]
    changes: list[tuple[int, str]] = field(default_factory=list)
    directory: Path = Path()
    users: tuple[str, ...] = ()

    @property
    def manifest(self) -> dict[str, Any]:
        """Its scenario."""
        return {"scenario": self.scenario}

    def state_changes(self) -> list[tuple[int, str]]:
        """Return when it went into which state."""
        return self.changes


def rates(told: Told, edges: list[float], direction: str = "downlink") -> list[float]:
    found = capacity(cast("Run", told), direction, np.array(edges))
    assert found is not None
    return cast("list[float]", (found / 1000).tolist())


def hop(rate: Any, name: str = "radio", **more: Any) -> dict[str, Any]:
    return {"name": name, "link": {"rate": rate}, **more}


def test_steps_are_averaged_over_each_bin_and_repeat() -> None:
    told = Told({"hops": [hop(STEPS)]})
    # 2.5 to 3.5 s: half a second of 2 Mbit/s.
    assert rates(told, [0, 2.5, 3.5, 4.5, 9]) == pytest.approx([2000, 1000, 250, 500])
    again = Told({"hops": [hop(STEPS | {"period": "6 s"})]})
    assert rates(again, [5, 6, 7, 9, 10, 11]) == pytest.approx([500, 2000, 2000, 0, 500])


def test_lines_are_integrated() -> None:
    line = {"type": "steps", "steps": ["0 s: 0 bit/s", "4 s: 800 kbit/s"]}
    told = Told({"hops": [hop(line | {"interpolation": "linear"})]})
    assert rates(told, [0, 2, 4, 6]) == pytest.approx([200, 600, 800], rel=1e-4)


def test_the_slowest_hop_counts_and_directions_differ() -> None:
    radio = hop("2 Mbit/s", uplink={"rate": "64 kbit/s"})
    told = Told({"hops": [radio, hop("1 Mbit/s", "backhaul"), {"name": "far", "link": {}}]})
    assert rates(told, [0, 1]) == pytest.approx([1000])
    assert rates(told, [0, 1], "uplink") == pytest.approx([64])


def test_states_and_blackouts_change_it_and_it_comes_back() -> None:
    states = [
        {"name": "tunnel", "set": {"radio.link.blackout": "drop"}},
        {"name": "slow", "set": {"radio.downlink.rate": "300 kbit/s"}},
    ]
    changes = [(7_000_000_000, "tunnel"), (8_000_000_000, "initial"), (9_000_000_000, "slow")]
    told = Told({"hops": [hop("1 Mbit/s")], "states": states}, changes)
    assert rates(told, [6, 7, 8, 9, 10]) == pytest.approx([1000, 0, 1000, 300])
    assert rates(told, [6.5, 7.5], "uplink") == pytest.approx([500])
    assert rates(told, [9, 10], "uplink") == pytest.approx([1000]), "slow is the downlink alone"


def test_what_commands_set_is_not_known() -> None:
    told = Told({"hops": [hop("1 Mbit/s")]}, [(2_000_000_000, "")])
    found = rates(told, [0, 1, 2, 3])
    assert found[:2] == pytest.approx([1000, 1000])
    assert math.isnan(found[2])


def test_without_a_rate_there_is_none() -> None:
    edges = np.array([0.0, 1.0])
    for told in (
        Told({"hops": [{"name": "radio", "link": {}}]}),
        Told({"hops": [hop({"type": "slotted", "slot": "1 ms", "bits": "100 bit"})]}),
        Told({"hops": [hop("1 Mbit/s")]}, users=("alice",)),
    ):
        assert capacity(cast("Run", told), "downlink", edges) is None


def test_a_shared_medium_has_its_own_rate() -> None:
    medium = {"name": "air", "type": "continuous", "uplink": "1 Mbit/s", "downlink": "4 Mbit/s"}
    shared = Told({"media": [medium], "paths": []}, users=("alice", "bob"))
    assert rates(shared, [0, 1, 2]) == pytest.approx([4000, 4000])
    edges = np.array([0.0, 1.0])
    for media in ([medium, medium], [{"name": "cell", "type": "nr"}]):
        told = Told({"media": media, "paths": []}, users=("alice", "bob"))
        assert capacity(cast("Run", told), "downlink", edges) is None


def test_traces_are_read_from_the_copies_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "r.csv").write_text("time_s,rate_mbps\n0,1\n2,0.5\n4,2\n")
    (tmp_path / "files" / "t.trace").write_text("0\n10\n20\n30\n30\n50\n")
    trace = hop({"type": "trace", "file": "files/r.csv"})
    assert rates(Told({"hops": [trace]}, directory=tmp_path), [0, 2, 4, 6, 8]) == pytest.approx(
        [1000, 500, 2000, 1000]
    )
    opportunities = {"type": "mahimahi", "file": "files/t.trace"}
    told = Told({"hops": [hop(opportunities)]}, directory=tmp_path)
    # Six opportunities of 1500 bytes in 50 ms, again and again.
    assert rates(told, [0, 0.5, 1]) == pytest.approx([1440, 1440])
    once = Told({"hops": [hop(opportunities | {"repeat": False})]}, directory=tmp_path)
    assert rates(once, [0, 0.05, 1]) == pytest.approx([1440, 0])
    gone = hop({"type": "trace", "file": "files/none.csv"})
    assert capacity(cast("Run", Told({"hops": [gone]})), "downlink", np.array([0.0, 1.0])) is None
