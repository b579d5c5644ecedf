# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page in a browser: built, driven, looked at; by mouse, by keyboard, on a phone."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from airpath.run import load_run
from ui.bench import browsers, first_view, live
from ui.case_study import build, compose, table_of
from ui.inpage import AXE, IN_BROWSER, PATIENCE_MS, violations
from ui.served import Served

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

pytestmark = IN_BROWSER


def test_the_token_does_not_stay_in_the_address(page: Page, served: Served) -> None:
    assert served.token not in page.url
    page.reload()
    page.get_by_text("The scenario is valid.").wait_for()


def test_without_the_token_the_page_shows_nothing(browser: Browser, served: Served) -> None:
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(f"http://127.0.0.1:{served.port}/")
    opened.get_by_role("heading", name="This page needs its token").wait_for()
    assert opened.get_by_role("navigation").count() == 0
    context.close()


def test_the_link_of_seawinds_case_study_is_built_by_clicks(page: Page, served: Served) -> None:
    build(page)
    compose(page, "case-study", "virtual", "10 kB", 3)
    seven = table_of(page, "case-study", "virtual")["virtual/limit=7packets"]
    assert list(seven.values())[1] == "3"
    # 10 kB and headers at 9600 bit/s take 9 s at least.
    assert 9 < float(list(seven.values())[4].split()[0]) < 30
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("columnheader", name="difference ± 95 %").wait_for()
    assert page.get_by_role("cell", name="elapsed (s)", exact=True).count() == 1


LIVE = """name = "train"

[[hops]]
name = "radio"

[hops.link]
rate = "2 Mbit/s"
propagation = "20 ms"
queue = { type = "tail_drop", limit = "20 packets" }

[[states]]
name = "far"
set = { "radio.link.rate" = "300 kbit/s" }

[[states]]
name = "near"
set = { "radio.link.rate" = "5 Mbit/s" }
"""


NOTE_WORDS = """() => {
    window.words = {};
    const pictures = new Map();
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        if (!pictures.has(this.canvas)) pictures.set(this.canvas, pictures.size);
        (window.words[pictures.get(this.canvas)] ??= []).push(text);
        return write.call(this, text, ...place);
    };
}"""
"""Notes the words in each picture."""


def test_a_run_is_driven_through_two_handovers(page: Page, served: Served) -> None:
    page.get_by_role("textbox", name="Scenario (TOML)").fill(LIVE)
    page.get_by_text("The scenario is valid.").wait_for()
    page.get_by_role("link", name="Drive", exact=True).click()
    page.get_by_label("Name of the run").fill("train")
    page.get_by_label("Command at the client").fill("ping -i 0.05 -s 1000 server")
    page.get_by_role("button", name="Start", exact=True).click()
    states = page.get_by_role("group", name="Enter a state")
    for name in ("far", "near"):
        states.get_by_role("button", name=name).click()
        page.get_by_text(f"State: {name}").wait_for()
        page.wait_for_timeout(700)
    page.get_by_role("slider", name="radio uplink: delay").fill("0.6")
    page.get_by_text("in force at").wait_for()
    # The curve's last value is a delay of the event log, in ms.
    page.get_by_text("One-way delay").wait_for()
    assert page.locator("figure").count() >= 3
    page.get_by_role("button", name="Set a mark").click()
    assert not AXE.exists() or not violations(page)
    page.get_by_role("button", name="End the run").click()
    page.get_by_text("The run has ended.").wait_for()
    shown = page.locator("figure", has_text="One-way delay").locator("p").inner_text()
    page.evaluate(NOTE_WORDS)
    # Runs of other tests have such links too.
    page.locator('a[href="#/look/results%2Ftrain"]').first.click()
    page.get_by_role("heading", name="results/train").wait_for()
    # The changes of the link are told, and marked in each curve.
    page.get_by_text(re.compile(r"Changes of the link: .*far at [\d.]+ s.*near at")).wait_for()
    pictures = page.locator("figure").count()
    page.wait_for_function("wanted => Object.keys(window.words).length >= wanted", arg=pictures)
    for words in page.evaluate("Object.values(window.words)"):
        assert {"far", "near"} <= {*words}
    run = load_run(served.folder / "results/train")
    changes = run.events.filter(run.events["kind"] == "state_changed")["state"].to_list()
    assert [one for one in changes if one in ("far", "near")] == ["far", "near"]
    offered = {
        (row["pdu"], row["direction"]): row["time_ns"]
        for row in run.events.filter(run.events["kind"] == "offered").to_dicts()
    }
    last = {
        row["direction"]: (row["time_ns"] - offered[row["pdu"], row["direction"]]) / 1e6
        for row in run.events.filter(run.events["kind"] == "delivered").to_dicts()
    }
    told = {part.split()[0]: f"{float(part.split()[1]):.3g}" for part in shown.split(", ")}
    assert told == {direction: f"{delay:.3g}" for direction, delay in last.items()}
    # A packet's way, opened from the list.
    page.get_by_role("button", name="Packet 1", exact=True).click()
    way = page.get_by_role("region", name="Packet 1", exact=True)
    way.get_by_text("delivered").first.wait_for()
    assert "ICMP" in way.inner_text()
    assert not AXE.exists() or not violations(page)


