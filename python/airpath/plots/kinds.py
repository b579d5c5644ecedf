# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The kinds of pictures, each declared once: what ``--only`` takes, and what draws it.

Nothing heavy is imported here: every start of the command comes by.
"""

from __future__ import annotations

from typing import NamedTuple

RUN = {
    "time-sequence": "time_sequence",
    "throughput": "throughput",
    "queue": "queue",
    "delay": "delay",
    "fairness": "fairness",
    "tcp-state": "tcp_state",
    "link": "link",
}
"""Of one run: the name of a kind, and the module of ``airpath.plots`` that draws it."""


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
