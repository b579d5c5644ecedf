# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Active runs: starting, following, controlling, ending them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from airpath.ui import live
from airpath.ui.errors import UiError, not_found
from airpath.ui.routes.answer import answered, body, text

if TYPE_CHECKING:
    from starlette.requests import Request

    from airpath.ui.launch import Launcher


async def listed(request: Request) -> Response:
    """Return active runs, and those that the page started."""
    launcher = _launcher(request)
    active = await asyncio.to_thread(live.active)
    return JSONResponse(
        {"active": active, "started": [one.about() for one in launcher.started.values()]}
    )


async def start(request: Request) -> Response:
    """Start a run."""
    ask = await body(request)
    options = []
    if ask.get("internet"):
        options.append("--internet")
    if ask.get("seed") not in (None, ""):
        options += ["--seed", str(ask["seed"])]
    if ask.get("congestion_control"):
        options += ["--cc", text(ask, "congestion_control")]
    started = await asyncio.to_thread(
        _launcher(request).start,
        text(ask, "toml"),
        text(ask, "name"),
        client=text(ask, "client"),
        server=text(ask, "server", ""),
        clock=text(ask, "clock", "live"),
        options=options,
    )
    return JSONResponse(started.about())


async def stop(request: Request) -> Response:
    """End a run that the page started."""
    _launcher(request).stop(request.path_params["name"])
    return JSONResponse({})


async def console(request: Request) -> Response:
    """Return what the programs of a run have printed."""
    name = request.path_params["name"]
    launcher = _launcher(request)
    about = launcher.of(name).about()
    return JSONResponse({**about, "text": await asyncio.to_thread(launcher.console, name)})


async def command(request: Request) -> Response:
    """Carry out a command on an active run."""
    return await answered(live.command, int(request.path_params["run"]), await body(request))


async def follow(request: Request) -> Response:
    """Return what is new in a run, as it comes, until the run ends."""
    number = int(request.path_params["run"])
    runs = {one["run"]: one for one in await asyncio.to_thread(live.active)}
    if number not in runs:
        raise not_found(f"run {number} is not active")
    if not runs[number]["folder"]:
        raise UiError(
            f"run {number} has no folder, so that its packets are not recorded; use --out"
        )
    lines = live.follow(Path(runs[number]["folder"]), number)
    return StreamingResponse(lines, media_type="application/x-ndjson")


def _launcher(request: Request) -> Launcher:
    found: Launcher = request.app.state.launcher
    return found


ROUTES = [
    Route("/api/runs", listed),
    Route("/api/runs", start, methods=["POST"]),
    Route("/api/started/{name}/stop", stop, methods=["POST"]),
    Route("/api/started/{name}/console", console),
    Route("/api/runs/{run:int}/command", command, methods=["POST"]),
    Route("/api/runs/{run:int}/follow", follow),
]