def test_hostile_words_stay_words(page: Page, served: Served) -> None:
    bad = '<img src=x onerror=\\"window.hit=1\\"><script>window.hit=1</script>'
    page.get_by_role("textbox", name="Scenario (TOML)").fill(
        LIVE.replace('name = "train"', f'name = "{bad}"\ndescription = "{bad}"')
    )
    page.wait_for_timeout(800)
    folder = served.folder / "results" / "<img src=x onerror=window.hit=1>"
    folder.mkdir(parents=True)
    manifest = {
        "format_version": 1,
        "status": "<script>window.hit=1</script>",
        "scenario": {"name": "<svg onload=window.hit=1>"},
        "clock": "<b onmouseover=window.hit=1>live</b>",
        "results": {"verdict": {"grade": '"><script>window.hit=1</script>', "reasons": []}},
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_role("link", name="<img src=x onerror").click()
    page.wait_for_timeout(800)
    assert page.evaluate("window.hit") is None
    answer = served.ask(f"/api/past/report?name=results/{folder.name.replace(' ', '%20')}")
    if answer.status == 200:
        assert answer.headers["content-security-policy"].startswith("sandbox")
    shutil.rmtree(folder)


def test_all_is_reached_by_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "(document.activeElement.getAttribute('aria-label') || "
                "document.activeElement.labels?.[0]?.textContent || "
                "document.activeElement.textContent).trim().slice(0, 40)"
            )
        )
    for wanted in ("Build", "Drive", "New scenario", "Add a hop", "Both directions", "Uplink"):
        assert any(one.startswith(wanted) for one in seen), (wanted, seen)
    hop = page.get_by_role("button", name="Hop radio")
    page.get_by_role("button", name="Add a hop").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Hop hop2").wait_for()
    hop.focus()
    page.keyboard.press("Space")
    page.get_by_role("heading", name="Hop radio").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(page: Page, scheme: Any) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make setup with npm installs it")
    page.emulate_media(color_scheme=scheme)
    for view in ("Build", "Drive", "Look", "Experiment"):
        page.get_by_role("link", name=view, exact=True).click()
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_timeout(500)
        assert not violations(page), view


def test_nothing_is_wider_than_a_phone(browser: Browser, served: Served) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 740}, has_touch=True)
    opened = context.new_page()
    opened.goto(served.address)
    for view in ("Build", "Drive", "Look", "Experiment"):
        opened.get_by_role("link", name=view, exact=True).click()
        opened.get_by_role("heading", level=1).wait_for()
        opened.wait_for_timeout(500)
        wide = opened.evaluate("document.documentElement.scrollWidth")
        assert wide <= 375, view
    context.close()


def test_a_run_with_transfers_is_no_wider_than_a_phone(
    browser: Browser, tmp_path: Path, download: Path
) -> None:
    shutil.copytree(download, tmp_path / "results/download")
    context = browser.new_context(viewport={"width": 375, "height": 740}, has_touch=True)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)

    def two(route: Route) -> None:
        answer = route.fetch()
        [one] = answer.json()
        long = "[fd61:6972:7000::1]:5201 → [fd61:6972:7000::2]:41904"
        route.fulfill(response=answer, json=[one | {"label": long}] * 2)

    opened.route("**/api/past/transfers?*", two)
    with Served(tmp_path) as page:
        opened.goto(page.address)
        opened.get_by_text("The scenario is valid.").wait_for()
        opened.goto(f"http://127.0.0.1:{page.port}/#/look/results%2Fdownload")
        opened.get_by_role("heading", name="results/download").wait_for()
        opened.get_by_label("Transfer").wait_for()
        opened.get_by_role("region", name="Packets").locator("tbody button").first.click()
        opened.get_by_role("heading", name="Its way").wait_for()
        assert opened.evaluate("document.documentElement.scrollWidth") <= 375
    context.close()


def test_the_benchmark_of_the_page_measures(browser: Browser) -> None:
    """A second of each part; figures are for `scripts/bench --only page`."""
    view = first_view(browser, 1, throttle=1)
    assert 0 < view["useful_ms"][0] < PATIENCE_MS
    seen: list[str] = []
    told = live(browser, 4, seen.append, packets_per_s=200)
    assert len(seen) >= 3
    assert told["server_bytes"][-1] > told["heap_bytes"][-1] > 1e6
    many = browsers(browser, 2, 2, packets_per_s=200)
    assert len(many["frames_per_s"]) == 2
    assert min(many["frames_per_s"]) > 0
    assert min(many["drawings_per_s"]) > 0
    assert many["script_ms_per_frame"] > 0
    assert many["server_s_per_million_points"] > 0
    assert many["server_processors"] > 0
    assert many["points"] > 0
    assert many["points_lost"] == [0, 0]
