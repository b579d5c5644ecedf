# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Distorted runs are not trusted: the distortions that get through on any machine.

`scripts/bench --only verdict` plays all of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from live.harness import find_command
from verdict.distortion import Distortion
from verdict.distortions import ALL
from verdict.judge import judge
from verdict.stage import Stage, stage
from verdict.truth import of_datagrams, of_rounds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHORT = (
    "stop-50ms-packet-root",
    "stop-in-silence-packet",
    "receive-buffer",
    "receiver-stopped",
    "mtu-raised",
    "server-killed",
    "nested-outer-stopped",
    "interface-moved",
    "stop-80ms-tun",
)
"""A distortion of each kind, of a few seconds each."""


@pytest.fixture(scope="module")
def here() -> Iterator[Stage]:
    """Return a stage with the engine under test."""
    command = find_command()
    beside = command.with_name("airpath-engine")
    with stage(beside if beside.exists() else command) as found:
        yield found


@pytest.mark.parametrize("name", SHORT)
def test_a_distorted_run_is_not_trusted(here: Stage, name: str) -> None:
    one = next(one for one in ALL if one.name == name)
    judged = judge(one, here)
    if judged.outcome == "not here":
        pytest.skip(judged.why)
    assert judged.outcome == "told", judged.row()


def test_there_are_enough_distortions_and_each_has_a_name_of_its_own() -> None:
    names = [one.name for one in ALL]
    assert len(set(names)) == len(names) >= 40
    assert set(SHORT) <= set(names)
    assert all(one.codes for one in ALL)


def rows(path: Path, lines: list[tuple[int, int, int]]) -> Path:
    path.write_text("".join("{} {} {}\n".format(*line) for line in lines))
    return path


def test_the_truth_counts_what_was_late_and_what_was_lost(tmp_path: Path) -> None:
    ms = 1_000_000
    sent = rows(tmp_path / "sent", [(number, 0, 0) for number in range(100)])

    def truth(late: int, lost: int) -> bool:
        came = [(number, 0, (20 + 5 * (number < late)) * ms) for number in range(100 - lost)]
        return of_datagrams(sent, rows(tmp_path / "received", came), 20 * ms, 100).distorted

    assert not truth(0, 0)
    assert not truth(2, 0)
    assert truth(3, 0)
    assert truth(0, 1)
    two = rows(tmp_path / "two", [(number, 0, 0) for number in range(2)])
    came = rows(tmp_path / "came", [(0, 0, 20 * ms), (1, 0, 500 * ms)])
    assert of_datagrams(two, came, 20 * ms, 2).distorted
    # A datagram that came twice is late only if its first copy is.
    twice = [(number, 0, (20 + extra) * ms) for extra in (0, 50) for number in range(100)]
    assert not of_datagrams(sent, rows(tmp_path / "twice", twice), 20 * ms, 100).distorted
    slow = rows(tmp_path / "rounds", [(number, 0, 31 * ms) for number in range(10)])
    assert of_rounds(slow, 20 * ms).distorted
    assert "55%" in of_rounds(slow, 20 * ms).what


def test_a_machine_without_the_means_says_so(here: Stage) -> None:
    lacking = Distortion("x", "x", lambda _: pytest.fail("played"), ("x",), needs=("no-such-tool",))
    judged = judge(lacking, here)
    assert judged.outcome == "not here"
    assert "no-such-tool is not installed" in judged.why
    assert (
        os.geteuid() == 0
        or judge(
            Distortion("y", "y", lambda _: pytest.fail("played"), ("y",), nobody=True), here
        ).outcome
        == "not here"
    )
