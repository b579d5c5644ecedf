# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Firefox without a window, driven by its own protocol, Marionette, over a socket.

Playwright drives a Firefox of its own alone, and Debian has no geckodriver; that program would
translate WebDriver into this protocol.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE_S = 120.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""Key of references to elements, of WebDriver."""


class Firefox:
    """A browser with one page."""

    def __init__(self, profile: Path) -> None:
        """Start it with an empty profile in a folder that does not exist."""
        profile.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (profile / "user.js").write_text(
            f'user_pref("marionette.port", {port});\n'
            'user_pref("browser.shell.checkDefaultBrowser", false);\n'
            'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
            'user_pref("toolkit.telemetry.enabled", false);\n'
            'user_pref("app.update.enabled", false);\n'
            'user_pref("network.captive-portal-service.enabled", false);\n'
            'user_pref("browser.newtabpage.enabled", false);\n'
        )
        own = {"HOME": str(profile), "MOZ_HEADLESS": "1", "XDG_CACHE_HOME": str(profile / "cache")}
        self._process = subprocess.Popen(
            [str(FIREFOX), "--headless", "--marionette", "--no-remote", "--profile", profile],
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._number = 0
        self._unread = b""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
                break
            except OSError:
                assert time.monotonic() < end, "Firefox does not listen"
                assert self._process.poll() is None, "Firefox ended"
                time.sleep(0.1)
        self._message()
        self.ask("WebDriver:NewSession", {"acceptInsecureCerts": False})

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it and all its processes."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def ask(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """Carry a command out; return its result."""
        self._number += 1
        message = json.dumps([0, self._number, command, parameters or {}]).encode()
        self._socket.sendall(f"{len(message)}:".encode() + message)
        _, number, error, result = self._message()
        assert number == self._number
        assert error is None, f"{command}: {error['message']}"
        return result

    def open(self, address: str) -> None:
        """Go to an address."""
        self.ask("WebDriver:Navigate", {"url": address})

    def evaluate(self, script: str, *values: Any) -> Any:
        """Return what the body of a function in the page returns."""
        found = self.ask("WebDriver:ExecuteScript", {"script": script, "args": list(values)})
        return found["value"]

    def find(self, path: str) -> dict[str, str]:
        """Return the element of an XPath, once it is there."""
        end = time.monotonic() + PATIENCE_S
        while True:
            ask = {"using": "xpath", "value": path}
            found = self.ask("WebDriver:FindElements", ask)
            if found:
                return {_ELEMENT: found[0][_ELEMENT]}
            assert time.monotonic() < end, path
            time.sleep(0.1)

    def click(self, path: str) -> None:
        """Click an element."""
        self.ask("WebDriver:ElementClick", {"id": self.find(path)[_ELEMENT]})

    def type(self, path: str, text: str) -> None:
        """Type over what a field holds, as a user would, and leave the field.

        WebDriver's own command to clear a field leaves it too: the page then takes the empty value,
        and may remove the field before the text comes.
        """
        field = self.find(path)
        # Keys that are sent to the field with focus leave its selection as it is.
        self.evaluate("arguments[0].focus(); arguments[0].select()", field)
        self.ask("WebDriver:ElementSendKeys", {"id": field[_ELEMENT], "text": f"{text}\ue004"})

    def until(self, script: str) -> Any:
        """Wait until the body of a function returns something; return that."""
        end = time.monotonic() + PATIENCE_S
        while not (found := self.evaluate(script)):
            assert time.monotonic() < end, self.evaluate("return document.body.innerText")
            time.sleep(0.1)
        return found

    def _message(self) -> Any:
        """Read one message: its length, a colon, JSON."""
        while b":" not in self._unread:
            self._read()
        length, _, self._unread = self._unread.partition(b":")
        while len(self._unread) < int(length):
            self._read()
        text, self._unread = self._unread[: int(length)], self._unread[int(length) :]
        return json.loads(text)

    def _read(self) -> None:
        chunk = self._socket.recv(1 << 16)
        assert chunk, f"Firefox ended: {self._process.poll()}"
        self._unread += chunk
