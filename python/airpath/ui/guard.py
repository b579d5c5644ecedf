# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Limits of requests to the page's server: hosts, origins, the token, accounts, sizes.

A browser opens pages of strangers beside this one. A stranger's page can send requests to
loopback, and can make its own name mean 127.0.0.1. So every request must name this server in
``Host``, may have no other ``Origin``, and every request for data must have the token, which only
the page has: it stands behind the ``#`` of the page's address, which a browser sends nowhere.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 16_000_000
"""Maximum size of a request."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
    " blob:; font-src 'self'; connect-src 'self'; frame-src 'self' blob:; manifest-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content policy of the page: it loads nothing from elsewhere. Styles stand in elements."""

_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


@dataclass
class Guard:
    """A layer around the server that refuses what must not come in."""

    app: ASGIApp
    token: str
    hosts: frozenset[str]
    """Values of ``Host`` that name this server, in lower case; empty for any, with accounts."""
    origins: frozenset[str]
    """Values of ``Origin`` of the page itself; empty for any that fits ``Host``."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        await self.app(scope, _limited(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = _only(scope)
        if headers is None:
            return 400, "a header stands twice"
        host = headers.get("host", "").lower()
        if not host or (self.hosts and host not in self.hosts):
            return 421, "this server does not have that name; use the address that it printed"
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin.lower(), host):
            return 403, "a page of another origin asked"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "a page of another site asked"
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            return 400, "content-length is no number"
        if length > MOST_BODY_BYTES:
            return 413, f"the request is larger than {MOST_BODY_BYTES:,} bytes"
        if scope["path"].startswith("/api/") and scope["path"] != "/api/enter":
            given = headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
                return (
                    401,
                    "the token is missing or wrong; open the address that airpath ui printed",
                )
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        if self.origins:
            return origin in self.origins
        return origin == f"https://{host}"


def _only(scope: Scope) -> dict[str, str] | None:
    """Return the headers by name; None if one that decides stands twice."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization", "content-length"):
            return None
        found[key] = value.decode("latin-1")
    return found


def _limited(receive: Receive) -> Receive:
    """Return the source of a request's body, cut where the body becomes too large."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BODY_BYTES:
            return {"type": "http.disconnect"}
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *((name, value) for name, value in _HEADERS if name not in own),
            ]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
