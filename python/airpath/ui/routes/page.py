# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page itself, and what opens it."""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from airpath.facts import raw
from airpath.ui.errors import UiError
from airpath.ui.feed import UNITS
from airpath.ui.routes.answer import answered, body, text
from airpath.ui.version import installed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

STATIC = Path(__file__).parents[1] / "static"
"""The page as it is built from ``ui/`` of the source tree."""

NOT_BUILT = """<!doctype html><title>Airpath</title><p>The page is not built: this source tree was
set up without Node. Install Node 20 or later with npm and run <code>make setup</code>.</p>"""


async def about(request: Request) -> Response:
    """Return what the page needs to know before it shows anything."""
    facts = raw()
    state = request.app.state
    return JSONResponse(
        {
            "version": installed(),
            "workspace": str(state.workspace.folder),
            "units": UNITS,
            "causes": facts["causes"],
            "event_kinds": facts["event_kinds"],
        }
    )


async def enter(request: Request) -> Response:
    """Return the token to whoever has an account's name and password."""
    ask = await body(request)
    accounts = request.app.state.accounts
    if accounts is None:
        raise UiError("this page has no accounts; open the address that airpath ui printed", 404)
    opened = await answered(accounts.opens, text(ask, "name"), text(ask, "password"))
    if not json.loads(bytes(opened.body)):
        raise UiError("the name or the password is wrong", 401)
    return JSONResponse({"token": request.app.state.token})


async def not_built(_request: Request) -> Response:
    """Say that there is no page."""
    return HTMLResponse(NOT_BUILT, 503)


def _file(path: Path) -> BaseRoute:
    """Return the address of a file of the page, which is read once and kept."""
    name = path.relative_to(STATIC).as_posix()
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    # The names of assets change with their content.
    lasting = "max-age=31536000, immutable" if name.startswith("assets/") else "no-cache"
    answer = Response(path.read_bytes(), media_type=kind, headers={"cache-control": lasting})

    async def give(_request: Request) -> Response:
        return answer

    return Route("/" if name == "index.html" else f"/{name}", give)


def routes() -> list[BaseRoute]:
    """Return the addresses of the page."""
    own: list[BaseRoute] = [
        Route("/api/about", about),
        Route("/api/enter", enter, methods=["POST"]),
    ]
    if (STATIC / "index.html").is_file():
        return [*own, *map(_file, sorted(path for path in STATIC.rglob("*") if path.is_file()))]
    return [*own, Route("/", not_built)]
