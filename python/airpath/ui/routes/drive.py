# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Active runs: starting, following, controlling, ending them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from airpath.ui import drives, live
from airpath.ui.detached import CONSOLE
from airpath.ui.errors import UiError, not_found
from airpath.ui.routes.answer import answered, body, text, workspace_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from airpath.ui.follows import Follows
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
        file=text(ask, "file", ""),
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
    playing = _drives(request)
    folder = Path(runs[number]["logs"])
    follows: Follows = request.app.state.follows
    lines = follows.follow(folder, number, lambda: {"drive": playing.status(number)})
    return StreamingResponse(lines, media_type="application/x-ndjson")


async def courses(request: Request) -> Response:
    """Return the names of files of the workspace that can be courses."""
    workspace = workspace_of(request)

    def listed() -> list[str]:
        return sorted(
            {
                workspace.name_of(path)
                for suffix in drives.SUFFIXES
                for path in workspace.files(suffix)
                if not path.name.endswith(CONSOLE)
            }
        )

    return await answered(listed)


async def course(request: Request) -> Response:
    """Return the curves and the route of a course."""
    ask = request.query_params
    words = [ask.get(key, "") for key in ("name", "route", "direction")]
    return await answered(lambda: drives.shown(drives.course_of(workspace_of(request), *words)))


async def play(request: Request) -> Response:
    """Play a course over an active run."""
    return await answered(
        _drives(request).start, int(request.path_params["run"]), await body(request)
    )


async def steer(request: Request) -> Response:
    """Pause, seek, speed up or stop the course of a run."""
    return await answered(
        _drives(request).command, int(request.path_params["run"]), await body(request)
    )


def _drives(request: Request) -> drives.Drives:
    found: drives.Drives = request.app.state.drives
    return found


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
    Route("/api/runs/{run:int}/drive", play, methods=["POST"]),
    Route("/api/runs/{run:int}/drive/steer", steer, methods=["POST"]),
    Route("/api/courses", courses),
    Route("/api/course", course),
]
