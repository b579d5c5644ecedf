# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A headless browser for tests, driven by the DevTools protocol over its pipe."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")

PATIENCE_S = 240.0
"""For one answer, on a machine with much else to do."""


class Browser:
    """One page in one browser; what it asks for and complains of is kept."""

    def __init__(self, profile: Path) -> None:
        """Start it with an empty profile in a folder that need not exist."""
        profile.mkdir(exist_ok=True)
        pipes = [os.pipe(), os.pipe()]
        # Out of the way of the numbers at which the browser expects them.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (pipes[0][0], pipes[1][1])]
        self._write, self._read = pipes[0][1], pipes[1][0]
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += ["--no-first-run", "--disable-background-networking", "--disable-extensions"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}"]
        options += ["--window-size=1280,1000", "about:blank"]
        redirect = f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", redirect, str(PROGRAM), *options],
            pass_fds=theirs,
            # Whatever it keeps of crashes and fonts lies there too.
            env=os.environ | {"HOME": str(profile), "XDG_CONFIG_HOME": str(profile)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for fd in (pipes[0][0], pipes[1][1], *theirs):
            os.close(fd)
        self._number = 0
        self._unread = b""
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
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
        os.close(self._write)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._read)

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, page: Path) -> None:
        """Go to a file, and wait until it is loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._message()

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

    def _message(self) -> dict[str, Any]:
        """Read one message; what is no answer is kept as an event."""
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            assert ready, f"the browser said nothing for {PATIENCE_S:g} s"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, f"the browser ended: {self._process.poll()}"
            self._unread += chunk
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message
