# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Drive mode: a course that plays over a run, by mouse and keyboard, with its plan."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from airpath.run import load_run
from ui.inpage import AXE, IN_BROWSER, violations
from ui.served import PATIENCE_S, started
from ui.test_runs import ended

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from ui.served import Served

TRAM = """time_s, rate_mbps, delay_ms, loss_percent, x_m, y_m
0, 5, 10, 0, 0, 0
20, 2, 40, 0, 400, 0
40, 1, 80, 10, 400, 300
60, 8, 20, 0, 900, 300
"""


def test_a_course_is_played_by_requests(served: Served, link: str) -> None:
    (served.folder / "tram.csv").write_text(TRAM)
    (served.folder / "wind.csv").write_text("time_s,wind,loss\n0,1,0\n")
    assert "tram.csv" in served.ask("/api/courses").json
    course = served.ask("/api/course?name=tram.csv").json
    assert course["duration_s"] == 60
    assert course["values"]["uplink rate"] == [5e6, 2e6, 1e6, 8e6]
    assert course["route"][-1] == [60, 900, 300]
    answer = served.ask("/api/course?name=wind.csv")
    assert answer.status == 422
    assert "wind" in answer.json["error"]
    assert served.ask("/api/course?name=../secret.csv").status == 403
    assert served.ask("/api/course?name=gone.csv").status == 404
    assert served.ask("/api/course?name=tried.toml").status == 400
    run = started(served, "driven", link, "sleep 300")["run"]
    address = f"/api/runs/{run}/drive"
    assert served.ask(f"{address}/steer", {"pause": True}).status == 404
    assert served.ask(address, {"name": "tram.csv", "speed": -1}).status == 400
    assert served.ask(address, {"name": "tram.csv", "speed": 1000}).status == 200
    until_value(served, run, "radio.uplink.rate", "8 Mbit/s")
    assert served.ask(f"{address}/steer", {"pause": True, "seek": 45}).json["playing"] is False
    until_value(served, run, "radio.uplink.propagation", "80 ms")
    until_value(served, run, "radio.downlink.rate", "1 Mbit/s")
    assert served.ask(f"{address}/steer", {"speed": "fast"}).status == 400
    assert served.ask(f"{address}/steer", {"stop": True}).json["stopped"] is True
    served.ask("/api/started/driven/stop", {})
    ended(served, "driven")
    events = load_run(served.folder / "results/driven").events
    assert events.filter(events["kind"] == "parameter_set").height >= 3


@IN_BROWSER
def test_a_course_is_driven_on_the_page(page: Page, served: Served, link: str) -> None:
    (served.folder / "tram.csv").write_text(TRAM)
    run = started(served, "tram", link, "ping -i 0.1 -s 500 server")
    page.get_by_role("link", name="Drive", exact=True).click()
    page.get_by_role("button", name=f"Follow Run {run['run']}").click()
    page.get_by_role("combobox", name="Course", exact=True).select_option("tram.csv")
    plan = page.get_by_role("img", name=re.compile("Plan of the route"))
    plan.wait_for()
    position = page.get_by_role("slider", name="Time of the course")
    page.get_by_role("button", name="Play the course").press("Enter")
    page.get_by_role("button", name="Pause the course").wait_for()
    rate = page.get_by_role("slider", name="radio uplink: rate")
    # The sliders show what the course sets.
    position.fill("25")
    until(page, rate, "2 Mbit/s")
    until(page, page.get_by_role("slider", name="radio downlink: delay"), "40 ms")
    assert float(position.input_value()) >= 25
    # The marker stands on the plan where the course is: from (400, 0) to (400, 300) in 20 s.
    marker = plan.locator("circle.marker")
    assert float(marker.get_attribute("cx") or 0) == pytest.approx(400, abs=1)
    before = float(marker.get_attribute("cy") or 0)
    page.wait_for_timeout(500)
    assert float(marker.get_attribute("cy") or 0) < before
    assert "east" in (position.get_attribute("aria-valuetext") or "")
    page.get_by_role("button", name="Pause the course").press("Space")
    page.get_by_role("button", name="Play the course").wait_for()
    # By keyboard: the end of the course.
    position.press("End")
    until(page, rate, "8 Mbit/s")
    # A click on the plan goes to the place.
    box = plan.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.12, box["y"] + box["height"] * 0.75)
    until(page, rate, "5 Mbit/s")
    # Another client moves the sliders too.
    served.ask(f"/api/runs/{run['run']}/command", {"set": {"radio.link.rate": "64 kbit/s"}})
    until(page, rate, "64 kbit/s")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert not AXE.exists() or not violations(page), scheme
    page.set_viewport_size({"width": 375, "height": 740})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name="Stop the course").click()
    served.ask("/api/started/tram/stop", {})
    ended(served, "tram")


def until_value(served: Served, run: int, name: str, value: str) -> None:
    """Wait until a parameter of a run has a value."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = served.ask(f"/api/runs/{run}/command", {"get": [name]}).json["values"]
        if found == {name: value}:
            return
        assert time.monotonic() < end, found
        time.sleep(0.1)


def until(page: Page, slider: Any, text: str) -> None:
    """Wait until a slider says something."""
    for _ in range(1200):
        if slider.count() and slider.get_attribute("aria-valuetext") == text:
            return
        page.wait_for_timeout(100)
    assert slider.get_attribute("aria-valuetext") == text


def test_following_a_run_tells_its_course(served: Served, link: str) -> None:
    (served.folder / "tram.csv").write_text(TRAM)
    run = started(served, "told", link, "sleep 2")["run"]
    served.ask(f"/api/runs/{run}/drive", {"name": "tram.csv"})
    lines = [json.loads(line) for line in served.ask(f"/api/runs/{run}/follow").body.splitlines()]
    drives = [line["drive"] for line in lines if line.get("drive")]
    assert drives[0]["playing"] is True
    assert drives[0]["name"] == "tram.csv"
    times = [one["t"] for one in drives]
    assert times == sorted(times)
    assert times[-1] > times[0]
    ended(served, "told")
