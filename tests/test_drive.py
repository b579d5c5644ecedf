# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Courses: read from files, and played over a run that notes what it is told."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from airpath.control import ControlError
from airpath.drive.course import Course, CourseError, read_course
from airpath.drive.player import Player
from airpath.drive.rates import rates_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

BOTH = ("uplink", "downlink")
TRAM = """# A tram through a short tunnel.
time_s, downlink_rate_mbps, uplink_rate, delay_ms, loss_percent, state, x_m, y_m
10, 20, 5 Mbit/s, 30, 0, , 0, 0
12, 4, , 60, 2.5, far, 40, 0
14, 0, , , , , 40, 30
"""


def course_of(folder: Path, text: str, name: str = "tram.csv") -> Course:
    """Return the course of a file with a text."""
    (folder / name).write_text(text)
    return read_course(folder / name, rates_of, BOTH)


def test_a_table_has_values_in_base_units_from_time_zero_on(tmp_path: Path) -> None:
    course = course_of(tmp_path, TRAM)
    assert course.times_s == (0, 2, 4)
    assert course.values == {
        "downlink rate": (20e6, 4e6, 0.0),
        "uplink rate": (5e6, None, None),
        "uplink delay": pytest.approx((0.03, 0.06, None)),
        "downlink delay": pytest.approx((0.03, 0.06, None)),
        "uplink loss": pytest.approx((0.0, 0.025, None)),
        "downlink loss": pytest.approx((0.0, 0.025, None)),
    }
    assert course.states == (None, "far", None)
    assert course.place_at(1) == (20, 0)
    assert course.place_at(3) == (40, 15)
    assert course.place_at(-1) == (0, 0)
    assert course.place_at(9) == (40, 30)


def test_a_trace_of_rates_is_the_rate_of_the_directions_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "up.csv").write_text("time_ms,rate_mbps\n500,5\n1500,2\n")
    course = read_course(tmp_path / "up.csv", rates_of, ("uplink",))
    assert (course.times_s, course.values) == ((0, 1), {"uplink rate": (5e6, 2e6)})


def test_a_route_is_projected_onto_metres(tmp_path: Path) -> None:
    points = [(60.17, 24.94, "00"), (60.171, 24.94, "08"), (60.171, 24.942, "16")]
    text = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><time>2026-11-24T09:00:{at}Z</time></trkpt>'
        for lat, lon, at in points
    )
    head = '<gpx xmlns="http://www.topografix.com/GPX/1/1">'
    route = course_of(tmp_path, f"{head}<trk><trkseg>{text}</trkseg></trk></gpx>", "a.gpx").route
    assert [point[0] for point in route] == [0, 8, 16]
    # A thousandth of a degree north is 111.195 m; east, at 60.17 degrees, half of that.
    assert route[1][1:] == pytest.approx((0, 111.195), abs=0.01)
    assert route[2][1:] == pytest.approx((110.634, 111.195), abs=0.05)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time_s,wind\n0,1\n", "`wind` is no column"),
        ("time_s,rate\n", "no points"),
        ("time_s,delay_ms,loss\n0,1\n", "row 2 has 2 values, not 3"),
        ("time_s,delay_ms,loss\n0,1,2\n", "out of range"),
        ("time_s,delay,loss\n0,1 parsec,0\n", "no unit that fits a delay"),
        ("time_s,delay_ms,loss\n0,1,0\n0,2,0\n", "times must ascend"),
        ("time_s,delay_ms,delay_ms\n0,1,0\n", "same name"),
        ("time_s,delay_ms,loss\n0,nan,0\n", "no delay"),
    ],
)
def test_what_is_no_course_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    if "rate\n" in text:
        text = text.replace("rate", "rate,loss")
    with pytest.raises(CourseError, match=words):
        course_of(tmp_path, text)


@pytest.mark.parametrize(
    "text", ["<gpx/>", "<gpx", '<!DOCTYPE gpx [<!ENTITY a "b">]><gpx>&a;</gpx>', "\x00"]
)
def test_what_is_no_route_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CourseError):
        course_of(tmp_path, text, "a.gpx")


class Notes:
    """A run that notes what it is told, and may end."""

    def __init__(self, most: int = 1_000) -> None:
        self.told: list[Any] = []
        self.most = most
        self.news = threading.Condition()

    def _note(self, what: Any) -> None:
        with self.news:
            if len(self.told) >= self.most:
                raise ControlError("ended", "the run has ended")
            self.told.append(what)
            self.news.notify_all()

    def set(self, parameters: Mapping[str, object]) -> None:
        """Note parameters."""
        self._note(dict(parameters))

    def state(self, name: str) -> None:
        """Note a state."""
        self._note(name)

    def until(self, holds: Callable[[list[Any]], bool]) -> None:
        """Wait until what was told is as wanted."""
        with self.news:
            assert self.news.wait_for(lambda: holds(self.told), 60), self.told


def loss(probability: float) -> dict[str, object]:
    """Return the table for losses of packets."""
    return {"type": "bernoulli", "per": "packet", "probability": probability, "effect": "drop"}


def test_a_course_is_played_point_by_point(tmp_path: Path) -> None:
    run = Notes()
    player = Player(course_of(tmp_path, TRAM), run, "radio", user="alice", speed=20)
    player.start()
    player.wait()
    assert player.status()["t"] == 4
    player.stop()
    first, state, second, third = run.told
    assert first == {
        "alice.radio.downlink.blackout": "none",
        "alice.radio.downlink.rate": "20000000 bit/s",
        "alice.radio.uplink.rate": "5000000 bit/s",
        "alice.radio.uplink.propagation": "30000000 ns",
        "alice.radio.downlink.propagation": "30000000 ns",
        "alice.radio.uplink.errors": {"type": "none"},
        "alice.radio.downlink.errors": {"type": "none"},
    }
    assert state == "alice.far"
    assert second["alice.radio.uplink.propagation"] == "60000000 ns"
    assert second["alice.radio.uplink.errors"] == loss(0.025)
    assert "alice.radio.uplink.rate" not in second
    assert third == {"alice.radio.downlink.blackout": "store"}


def test_a_course_is_paused_moved_and_played_again(tmp_path: Path) -> None:
    run = Notes()
    player = Player(course_of(tmp_path, TRAM), run, "radio", speed=0.001)
    player.start()
    run.until(lambda told: len(told) == 1)
    player.pause()
    before = player.status()["t"]
    time.sleep(0.05)
    assert player.status()["t"] == before
    player.seek(2.5)
    # Everything that holds there, also what was set by earlier points.
    run.until(lambda told: len(told) == 3)
    assert run.told[1] == "far"
    assert run.told[2]["radio.uplink.rate"] == "5000000 bit/s"
    assert run.told[2]["radio.downlink.rate"] == "4000000 bit/s"
    assert player.status()["place"] == (40, 7.5)
    player.set_speed(50)
    player.play()
    player.wait()
    assert run.told[-1] == {"radio.downlink.blackout": "store"}
    with pytest.raises(ValueError, match="speed"):
        player.set_speed(0)
    player.stop()


def test_a_course_ends_with_its_run(tmp_path: Path) -> None:
    run = Notes(most=1)
    player = Player(course_of(tmp_path, TRAM), run, "radio", speed=20)
    player.start()
    player.wait()
    status = player.status()
    assert (status["stopped"], status["error"]) == (True, "the run has ended")
    player.stop()
