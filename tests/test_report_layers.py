# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The layers of links on the report page: the points that are kept, and the page in a browser."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import browser
from airpath.app import run as run_app
from airpath.engine import find_engine
from airpath.report.sections import layers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOSSES = (
    'radio.link.errors={ type = "bernoulli", probability = 0.05, per = "block", block = "20 ms" }'
)
PLOT = 'document.querySelector("figure.layers .plot")'

ASK_EVERYWHERE = f"""(() => {{
  const plot = {PLOT}, told = document.querySelector("figure.layers .told");
  const box = plot.getBoundingClientRect(), out = new Set();
  for (let x = 62; x < box.width; x += 2) for (let y = 22; y < box.height; y += 4) {{
    plot.dispatchEvent(new PointerEvent("pointermove",
      {{ clientX: box.left + x, clientY: box.top + y, pointerId: 1 }}));
    out.add(told.textContent.replace(/-?[0-9][0-9.,]*/g, "#"));
  }}
  return [...out].join("\\n");
}})()"""


def test_no_extreme_of_many_points_is_lost() -> None:
    rng = np.random.default_rng(5)
    number = 100_000
    values = rng.integers(0, 1000, number)
    values[[40_001, 70_003]] = -5, 5000
    points = pl.DataFrame(
        {"time_ns": np.arange(number, dtype=np.int64) * 1_000_000, "value": values}
    )
    notes: list[str] = []
    kept = layers.binned(points, "curve", notes, is_line=False)
    assert kept["count"] == number
    assert len(kept["time"]) == len(kept["value"]) <= 4 * layers.MOST_BINS
    assert "of 100,000 points" in notes[0]
    times = list(accumulate(kept["time"]))
    assert times == sorted(times)
    assert times[0] == 0
    assert times[-1] == (number - 1) * 1000
    found = dict(zip(times, kept["value"], strict=True))
    assert (found[40_001_000], found[70_003_000]) == (-5, 5000)
    # The least and the greatest of every bin are what they are of all points in it.
    width_us = ((number - 1) * 1_000_000 // layers.MOST_BINS + 1) / 1000
    of_all, of_kept = [
        pl.DataFrame({"bin": np.asarray(at) // width_us, "value": value})
        .group_by("bin", maintain_order=True)
        .agg(low=pl.col("value").min(), high=pl.col("value").max())
        for at, value in (
            (np.arange(number) * 1000, values.tolist()),
            (times, kept["value"]),
        )
    ]
    assert of_all.height == layers.MOST_BINS
    assert of_kept.equals(of_all)
    few: list[str] = []
    whole = layers.binned(points.head(5000), "curve", few, is_line=False)
    assert len(whole["value"]) == 5000
    assert few == []


def test_a_line_keeps_its_changes_alone() -> None:
    points = pl.DataFrame({"time_ns": [0, 1000, 2000, 3000, 4000], "value": [1, 1, 2, 2, 2]})
    kept = layers.binned(points, "curve", [], is_line=True)
    assert list(accumulate(kept["time"])) == [0, 2, 4]
    assert kept["value"] == [1, 2, 2]
    assert layers.binned(points.head(0), "curve", [], is_line=True)["time"] == []


def test_layers_need_no_pictures_and_are_some_of_each_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one/0001", "one/0002", "other/0001", "plain/0001"):
        profile = "lte-good" if name.startswith("plain") else "gsm-rlp-9.6k"
        command = [
            *(find_engine(), "sim", "--profile", profile, "--seed", name[-1]),
            *("--workload", "cbr rate=2kbit/s size=200 from=client duration=3s"),
            *("--out", str(tmp_path / "runs" / name)),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    page = tmp_path / "report.html"

    def shown() -> list[str]:
        words = ["report", str(tmp_path / "runs"), "--pictures", "0", "--out", str(page)]
        assert run_app(words) == 0
        return re.findall(r'<details class="layers" id="(.+?)"', page.read_text())

    assert shown() == ["layers-1", "layers-2", "layers-3"]
    assert "more runs have no layers here" not in page.read_text()
    assert 'id="pictures"' not in page.read_text()
    monkeypatch.setattr(layers, "MOST_RUNS", 2)
    assert shown() == ["layers-1", "layers-3"], "the first run of each set"
    assert "1 more runs have no layers here: 2 have" in page.read_text()


def test_many_pictures_have_coarser_bins(tmp_path: Path) -> None:
    command = [
        *(find_engine(), "sim", "--profile", "gsm-rlp-9.6k", "--seed", "7"),
        *("--workload", "cbr rate=2kbit/s size=200 from=client duration=60s"),
        *("--out", str(tmp_path / "run")),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)

    def points(most_bins: int) -> int:
        (drawn,) = layers.draw_run(layers.Task(tmp_path / "run", 1, 60 * 10**9, most_bins)).diagrams
        panels = drawn.content["panels"]
        return max(len(series["value"]) for panel in panels for series in panel["series"])

    assert points(4 * layers.LEAST_BINS) > 4 * layers.LEAST_BINS
    assert points(1) <= 4 * layers.LEAST_BINS


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    """Return a browser with a page about a run of datagrams over RLP."""
    if browser.PROGRAM is None and not os.environ.get("CI"):
        pytest.skip("neither chromium nor google-chrome is installed")
    root = tmp_path_factory.mktemp("layers")
    command = [
        *(find_engine(), "sim", "--profile", "gsm-rlp-9.6k", "--seed", "7", "--set", LOSSES),
        *("--workload", "cbr rate=2kbit/s size=200 from=server duration=30s"),
        *("--out", str(root / "run")),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    path = root / "report.html"
    assert run_app(["report", str(root / "run"), "--out", str(path)]) == 0
    with browser.Browser(root / "profile") as started:
        started.open(path)
        assert [url for url in started.requests if not url.startswith("data:")] == [path.as_uri()]
        started.evaluate(
            'document.querySelectorAll("details.part").forEach((part) => { part.open = true; })'
        )
        started.evaluate("new Promise((done) => setTimeout(done, 100))")
        started.evaluate('document.querySelector("figure.layers").scrollIntoView()')
        yield started


def seen(window: browser.Browser) -> tuple[list[float], dict[str, tuple[float, float]]]:
    """Return the span of time in view, and the limits of each panel."""
    view = window.evaluate(f"{PLOT}.dataset.view").split(",")
    panels = {}
    for panel in window.evaluate(f"{PLOT}.dataset.panels").split("; "):
        name, _, limits = panel.rpartition(": ")
        low, high = limits.split()
        panels[name] = (float(low), float(high))
    return [float(edge) for edge in view], panels


def test_panels_are_zoomed_and_moved_together(window: browser.Browser) -> None:
    whole, panels = seen(window)
    assert list(panels) == ["Sockets (kB)", "Delay (s)", "Frames, N(S)", "Waiting"]
    left, top = window.evaluate(f"(({{left, top}}) => [left, top])({PLOT}.getBoundingClientRect())")
    shift, control = 8, 2
    begin, end = (left + 400, top + 100), (left + 600, top + 300)
    window.mouse("mousePressed", *begin, button="left", clickCount=1, modifiers=shift)
    window.mouse("mouseMoved", *end, button="left", buttons=1, modifiers=shift)
    window.mouse("mouseReleased", *end, button="left", clickCount=1, modifiers=shift)
    part, closer = seen(window)
    assert whole[0] < part[0] < part[1] < whole[1]
    # Each panel fits its height to what is in view.
    for name in ("Sockets (kB)", "Frames, N(S)"):
        (low, high), (least, most) = closer[name], panels[name]
        assert high - low < 0.6 * (most - least)
    window.mouse("mouseWheel", left + 300, top + 200, deltaX=0, deltaY=-120, modifiers=control)
    nearer, _ = seen(window)
    assert nearer[1] - nearer[0] == pytest.approx(0.8 * (part[1] - part[0]), rel=1e-3)
    window.mouse("mouseWheel", left + 300, top + 200, deltaX=0, deltaY=0)
    assert seen(window)[0] == nearer, "a plain wheel belongs to the page"

    def press(key: str) -> None:
        window.evaluate(f'{PLOT}.dispatchEvent(new KeyboardEvent("keydown", {{ key: "{key}" }}))')

    press("ArrowRight")
    moved, _ = seen(window)
    assert moved[0] == pytest.approx(nearer[0] + (nearer[1] - nearer[0]) / 8, abs=1)
    assert moved[1] - moved[0] == pytest.approx(nearer[1] - nearer[0], abs=1)
    press("0")
    assert seen(window) == (whole, panels)
    assert window.complaints == []


def test_points_are_told_and_kinds_are_hidden(window: browser.Browser) -> None:
    told = window.evaluate(ASK_EVERYWHERE)
    for words in (
        "Sockets (kB), UDP sent",
        "Sockets (kB), UDP received",
        "Delay (s), packets",
        "Frames, N(S), frames sent",
        "Frames, N(S), frames repeated",
        "Waiting, frames not acknowledged",
    ):
        assert words in told
    button = "document.querySelector(\"figure.layers [data-layer='0-0']\")"
    window.evaluate(f"{button}.click()")
    assert "UDP sent" not in window.evaluate(ASK_EVERYWHERE)
    window.evaluate(f"{button}.click()")
