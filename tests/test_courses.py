# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Courses over time: what a run's are, and their bands over replications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from airpath.natural import natural_order
from airpath.plots import courses
from airpath.plots.course_panels import draw_courses
from airpath.plots.kinds import COURSE_PICTURES, COURSES
from airpath.run import TCP_STATE_COLUMNS, load_run
from airpath.tcp import goodput_events
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    write_run(tmp_path / "run", seed=1, size=6400)
    return load_run(tmp_path / "run")


def test_goodput_sums_to_the_bytes_that_arrived(run: Run) -> None:
    length_ns = 2 * run.duration_ns
    found = courses.courses_of(run, "set", length_ns, ["goodput"]).values["goodput", "downlink"]
    step_s = length_ns / 1e9 / courses.COURSE_BINS
    arrived = goodput_events(run, "downlink")["bytes"].sum()
    assert (found * step_s / 8).sum() == pytest.approx(arrived)
    assert not found[courses.COURSE_BINS // 2 + 1 :].any(), "after its end a run carries nothing"


def test_delays_and_queues_end_with_the_run(run: Run) -> None:
    found = courses.courses_of(run, "set", 2 * run.duration_ns, ["delay", "queue"]).values
    for key in (("delay", "downlink"), ("queue", "downlink")):
        assert np.isfinite(found[key]).any()
        assert np.isnan(found[key][courses.COURSE_BINS // 2 + 1 :]).all()
    lengths = run.events.filter((pl.col("stage") == "queue") & (pl.col("direction") == "downlink"))[
        "queue_packets"
    ]
    most = lengths.max()
    assert isinstance(most, int)
    assert 0 < np.nanmax(found["queue", "downlink"]) <= most


def test_the_window_is_that_of_the_socket_that_sent_most(run: Run) -> None:
    rows = {
        "time_ns": [0, 500, 600, 750],
        "end": ["server"] * 4,
        "socket": [1, 1, 2, 1],
        "cwnd": [10, 20, 99, 20],
        "mss": [100] * 4,
        "bytes_acked": [0, 5000, 2000, 6000],
    }
    run.__dict__["tcp_state"] = pl.DataFrame(rows).select(
        (pl.col(name) if name in rows else pl.lit(None).alias(name)).cast(dtype)
        for name, dtype in TCP_STATE_COLUMNS.items()
    )
    found = courses.courses_of(run, "set", 1000, ["cwnd"]).values
    assert list(found) == [("cwnd", "downlink")]
    window = found["cwnd", "downlink"]
    assert window[0] == pytest.approx(1000)
    assert window[int(0.7 * courses.COURSE_BINS)] == pytest.approx(2000)
    assert np.isnan(window[-1]), "nothing was told any more"


def test_bands_want_half_of_the_runs() -> None:
    low, middle, high = courses.bands(
        [np.array([1.0, 1.0, np.nan]), np.array([3.0, np.nan, np.nan]), np.array([2.0] * 3)]
    )
    assert middle.tolist()[:2] == [2.0, 1.5]
    assert low[0] == pytest.approx(1.1)
    assert high[0] == pytest.approx(2.9)
    assert np.isnan([low[2], middle[2], high[2]]).all(), "one of three"


def test_a_picture_for_each_kind_names_sets_and_units(run: Run) -> None:
    found = [
        courses.courses_of(run, name, run.duration_ns, COURSES)
        for name in ("4 packets", "16 packets")
    ]
    pictures = draw_courses(found, run.duration_ns, COURSE_PICTURES)
    assert [one.name for one in pictures] == ["goodput-course", "delay-course", "queue-course"]
    labels = [axis.get_ylabel() for axis in pictures[1].figure.get_axes()]
    assert any("One-way delay, downlink" in label for label in labels)
    texts = [text.get_text() for text in pictures[0].figure.legends[0].get_texts()]
    assert texts == ["4 packets: median, 5 to 95 %", "16 packets: median, 5 to 95 %"]


def test_names_are_in_the_order_of_their_numbers() -> None:
    assert natural_order(["b16", "b4", "a9", "b0.5", "10", "a"]) == [
        "10",
        "a",
        "a9",
        "b0.5",
        "b4",
        "b16",
    ]


def test_names_are_in_the_order_of_their_amounts_whatever_the_units() -> None:
    assert natural_order(["limit=1s", "limit=300ms", "limit=20ms"]) == [
        "limit=20ms",
        "limit=300ms",
        "limit=1s",
    ]
    assert natural_order(["2 Gbit/s", "64 kbit/s", "1Mbit/s"]) == [
        "64 kbit/s",
        "1Mbit/s",
        "2 Gbit/s",
    ]
