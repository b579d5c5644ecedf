# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The kinds of pictures, each declared once: what ``--only`` takes, and what draws it.

Nothing heavy is imported here: every start of the command comes by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

RUN = {
    "time-sequence": "time_sequence",
    "throughput": "throughput",
    "queue": "queue",
    "delay": "delay",
    "fairness": "fairness",
    "tcp-state": "tcp_state",
    "link": "link",
    "hops": "hops",
}
"""Of one run: the name of a kind, and the module of ``airpath.plots`` that draws it."""


NO_PACKETS = "no packets in its logs (run with --log packets or --log events)"
NOTHING = {
    "time-sequence": "no TCP transfer in its captures (run with --log packets)",
    "hops": "one hop only, more than 16 queues (choose with --user), or no packets in its logs "
    "(run with --log packets or --log events)",
    "fairness": "no flows that compete, or no packets in its logs (run with --log packets)",
    "tcp-state": "no TCP sender in tcp.arrow, which live runs leave with --tcp-state "
    "(docs/tcp-state.md)",
    "link": "no frames in link.arrow, which runs leave with --log packets or --log events where a "
    "link has an entity such as rlp or gprs (docs/scenario/radio.md); of a cell, with --user, and "
    "where it has resources with --frames on",
}
"""Reasons for a run without a picture, by kind; NO_PACKETS is that of the other kinds."""


def nothing(kinds: Iterable[str], *, is_part: bool) -> str:
    """Return what a run has where it has no picture of any of these kinds, as "no packets"."""
    reasons = dict.fromkeys(NOTHING.get(kind, NO_PACKETS) for kind in kinds)
    return "; ".join(reasons) + is_part * "; or none of it between the times that are drawn"


TEXTS = {"xplot": "time-sequence", "multitracer": "link"}
"""Formats of ``airpath plot`` that are text for other programs, and the kind that each shows; a
module of the same name writes it."""


class Course(NamedTuple):
    """Subject of a series over time."""

    text: str
    """Label of its axis."""
    unit: str
    """Of the values: bit/s, s, packets or B."""


COURSES = {
    "goodput": Course("Goodput", "bit/s"),
    "delay": Course("One-way delay", "s"),
    "queue": Course("Queue", "packets"),
    "cwnd": Course("cwnd", "B"),
}
"""Courses of a set of runs by name; the picture of each is ``NAME-course``."""

COURSE_PICTURES = tuple(f"{name}-course" for name in COURSES)

SETS = ("distribution", "cdf", *COURSE_PICTURES)
"""Of sets of runs."""

SWEEP = "sweep"
"""Metrics over what an experiment sweeps."""

ALL = (*RUN, *SETS, SWEEP)
"""Names for ``airpath plot --only`` and ``airpath.plot``."""
