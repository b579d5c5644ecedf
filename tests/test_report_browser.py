# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The report page in a browser: drawn, zoomed, asked, sorted, filtered, printed, offline."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

import browser
from airpath.app import run as run_app
from synthetic import write_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    browser.PROGRAM is None and not os.environ.get("CI"),
    reason="neither chromium nor google-chrome is installed",
)

LIMITS = (4, 16, 8)
SEEDS = range(1, 6)

PAINTED = """(() => {
  const canvas = document.querySelector("details[open] canvas.plot");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  return seen.size;
})()"""

PICTURES = """[...document.querySelectorAll("figure.picture")].map((figure) => {
  for (let part = figure.closest("details"); part; part = part.parentElement.closest("details"))
    part.open = true;
  const box = figure.querySelector("svg").getBoundingClientRect();
  return [figure.id, box.width, box.height];
})"""

ASK_EVERYWHERE = """(() => {
  const plot = document.querySelector("figure.diagram .plot");
  const told = document.querySelector(".told"), box = plot.getBoundingClientRect();
  const out = new Set();
  for (let x = 60; x < box.width; x += 3) for (let y = 20; y < box.height; y += 5) {
    plot.dispatchEvent(new PointerEvent("pointermove",
      { clientX: box.left + x, clientY: box.top + y, pointerId: 1 }));
    out.add(told.textContent.replace(/[0-9.]+/g, "#"));
  }
  return [...out].join("\\n");
})()"""


