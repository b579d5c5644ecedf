# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A page that is served for a test, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

STATIC = Path(__file__).parents[2] / "python/airpath/ui/static"
"""The page as `make setup` builds it; missing without Node."""

PATIENCE_S = 120.0
"""Limit for steps that take milliseconds on a quiet machine."""


@dataclass
class Answer:
    """Answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Content, where it is JSON."""
        return json.loads(self.body)


@dataclass
class Served:
    """A running ``airpath ui``."""

    folder: Path
    process: subprocess.Popen[str] = field(init=False)
    address: str = field(init=False, default="")
    port: int = field(init=False, default=0)
    token: str = field(init=False, default="")

    def __enter__(self) -> Self:
        """Start it."""
        command = Path(sys.executable).with_name("airpath")
        # A group of its own, so that what the page starts can be told from the tests.
        self.process = subprocess.Popen(
            [command, "ui", self.folder, "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=os.environ | {"XDG_CACHE_HOME": str(self.folder / ".cache")},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]+)", line)
        assert found, line
        self.address, self.port, self.token = found[0], int(found[1]), found[2]
        return self

    def __exit__(self, *_: object) -> None:
        """End it as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def ask(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "",
        headers: dict[str, str] | None = None,
        token: str | None = "",
    ) -> Answer:
        """Return the answer to a request.

        Args:
            path: the address, from ``/`` on.
            body: an object to send as JSON, or bytes.
            method: GET, or POST with a body, unless it is given.
            headers: further headers, or other values.
            token: another token; None for none.

        """
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        all_headers = {} if token is None else {"Authorization": f"Bearer {token or self.token}"}
        all_headers |= headers or {}
        connection.request(
            method or ("POST" if body is not None else "GET"), path, sent, all_headers
        )
        with connection.getresponse() as answer:
            got = Answer(
                answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            )
        connection.close()
        return got

    def until(self, path: str, holds: Any) -> Any:
        """Ask again and again until an answer is as wanted; return it."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = self.ask(path).json
            if holds(found):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.1)


def started(
    page: Served,
    name: str,
    link: str,
    client: str = "ping -c 40 -i 0.1 server",
    server: str = "",
) -> dict[str, Any]:
    """Start a run; return it once it is active."""
    body = {"toml": link, "name": name, "client": client, "server": server}
    answer = page.ask("/api/runs", body)
    assert answer.status == 200, answer.body
    folder = answer.json["folder"]
    # Others of this user's runs may be active too.
    listed = page.until(
        "/api/runs", lambda found: any(one["folder"] == folder for one in found["active"])
    )
    return next(one for one in listed["active"] if one["folder"] == folder)
