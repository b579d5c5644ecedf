# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures of the page: a long live view, many browsers at once, and the first useful view.

``scripts/bench --only page`` runs it. Each part prints a table and is a part of ``page.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.arrow import read_arrow_log
from airpath.facts import FILES
from airpath.run import load_run
from airpath.ui.feed import Feed, tcp_curves
from ui.inpage import BROWSER
from ui.served import Served, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

PACKETS_PER_S = 2_500
POINTS_OF_PACKET = 4
"""Points of a packet: into the queue, out of it, its delay, its lateness."""
SAMPLE_S = 10.0
WARM_S = 180.0
"""Time before samples count for slopes: the curves' buffers grow to their bounds."""
THROTTLE = 4
PARTS = ("live", "browsers", "first-view")

LINK = """name = "measured"

[[hops]]
name = "radio"

[hops.link]
rate = "100 Mbit/s"
propagation = "20 ms"
"""

COUNT_FRAMES = """() => {
    window.drawn = { frames: 0, long: 0, last: performance.now() };
    requestAnimationFrame(function again(now) {
        window.drawn.frames++;
        if (now - window.drawn.last > 100) window.drawn.long++;
        window.drawn.last = now;
        requestAnimationFrame(again);
    });
}"""
"""Counts frames, and those that came more than 100 ms after the one before."""

COUNT_DRAWINGS = """
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    window.drawings = 0;
    CanvasRenderingContext2D.prototype.clearRect = function (...place) {
        window.drawings++;
        return clear.apply(this, place);
    };
"""
"""Counts drawings of curves, each of which clears its picture first."""

COUNT_POINTS = """
    const parse = JSON.parse;
    window.taken = 0;
    JSON.parse = (text, ...more) => {
        const found = parse(text, ...more);
        for (const [times] of Object.values(found?.curves ?? {})) window.taken += times.length;
        return found;
    };
"""
"""Counts the points of curves that reach the page."""

SO_FAR = """({
    ...window.drawn,
    drawings: window.drawings,
    taken: window.taken,
    pictures: document.querySelectorAll("figure canvas").length,
})"""
"""Counts so far, of one page."""

WHEN_USEFUL = """
addEventListener("DOMContentLoaded", () => {
    const look = () => {
        // `innerText` would lay the page out each time.
        if (!window.useful && document.body.textContent.includes("The scenario is valid."))
            window.useful = performance.now();
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
});
"""
"""Notes when the path, its forms and the check of its text are on the page."""


def start(page: Served, seconds: float, packets_per_s: int = PACKETS_PER_S) -> int:
    """Start a run with as many packets a second; return its number."""
    length = 100
    rate = packets_per_s * length * 8
    send = f"airpath send server --udp --rate '{rate} bit/s' --length {length} --interval '0 s'"
    engine = Path(sys.executable).with_name("airpath")
    client = f"{send} --time '{seconds:g} s'".replace("airpath", str(engine), 1)
    number: int = started(page, "measured", LINK, client, f"{engine} recv --once")["run"]
    return number


def follow(browser: Browser, served: Served, number: int) -> Page:
    """Return a page that shows the live view of a run."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(COUNT_POINTS)
    page.add_init_script(COUNT_DRAWINGS)
    page.goto(served.address)
    page.get_by_role("link", name="Drive", exact=True).click()
    page.get_by_role("button", name=f"Follow Run {number}").click()
    page.get_by_text("One-way delay").wait_for()
    # What is out of sight is not drawn: all curves are to be seen.
    page.get_by_role("figure").first.evaluate("figure => figure.scrollIntoView()")
    page.evaluate(COUNT_FRAMES)
    return page


def points_of(page: Page) -> float:
    """Return the points a second that a page says it takes."""
    found = re.search(r"([\d,]+) points/s", page.locator("#live-title").locator("..").inner_text())
    return float(found[1].replace(",", "")) if found else 0.0


def heap_of(page: Page) -> Callable[[], float]:
    """Return a function that gives the live JavaScript heap of a page in bytes."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def heap() -> float:
        session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "JSHeapUsedSize")

    return heap