@pytest.fixture(scope="module")
def page(download: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of an experiment of three cells, and of one download beside it."""
    root = tmp_path_factory.mktemp("page")
    for limit in LIMITS:
        for seed in SEEDS:
            cell = f"limit={limit}packets"
            folder = root / "results" / "runs" / "model" / cell / f"{seed:04}"
            write_run(folder, seed=seed, size=1280 + 256 * limit)
            about = {
                "set_name": "model",
                "cell": cell,
                "replication": seed,
                "network": "gsm",
                "workload": "download",
                "parameters": {"network.radio.link.queue.limit": f"{limit} packets"},
                "status": "succeeded",
            }
            (folder / "replication.json").write_text(json.dumps(about))
    path = root / "report.html"
    folders = [str(download), str(root / "results")]
    assert run_app(["report", *folders, "--pictures", "1", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def window(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    """Return a browser with the page in it."""
    with browser.Browser(tmp_path_factory.mktemp("browser") / "profile") as started:
        started.open(page)
        yield started


def view(window: browser.Browser) -> list[float]:
    text = window.evaluate('document.querySelector("figure.diagram .plot").dataset.view')
    return [float(edge) for edge in text.split(",")]


def test_the_page_asks_for_nothing_and_complains_of_nothing(
    window: browser.Browser, page: Path
) -> None:
    assert window.complaints == []
    beyond = [url for url in window.requests if not url.startswith("data:")]
    assert beyond == [page.as_uri()]


FOLDED = """[...document.querySelectorAll("main > section")].map((section) => {
  const part = section.querySelector(":scope > details.part");
  return [section.id, part !== null && !part.open];
})"""

SEEN = """(() => {
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= window.innerHeight;
  };
  window.scrollTo(0, 0);
  const answer = document.getElementById("answer");
  return [...answer.querySelectorAll(".answers li, .verdict-line, figure")].filter(seen).length;
})()"""

UNFOLD = 'document.querySelectorAll("details.part").forEach((part) => { part.open = true; })'


def test_the_answer_is_seen_first_and_all_else_is_folded(window: browser.Browser) -> None:
    folded = dict(window.evaluate(FOLDED))
    assert next(iter(folded)) == "answer"
    assert folded.pop("answer") is False
    assert {"comparisons", "sets", "verdicts", "runs", "configuration"} <= set(folded)
    assert all(folded.values())
    assert window.evaluate(SEEN) >= 4, "sentences, verdicts and both pictures on the first screen"


def test_a_link_opens_the_section_that_it_leads_to(window: browser.Browser) -> None:
    window.evaluate("document.querySelector('nav a[href=\"#sets\"]').click()")
    shown = "document.getElementById('table-sets').checkVisibility()"
    assert window.evaluate(f"new Promise((done) => setTimeout(() => done({shown}), 100))")
    fold = "document.querySelector('#sets > details').open = false"
    window.evaluate(f"{fold}; document.querySelector('nav a[href=\"#sets\"]').click()")
    assert window.evaluate(shown), "a second click on the same link does as well"
    row = "document.getElementById('run-1').checkVisibility()"
    assert not window.evaluate(row)
    window.evaluate("location.hash = '#run-1'")
    assert window.evaluate(f"new Promise((done) => setTimeout(() => done({row}), 100))")


@pytest.mark.parametrize("width", [1280, 400])
def test_the_first_column_stays_in_view(window: browser.Browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.ask("Emulation.setDeviceMetricsOverride", **size)
    window.evaluate(UNFOLD)
    try:
        for table in ("table-sets", "table-runs"):
            moved = window.evaluate(
                f"""(() => {{
                  const wide = document.getElementById("{table}").closest(".wide");
                  wide.scrollLeft = 10000;
                  const left = wide.getBoundingClientRect().left;
                  const head = wide.querySelector("tbody th").getBoundingClientRect();
                  return [wide.scrollLeft, head.left - left, head.width / wide.clientWidth];
                }})()"""
            )
            scrolled, apart, share = moved
            assert scrolled > 50 or width > 1000, "narrow screens scroll"
            assert abs(apart) <= 1, table
            assert share < 0.5, "and there is room for the figures"
    finally:
        window.ask("Emulation.clearDeviceMetricsOverride")


def test_pictures_and_diagrams_are_there(window: browser.Browser) -> None:
    window.evaluate(UNFOLD)
    window.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert window.evaluate(PAINTED) > 5, "colours of the first diagram"
    pictures = window.evaluate(PICTURES)
    names = {name for name, _, _ in pictures}
    expected = {"model-sweep-network-radio-link-queue-limit", "distribution-delays"}
    expected |= {f"sets-model-{kind}-course" for kind in ("goodput", "delay", "queue")}
    expected |= {
        "answer-sweep",
        "answer-distribution",
        "sets-model-distribution",
        "sets-model-cdf",
        "picture-1-time-sequence-1-downlink",
    }
    assert expected <= names
    for name, width, height in pictures:
        assert width > 500, name
        assert height > 100, name
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert window.evaluate(wide) <= 0, "the page itself does not scroll sideways"


def test_a_diagram_is_zoomed_by_box_wheel_and_keys(window: browser.Browser) -> None:
    window.evaluate('document.querySelector("figure.diagram").scrollIntoView()')
    left, top = window.evaluate(
        '(({left, top}) => [left, top])(document.querySelector("figure.diagram .plot")'
        ".getBoundingClientRect())"
    )
    whole = view(window)
    window.mouse("mouseWheel", left + 300, top + 200, deltaX=0, deltaY=0)
    assert view(window) == whole, "a plain wheel belongs to the page"
    shift, control = 8, 2
    begin, end = (left + 100, top + 100), (left + 300, top + 300)
    window.mouse("mousePressed", *begin, button="left", clickCount=1, modifiers=shift)
    window.mouse("mouseMoved", *end, button="left", buttons=1, modifiers=shift)
    window.mouse("mouseReleased", *end, button="left", clickCount=1, modifiers=shift)
    box = view(window)
    window.mouse("mouseWheel", left + 200, top + 200, deltaX=0, deltaY=-120, modifiers=control)
    closer = view(window)
    for inner, outer in ((box, whole), (closer, box)):
        assert outer[0] <= inner[0] < inner[1] <= outer[1]
        assert outer[2] <= inner[2] < inner[3] <= outer[3]
        assert inner[1] - inner[0] < 0.9 * (outer[1] - outer[0])
    window.evaluate(
        'document.querySelector("figure.diagram .plot")'
        '.dispatchEvent(new KeyboardEvent("keydown", { key: "0" }))'
    )
    assert view(window) == whole


def test_a_diagram_tells_what_the_pointer_is_at(window: browser.Browser) -> None:
    told = window.evaluate(ASK_EVERYWHERE)
    for words in (
        "segment, bytes",
        "retransmission, bytes",
        "acknowledged up to",
        "SACK, bytes",
        "dropped: channel error",
        "dropped: queue full",
    ):
        assert words in told


def test_tables_are_sorted_by_numbers_and_filtered(window: browser.Browser) -> None:
    heading = '[...document.querySelectorAll("#table-runs thead th")]'
    column = f'{heading}.find((cell) => cell.textContent === "Duration")'
    shown = (
        '[...document.querySelectorAll("#table-runs tbody tr")].filter((row) => !row.hidden)'
        ".map((row) => [row.cells[0].textContent, Number(row.cells[5].dataset.value)])"
    )
    window.evaluate(f'{column}.querySelector("button").click()')
    up = [value for _, value in window.evaluate(shown)]
    assert up == sorted(up)
    assert len(set(up)) > 2
    window.evaluate(f'{column}.querySelector("button").click()')
    assert [value for _, value in window.evaluate(shown)] == up[::-1]
    assert window.evaluate(f"{column}.ariaSort") == "descending"
    field = 'document.querySelector(".filter input")'
    window.evaluate(f'{field}.value = "LIMIT=8 0003"; {field}.dispatchEvent(new Event("input")); 0')
    rows = window.evaluate(shown)
    assert len(rows) == 1
    assert rows[0][0].endswith("model/limit=8packets/0003")
    window.evaluate(f'{field}.value = ""; {field}.dispatchEvent(new Event("input")); 0')
    assert len(window.evaluate(shown)) == len(up)


def test_the_page_prints(window: browser.Browser) -> None:
    window.evaluate('document.querySelectorAll("details.part").forEach((p) => { p.open = false; })')
    document = window.pdf()
    assert all(window.evaluate(FOLDED)[place][1] for place in (1, 2)), "folded again"
    assert document.startswith(b"%PDF")
    pages = re.findall(rb"/Type\s*/Page\b", document)
    assert len(pages) > 6, "with all that is folded on the screen"
    sizes = {
        tuple(float(edge) for edge in box.split())
        for box in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", document)
    }
    upright = [(round(w), round(h)) for _, _, w, h in sizes if w < h]
    across = [(round(w), round(h)) for _, _, w, h in sizes if w > h]
    assert upright == [(595, 842)], "A4"
    assert across == [(842, 595)], "wide tables lie across"
    assert window.complaints == []


PALE_TEXT = """(() => {
  const parts = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const behind = (one) => {
    for (let box = one; box; box = box.parentElement) {
      const colour = parts(getComputedStyle(box).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
  };
  const light = (colour) => colour.slice(0, 3)
    .map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const contrast = (first, second) => {
    const [low, high] = [light(first), light(second)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  for (const part of document.querySelectorAll("details")) part.open = true;
  return [...document.querySelectorAll("body *")]
    .filter((one) => !one.closest("svg, script, style, select"))
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((one) => contrast(parts(getComputedStyle(one).color), behind(one)) < 4.5)
    .map((one) => one.outerHTML.slice(0, 80));
})()"""

GROUNDS = """[...new Set(
  [...document.querySelectorAll("figure.picture svg, .diagram .plot, .tools .mark")]
  .map((one) => getComputedStyle(one).backgroundColor))]"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_pictures_are_seen_in_light_and_dark(window: browser.Browser, scheme: str) -> None:
    """Text has the contrast that WCAG 2.2 asks for (4.5); pictures keep the ground they are for."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    window.ask("Emulation.setEmulatedMedia", features=media)
    try:
        paper = window.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 22, 22)"}[scheme]
        assert window.evaluate(PALE_TEXT) == []
        if scheme == "dark":
            assert window.evaluate(GROUNDS) == ["rgb(255, 255, 255)"]
    finally:
        window.ask("Emulation.setEmulatedMedia", features=[])
