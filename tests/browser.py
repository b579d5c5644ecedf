# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A browser without a window for tests, with one page, by the client of the DevTools protocol."""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.experiment.templates.ends import devtools

if TYPE_CHECKING:
    from types import TracebackType

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")

PATIENCE_S = 240.0
"""For one answer, on a machine with much else to do."""


class Browser:
    """One page in one browser; what it asks for and complains of is kept."""

    def __init__(self, profile: Path) -> None:
        """Start it with an empty profile in a folder that need not exist."""
        profile.mkdir(exist_ok=True)
        # The folder of a test has too long a path for sockets, and so has that of all tests.
        self._sockets = tempfile.TemporaryDirectory(
            prefix="browser-", dir="/tmp", ignore_cleanup_errors=True
        )
        sockets = Path(self._sockets.name)
        window = ["--window-size=1280,1000"]
        self._browser = devtools.Browser(str(PROGRAM), profile, sockets, PATIENCE_S, window)
        target = self._browser.ask("Target.createTarget", url="about:blank")["targetId"]
        of_target = {"targetId": target, "flatten": True}
        self._session = self._browser.ask("Target.attachToTarget", **of_target)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the browser and all its processes."""
        self._browser.__exit__(kind, error, trace)
        self._sockets.cleanup()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events since the page was opened."""
        return self._browser.events

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        return self._browser.ask(method, self._session, **parameters)

    def open(self, page: Path) -> None:
        """Go to a file, and wait until it is loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        self._browser.wait_for("Page.loadEventFired", self._session)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send a mouse event: mousePressed, mouseMoved, mouseReleased, mouseWheel."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def pdf(self) -> bytes:
        """Print the page."""
        options = {"preferCSSPageSize": True, "printBackground": True}
        return base64.b64decode(self.ask("Page.printToPDF", **options)["data"])

    @property
    def requests(self) -> list[str]:
        """Addresses that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    @property
    def complaints(self) -> list[Any]:
        """Errors and warnings of the page, and whatever it wrote on the console."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in kinds]
