# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Distortion of a run: its registration, and what several of them have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from verdict.stage import Running, Seen, Stage, pause

Play = Callable[[Stage], Seen]


@dataclass(frozen=True)
class Distortion:
    """One way to make a run report wrong results."""

    name: str
    what: str
    play: Play
    codes: tuple[str, ...]
    """Codes of reasons that name this distortion; one of them is expected."""
    nobody: bool = False
    """True if an ordinary user starts the run."""
    needs: tuple[str, ...] = ()
    """Programs, or `root`."""
    sure: bool = False
    """True if it gets through on any machine: these are in the tests."""
    uncertain: bool = False
    """True if a run on a good machine may withstand it, and is rightly trusted then."""
    own: bool = False
    """True if the programs at the ends are slow by themselves, so that a trusted run is right."""


ALL: list[Distortion] = []

LATE = ("late_emissions", "late_reads", "overload", "unwatched_reads")
LOST = ("outside_drops",)
ENDS = ("ends_waited", "relays_waited")
SOCKETS = ("socket_losses", "tcp_receive_drops")
BROKEN = ("broken_off", "never_started")


def case(
    name: str,
    what: str,
    codes: tuple[str, ...],
    *,
    nobody: bool = False,
    needs: tuple[str, ...] = (),
    sure: bool = False,
    uncertain: bool = False,
    own: bool = False,
) -> Callable[[Play], Play]:
    """Register a distortion."""

    def register(play: Play) -> Play:
        ALL.append(Distortion(name, what, play, codes, nobody, needs, sure, uncertain, own))
        return play

    return register


def stop_often(stopped_s: float, going_s: float, count: int) -> Callable[[Running], None]:
    """Return a disturbance that stops the engine over and over."""

    def disturb(run: Running) -> None:
        engine = run.engine()
        for _ in range(count):
            if run.over:
                return
            run.stop(engine, stopped_s)
            pause(going_s)

    return disturb