def scripts_of(page: Page) -> Callable[[], float]:
    """Return a function that gives the processor time of a page's scripts in seconds."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def script() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "ScriptDuration")

    return script


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def slope(samples: list[dict[str, float]], key: str) -> float:
    """Return how much a value grows in an hour, by least squares."""
    times = [one["t"] for one in samples]
    if len(times) < 3:
        return float("nan")
    return statistics.linear_regression(times, [one[key] for one in samples]).slope * 3600


def live(
    browser: Browser,
    seconds: float,
    tell: Callable[[str], None],
    packets_per_s: int = PACKETS_PER_S,
) -> dict[str, Any]:
    """Follow a run for a time; return samples, and slopes of heap and memory."""
    samples: list[dict[str, float]] = []
    with workspace() as served:
        number = start(served, seconds + 30, packets_per_s)
        page = follow(browser, served, number)
        heap = heap_of(page)
        begin = time.monotonic()
        processor = processor_s(served.process.pid)
        while (now := time.monotonic() - begin) < seconds:
            drawn = page.evaluate("({ ...window.drawn })")
            samples.append(
                {
                    "t": now,
                    "heap_bytes": heap(),
                    "server_bytes": resident_bytes(served.process.pid),
                    "points_per_s": points_of(page),
                    "frames": drawn["frames"],
                    "long_frames": drawn["long"],
                }
            )
            tell(json.dumps(samples[-1]))
            page.wait_for_timeout(min(SAMPLE_S, max(seconds / 10, 0.5)) * 1e3)
        used = processor_s(served.process.pid) - processor
        lasted = time.monotonic() - begin
        served.ask("/api/started/measured/stop", {})
    warm = [one for one in samples if one["t"] >= min(WARM_S, seconds / 3)]
    return {
        "seconds": lasted,
        "points_per_s": statistics.median(one["points_per_s"] for one in warm),
        "frames_per_s": (samples[-1]["frames"] - samples[0]["frames"])
        / (samples[-1]["t"] - samples[0]["t"]),
        "long_frames": samples[-1]["long_frames"] - samples[0]["long_frames"],
        "heap_bytes": [one["heap_bytes"] for one in warm[:: max(1, len(warm) // 20)]],
        "heap_bytes_per_hour": slope(warm, "heap_bytes"),
        "server_bytes": [one["server_bytes"] for one in warm[:: max(1, len(warm) // 20)]],
        "server_bytes_per_hour": slope(warm, "server_bytes"),
        "server_processors": used / lasted,
    }


def browsers(
    browser: Browser, count: int, seconds: float, packets_per_s: int = PACKETS_PER_S
) -> dict[str, Any]:
    """Follow a run in many pages at once; return frames of each, the server's share, and losses.

    Processor times for each frame and each point hold on a machine with other work, too.
    """
    with workspace() as served:
        # The run ends when it is told to: on a busy machine pages take long to open.
        number = start(served, seconds + 3600, packets_per_s)
        pages = [follow(browser, served, number) for _ in range(count)]
        scripts = [scripts_of(page) for page in pages]
        before = [page.evaluate(SO_FAR) for page in pages]
        begin, processor = time.monotonic(), processor_s(served.process.pid)
        script_s = sum(script() for script in scripts)
        pages[0].wait_for_timeout(seconds * 1e3)
        lasted = time.monotonic() - begin
        used = processor_s(served.process.pid) - processor
        script_s = sum(script() for script in scripts) - script_s
        after = [page.evaluate(SO_FAR) for page in pages]
        points = [points_of(page) for page in pages]
        server_bytes = resident_bytes(served.process.pid)
        served.ask("/api/started/measured/stop", {})
        for page in pages:
            page.get_by_text("The run has ended.").wait_for()
        taken = [page.evaluate("window.taken") for page in pages]
        for page in pages:
            page.context.close()
        made = points_in(served.folder / "results/measured")
    both = list(zip(before, after, strict=True))
    rates = [(b["frames"] - a["frames"]) / lasted for a, b in both]
    drawings = [(b["drawings"] - a["drawings"]) / lasted / b["pictures"] for a, b in both]
    followed = sum(b["taken"] - a["taken"] for a, b in both)
    return {
        "browsers": count,
        "seconds": lasted,
        "frames_per_s": rates,
        "drawings_per_s": drawings,
        "long_frames": [b["long"] - a["long"] for a, b in both],
        "script_ms_per_frame": script_s * 1e3 / lasted / sum(rates),
        "server_s_per_million_points": used / max(followed, 1) * 1e6,
        "points_per_s": points,
        "points": made,
        "points_lost": [made - one for one in taken],
        "server_bytes": server_bytes,
        "server_processors": used / lasted,
    }


def points_in(folder: Path) -> int:
    """Return the number of points of all curves of a run."""
    curves = list(Feed().add(load_run(folder).events, last=True)["curves"].values())
    tcp = folder / FILES["tcp_state"]
    if tcp.exists():
        curves += tcp_curves(read_arrow_log(tcp).frame).values()
    return sum(len(times) for times, _ in curves)


def first_view(browser: Browser, times: int, throttle: int = THROTTLE) -> dict[str, Any]:
    """Open the page with a slow processor; return times to the first paint and the useful view.

    The processor time of the page's thread is that of this machine, whatever else runs beside.
    """
    paints, useful, processor = [], [], []
    with workspace() as served:
        (served.folder / "measured.toml").write_text(LINK)
        for _ in range(times):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.add_init_script(WHEN_USEFUL)
            session = context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            session.send("Emulation.setCPUThrottlingRate", {"rate": throttle})
            page.goto(served.address)
            page.get_by_text("The scenario is valid.").wait_for(timeout=120_000)
            useful.append(page.evaluate("window.useful"))
            metrics = session.send("Performance.getMetrics")["metrics"]
            used = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
            processor.append(used * 1e3)
            paints.append(
                page.evaluate(
                    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
                )
            )
            context.close()
    return {
        "throttle": throttle,
        "first_paint_ms": paints,
        "useful_ms": useful,
        "processor_ms": processor,
    }


@contextmanager
def workspace() -> Iterator[Served]:
    """Serve a page over an empty folder."""
    with (
        tempfile.TemporaryDirectory(prefix="airpath-page-") as folder,
        Served(Path(folder).resolve()) as served,
    ):
        yield served


@contextmanager
def launched() -> Iterator[Browser]:
    """Give the system's browser, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="scripts/bench --only page", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="this part only")
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the live view")
    parser.add_argument("--browsers", type=int, default=10, help="pages at once")
    parser.add_argument("--quick", action="store_true", help="half a minute of each")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="folder")
    asked = parser.parse_args()
    if BROWSER is None:
        print("neither chromium nor google-chrome is installed", file=sys.stderr)
        return 1
    found: dict[str, Any] = {}
    parts = asked.part or PARTS
    with launched() as browser:
        if "first-view" in parts:
            found["first_view"] = one = first_view(browser, 3 if asked.quick else 9)
            paint, useful, used = (
                statistics.median(one[key])
                for key in ("first_paint_ms", "useful_ms", "processor_ms")
            )
            print(
                f"first view, processor {one['throttle']} times slower: paint {paint:.0f} ms, "
                f"useful view {useful:.0f} ms (worst {max(one['useful_ms']):.0f}), "
                f"{used:.0f} ms of processor time of the page"
            )
        if "browsers" in parts:
            one = browsers(browser, asked.browsers, 10 if asked.quick else 60)
            found["browsers"] = one
            print(
                f"{one['browsers']} browsers: {min(one['frames_per_s']):.1f} frames/s, "
                f"{min(one['drawings_per_s']):.1f} drawings/s of each curve and "
                f"{min(one['points_per_s']):,.0f} points/s in the slowest, "
                f"{one['script_ms_per_frame']:.2f} ms of scripts for a frame, "
                f"{one['server_s_per_million_points']:.2f} s of the server for a million points, "
                f"{one['server_processors']:.2f} processors and "
                f"{one['server_bytes'] / 1e6:.0f} MB for the server; "
                f"{sum(one['points_lost']):,} of {one['browsers'] * one['points']:,} points lost"
            )
        if "live" in parts:
            seconds = 30.0 if asked.quick else asked.minutes * 60
            one = live(browser, seconds, lambda line: print(line, file=sys.stderr, flush=True))
            found["live"] = one
            print(
                f"live view of {one['seconds'] / 60:.1f} min: {one['points_per_s']:,.0f} points/s, "
                f"{one['frames_per_s']:.1f} frames/s; heap {one['heap_bytes'][-1] / 1e6:.1f} MB, "
                f"{one['heap_bytes_per_hour'] / 1e6:+.1f} MB/h; server "
                f"{one['server_bytes'][-1] / 1e6:.0f} MB, "
                f"{one['server_bytes_per_hour'] / 1e6:+.1f} MB/h, "
                f"{one['server_processors']:.2f} processors"
            )
    asked.out.mkdir(exist_ok=True)
    (asked.out / "page.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
