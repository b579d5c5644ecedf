# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The time-sequence diagram: what a view holds, and how a packet is reached on the page."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from airpath.tcp import transfers
from airpath.ui.errors import UiError
from airpath.ui.transfers import MOST_MARKS, listed, shown
from ui.inpage import AXE, IN_BROWSER, violations

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from ui.served import Served


def test_a_view_holds_the_segments_of_its_time_and_numbers(download: Path) -> None:
    run = load_run(download)
    one = transfers(run)[0]
    about = listed(run)[0]
    assert about["bytes"] == one.payload_bytes
    assert about["segments"] == one.segments.height
    times = one.segments["time_ns"]
    begin, end = times[5] / 1e9, times[20] / 1e9
    view = shown(run, 0, begin, end, None, None)
    wanted = one.segments.filter(times.is_between(times[5], times[20]))
    assert [mark["pdu"] for mark in view["segments"]] == wanted["pdu"].to_list()
    assert [mark["first"] for mark in view["segments"]] == wanted["first"].to_list()
    assert view["low"] <= min(wanted["first"])
    assert not view["joined"]
    # What was acknowledged before the view begins is where its line begins.
    earlier = one.acknowledgements.filter(one.acknowledgements["time_ns"] < times[5])
    if earlier.height:
        assert view["acknowledgements"][0]["number"] == earlier["number"].max()
    low, high = wanted["first"][3], wanted["end"][5]
    part = shown(run, 0, begin, end, low, high)
    assert 0 < part["total"] < view["total"]
    assert all(mark["end"] >= low and mark["first"] <= high for mark in part["segments"])
    with pytest.raises(UiError, match="no TCP transfer 99"):
        shown(run, 99, 0, 1, None, None)


def test_a_crowded_view_joins_segments_and_loses_none(
    download: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_run(download)
    monkeypatch.setattr("airpath.ui.transfers.MOST_MARKS", 10)
    monkeypatch.setattr("airpath.ui.transfers.STRETCHES", 5)
    assert MOST_MARKS > 10
    view = shown(run, 0, 0, 1e9, None, None)
    whole = transfers(run)[0]
    assert view["joined"]
    assert sum(mark["count"] for mark in view["segments"]) == whole.segments.height
    again = [mark["count"] for mark in view["segments"] if mark["retransmission"]]
    assert sum(again) == whole.segments["retransmission"].sum()
    assert max(mark["end"] for mark in view["segments"]) == whole.payload_bytes
    assert view["acknowledgements"][-1]["number"] == whole.acknowledgements["number"].max()


@IN_BROWSER
def test_the_diagram_leads_to_a_packet_and_its_fate(
    page: Page, served: Served, download: Path
) -> None:
    shutil.copytree(download, served.folder / "results" / "sequence", dirs_exist_ok=True)
    run = load_run(download)
    one = transfers(run)[0]
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_role("link", name="results/sequence").click()
    diagram = page.get_by_role("region", name="Time-sequence diagram of TCP")
    diagram.get_by_text(re.compile(f"of {one.segments.height:,} segments in view")).wait_for()
    # By keyboard: the list of segments, a packet, the diagram around it.
    diagram.get_by_text("Segments in view", exact=True).press("Enter")
    pdu = one.segments["pdu"][12]
    diagram.get_by_role("button", name=f"Packet {pdu}", exact=True).press("Enter")
    way = page.get_by_role("region", name=f"Packet {pdu}", exact=True)
    way.get_by_text("sequence number", exact=True).first.wait_for()
    assert way.get_by_text(re.compile(r"waited [\d.]+ ms")).count() == 1
    diagram.get_by_role("button", name=f"Zoom to packet {pdu}").press("Enter")
    segment = one.segments.row(12, named=True)
    label = diagram.locator("svg text", has_text=f"{segment['first']}:{segment['end']}")
    label.first.wait_for()
    # By mouse: the mark itself.
    way.get_by_role("button", name="Close").click()
    label.first.scroll_into_view_if_needed()
    box = label.first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] - 4, box["y"] + box["height"] / 2)
    page.get_by_role("heading", name=re.compile(r"Packet \d+")).wait_for()
    group = diagram.get_by_role("group", name=re.compile("zoom, arrows move"))
    before = diagram.get_by_role("img").get_attribute("aria-label")
    group.press("ArrowRight")
    for _ in range(600):
        if diagram.get_by_role("img").get_attribute("aria-label") != before:
            break
        page.wait_for_timeout(100)
    assert diagram.get_by_role("img").get_attribute("aria-label") != before
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert not AXE.exists() or not violations(page), scheme
    page.set_viewport_size({"width": 375, "height": 740})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
