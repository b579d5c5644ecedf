# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Requests and answers in JSON, and the errors between them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from airpath.arrow import ArrowLogError
from airpath.capture import CaptureError
from airpath.run import RunError
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from airpath.ui.workspace import Workspace


async def body(request: Request) -> dict[str, Any]:
    """Return the object that a request carries.

    Raises:
        UiError: it carries none.

    """
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise UiError(f"the request is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise UiError("the request is no JSON object")
    return found


def text(ask: dict[str, Any], key: str, default: str | None = None) -> str:
    """Return a text of a request.

    Raises:
        UiError: it is missing, or no text.

    """
    value = ask.get(key, default)
    if not isinstance(value, str):
        raise UiError(f"`{key}` is missing, or no text")
    return value


def number(value: str | None, name: str, default: float) -> float:
    """Return a number of an address.

    Raises:
        UiError: it is none.

    """
    try:
        found = float(value) if value not in (None, "") else default
    except ValueError:
        found = float("nan")
    if found != found:
        raise UiError(f"`{name}` is no number: {value!r}")
    return found


def workspace_of(request: Request) -> Workspace:
    """Return the workspace of the server."""
    found: Workspace = request.app.state.workspace
    return found


async def answered(work: Callable[..., Any], *values: Any, **named: Any) -> Response:
    """Return what a function gives, as JSON; it runs beside the server."""
    return JSONResponse(await asyncio.to_thread(work, *values, **named))


READING = (ArrowLogError, CaptureError, RunError)
"""Errors of files that are not what their names say."""


async def told(_request: Request, error: Exception) -> Response:
    """Return an error as JSON."""
    if isinstance(error, MemoryError):
        message = "a file of the run does not fit into the memory of this machine"
        return JSONResponse({"error": message}, status_code=413)
    status = 422 if isinstance(error, READING) else 500
    if isinstance(error, UiError):
        status = error.status
    return JSONResponse({"error": str(error)}, status_code=status)
