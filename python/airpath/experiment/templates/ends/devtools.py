# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Chromium without a window, driven by the DevTools protocol over its pipe."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

OPTIONS = [
    "--headless=new",
    # A container, or an ordinary user within a namespace, cannot make the browser's sandbox; it
    # loads the experiment's own page alone.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
    # Whatever the browser would fetch by itself.
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    # The certificate of the server is its own.
    "--ignore-certificate-errors",
]
PUT_AND_RUN = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Program that puts the pipe where Chromium expects it: here the numbers may be in use."""

END_S = 10.0
"""For the browser to end once its pipe is closed, before it is killed."""


class BrowserError(Exception):
    """Chromium ended, did not answer in time, or refused a command."""


class Browser:
    """A browser; ``events`` are those that came and were not yet taken."""

    def __init__(
        self,
        program: str,
        profile: Path,
        sockets: Path,
        patience_s: float,
        options: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            program: name or path of Chromium.
            profile: an empty folder, for all that the browser writes.
            sockets: an empty folder for its socket, whose path is limited to some 100 characters.
            patience_s: longest wait for one answer or event.
            options: further options, which come before those of all browsers.

        Raises:
            OSError: the program is not there, or cannot be started.

        """
        self._patience_s = patience_s
        found = shutil.which(program)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        # Elsewhere than at the numbers that Chromium expects.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (theirs_in, theirs_out)]
        os.close(theirs_in)
        os.close(theirs_out)
        own = {"HOME": str(profile), "XDG_CONFIG_HOME": str(profile), "TMPDIR": str(sockets)}
        words = [sys.executable, "-I", "-S", "-c", PUT_AND_RUN, *(str(fd) for fd in theirs), found]
        words += [*OPTIONS, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        try:
            self._process = subprocess.Popen(
                [*words, "about:blank"],
                pass_fds=theirs,
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # All its processes are ended together.
                start_new_session=True,
            )
        finally:
            for fd in theirs:
                os.close(fd)
        self._number = 0
        self._unread = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all processes of the browser."""
        os.close(self._write)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)

    def ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come first are kept.

        Raises:
            BrowserError: it was refused, or there was no answer.

        """
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        try:
            os.write(self._write, json.dumps(message).encode() + b"\0")
        except OSError as problem:
            raise BrowserError("Chromium ended") from problem
        deadline = time.monotonic() + self._patience_s
        while True:
            answer = self._message(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Wait for an event of a session; those that come are kept.

        Raises:
            BrowserError: it did not come in time.

        """
        deadline = time.monotonic() + self._patience_s
        seen = 0
        while True:
            for event in self.events[seen:]:
                if event.get("method") == method and event.get("sessionId") == session:
                    return
            seen = len(self.events)
            self.events.append(self._message(deadline, method))

    def _message(self, deadline: float, what: str) -> dict[str, Any]:
        """Return the next message.

        Raises:
            BrowserError: none came by the deadline, or the browser ended.

        """
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"no {what} of Chromium within {self._patience_s:g} s")
            piece = os.read(self._read, 1 << 16)
            if not piece:
                raise BrowserError("Chromium ended")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message
