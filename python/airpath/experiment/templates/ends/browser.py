# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Loads a page in Chromium, again and again with nothing kept, and times it; run as a script.

Prints a line of JSON for each time: from the beginning of the navigation to the first byte, to the
first and largest contentful paint, and to the end of the load event, in seconds; and how many
transfers of how many bytes the browser counted, by which protocol.

usage: browser.py CHROMIUM URL PROTOCOL PAGES PAUSE_SECONDS
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from airpath.experiment.templates.ends.devtools import Browser, BrowserError
else:
    # A script in isolation finds its neighbour by this alone; the package needs other packages.
    sys.path.insert(0, str(Path(__file__).parent))
    from devtools import Browser, BrowserError

PATIENCE_S = 600.0
"""Longest wait for a page; whoever wants less gives the program a time limit."""

LAST_PAINT = """
new Promise((resolve) => {
  let largest = null;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) largest = entry.startTime;
  }).observe({ type: 'largest-contentful-paint', buffered: true });
  // The picture that came last is painted in one of the next frames.
  setTimeout(() => {
    const first = performance.getEntriesByName('first-contentful-paint')[0];
    const navigation = performance.getEntriesByType('navigation')[0];
    resolve({
      protocol: navigation.nextHopProtocol,
      first_byte: navigation.responseStart,
      first_contentful_paint: first ? first.startTime : null,
      largest_contentful_paint: largest,
      load: navigation.loadEventEnd,
    });
  }, 500);
})
"""
TIMES = ("first_byte", "first_contentful_paint", "largest_contentful_paint", "load")


class LoadError(Exception):
    """The page did not load as it should."""


def load(browser: Browser, url: str, protocol: str) -> dict[str, Any]:
    """Load a page with no connection and nothing in a cache; return its figures.

    Raises:
        LoadError: the page or one of its objects failed, or came by another protocol.
        BrowserError: the browser ended, or the page took too long.

    """
    context = browser.ask("Target.createBrowserContext")["browserContextId"]
    target = browser.ask("Target.createTarget", url="about:blank", browserContextId=context)
    of_target = {"targetId": target["targetId"], "flatten": True}
    session = browser.ask("Target.attachToTarget", **of_target)["sessionId"]
    for domain in ("Page", "Network"):
        browser.ask(f"{domain}.enable", session)
    browser.events.clear()
    begun = browser.ask("Page.navigate", session, url=url)
    if "errorText" in begun:
        raise LoadError(f"{url}: {begun['errorText']}")
    browser.wait_for("Page.loadEventFired", session)
    evaluated = browser.ask(
        "Runtime.evaluate",
        session,
        expression=LAST_PAINT,
        awaitPromise=True,
        returnByValue=True,
    )
    figures = evaluated["result"]["value"]
    events = [event for event in browser.events if event.get("sessionId") == session]
    failed = [event for event in events if event["method"] == "Network.loadingFailed"]
    if failed:
        raise LoadError(f"{len(failed)} objects failed: {failed[0]['params']['errorText']}")
    if figures["protocol"] != protocol:
        raise LoadError(f"the page came by {figures['protocol']} instead of {protocol}")
    browser.ask("Target.disposeBrowserContext", browserContextId=context)
    finished = [event for event in events if event["method"] == "Network.loadingFinished"]
    found = {
        "protocol": protocol,
        "transfers": len(finished),
        "bytes": sum(int(event["params"]["encodedDataLength"]) for event in finished),
    }
    return found | {
        f"{name}_seconds": round(figures[name] / 1e3, 6)
        for name in TIMES
        if figures[name] is not None
    }


def main() -> int:
    """Load the pages."""
    program, url, protocol = sys.argv[1:4]
    pages, pause_s = int(sys.argv[4]), float(sys.argv[5])

    def stop(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, stop)
    # Chromium writes for a moment after its processes were killed: errors of removal are ignored.
    removed = partial(tempfile.TemporaryDirectory, ignore_cleanup_errors=True)
    with removed(prefix="browser-", dir=".") as profile, removed(prefix="browser-") as sockets:
        try:
            with Browser(program, Path(profile).resolve(), Path(sockets), PATIENCE_S) as browser:
                for number in range(1, pages + 1):
                    if number > 1:
                        time.sleep(pause_s)
                    print(json.dumps({"page": number, **load(browser, url, protocol)}), flush=True)
        except (BrowserError, LoadError, OSError) as problem:
            print(problem, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
