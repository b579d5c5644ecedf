# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments: what would run, and the queue of those that run."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airpath.ui.plans import LOOK_EVERY_S
from airpath.ui.queue import free_bytes
from airpath.ui.routes.answer import answered, body, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from airpath.ui.plans import Plans
    from airpath.ui.queue import Queue


async def plan(request: Request) -> Response:
    """Return the cells of an experiment."""
    return await _while_open(request, _plans(request).plan, request.query_params.get("name", ""))


async def pilot(request: Request) -> Response:
    """Return the cells of an experiment, each of them tried once."""
    file = text(await body(request), "name")
    return await _while_open(request, _plans(request).pilot, file)


async def _while_open(request: Request, make: Callable[..., Any], file: str) -> Response:
    """Return a plan; end it when the page that asked is closed."""
    closed = threading.Event()
    work = asyncio.create_task(answered(make, file, lambda: not closed.is_set()))
    while not (await asyncio.wait({work}, timeout=LOOK_EVERY_S))[0]:
        if await request.is_disconnected():
            closed.set()
    return await work


async def listed(request: Request) -> Response:
    """Return the queue."""
    queue = _queue(request)
    return JSONResponse({"queue": queue.listed(), "free_bytes": free_bytes(queue.workspace)})


async def add(request: Request) -> Response:
    """Put an experiment into the queue."""
    ask = await body(request)
    queue = _queue(request)
    entry = queue.add(text(ask, "file"), text(ask, "out"))
    return JSONResponse(entry.about(queue.workspace))


async def pause(request: Request) -> Response:
    """Pause an experiment."""
    return _told(request, _queue(request).pause(request.path_params["number"]).number)


async def resume(request: Request) -> Response:
    """Put a paused experiment into the queue again."""
    return _told(request, _queue(request).resume(request.path_params["number"]).number)


async def remove(request: Request) -> Response:
    """Take an experiment out of the queue."""
    _queue(request).remove(request.path_params["number"])
    return JSONResponse({})


def _told(request: Request, number: int) -> Response:
    queue = _queue(request)
    return JSONResponse(queue.entries[number].about(queue.workspace))


def _plans(request: Request) -> Plans:
    found: Plans = request.app.state.plans
    return found


def _queue(request: Request) -> Queue:
    found: Queue = request.app.state.queue
    return found


ROUTES = [
    Route("/api/plan", plan),
    Route("/api/plan/pilot", pilot, methods=["POST"]),
    Route("/api/queue", listed),
    Route("/api/queue", add, methods=["POST"]),
    Route("/api/queue/{number:int}/pause", pause, methods=["POST"]),
    Route("/api/queue/{number:int}/resume", resume, methods=["POST"]),
    Route("/api/queue/{number:int}", remove, methods=["DELETE"]),
]
