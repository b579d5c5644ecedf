# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs that have been made, their curves and packets, and reports."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from airpath.ui import catalogue, past, transfers
from airpath.ui.errors import UiError
from airpath.ui.itself import COMMAND
from airpath.ui.routes.answer import answered, number, workspace_of

if TYPE_CHECKING:
    from starlette.requests import Request


_SANDBOX = (
    "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
"""A report is a page that may hold anything: it gets an origin of its own, and reaches nothing."""


async def runs(request: Request) -> Response:
    """Return the runs of the workspace."""
    return await answered(past.runs_of, workspace_of(request))


async def about(request: Request) -> Response:
    """Return what a run was."""
    return await answered(lambda: past.about(_run(request)))


async def curves(request: Request) -> Response:
    """Return the curves of a part of a run."""
    begin, end = _span(request)
    return await answered(lambda: past.curves(_run(request), begin, end))


async def packets(request: Request) -> Response:
    """Return packets of a part of a run."""
    begin, end = _span(request)
    ask = request.query_params
    direction, what = ask.get("direction", ""), ask.get("what", "")
    if direction not in ("", "uplink", "downlink") or what not in ("", "dropped"):
        raise UiError("direction is uplink or downlink; what is dropped")
    offset = int(number(ask.get("offset"), "offset", 0))
    return await answered(
        lambda: past.packets(_run(request), begin, end, direction, what, max(offset, 0))
    )


async def packet(request: Request) -> Response:
    """Return the way of one packet."""
    return await answered(lambda: past.packet(_run(request), int(request.path_params["pdu"])))


async def listed_transfers(request: Request) -> Response:
    """Return the TCP transfers of a run."""
    return await answered(lambda: transfers.listed(_run(request)))


async def transfer(request: Request) -> Response:
    """Return a part of the time-sequence diagram of a transfer."""
    begin, end = _span(request)
    ask = request.query_params
    low, high = (
        number(ask[key], key, 0) if ask.get(key) not in (None, "") else None
        for key in ("low", "high")
    )
    place = int(request.path_params["number"])
    return await answered(lambda: transfers.shown(_run(request), place, begin, end, low, high))


async def report(request: Request) -> Response:
    """Return the report of runs as one file of HTML."""
    folders = [
        str(workspace_of(request).inside(name)) for name in request.query_params.getlist("name")
    ]
    if not folders:
        raise UiError("name the runs to report on")
    page = await asyncio.to_thread(_report, folders)
    return Response(page, media_type="text/html", headers={"content-security-policy": _SANDBOX})


def _report(folders: list[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="airpath-ui-") as scratch:
        out = Path(scratch) / "report.html"
        words = [*COMMAND, "report", *folders, "--out", str(out)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        if not out.is_file():
            raise UiError(done.stderr.strip() or "the report failed", 422)
        return out.read_bytes()


async def results(request: Request) -> Response:
    """Return the folders of results."""
    return await answered(catalogue.folders, workspace_of(request))


async def table(request: Request) -> Response:
    """Return the cells of a folder of results."""
    ask = request.query_params
    metrics = ask.getlist("metric")
    return await answered(catalogue.table, workspace_of(request), ask.get("name", ""), metrics)


async def compared(request: Request) -> Response:
    """Return the differences of two cells."""
    ask = request.query_params
    cells = (ask.get("first", ""), ask.get("second", ""))
    return await answered(
        catalogue.compared,
        workspace_of(request),
        ask.get("name", ""),
        *cells,
        ask.getlist("metric"),
    )


def _span(request: Request) -> tuple[float, float]:
    ask = request.query_params
    return number(ask.get("begin"), "begin", 0), number(ask.get("end"), "end", 1e12)


def _run(request: Request) -> Any:
    return past.opened(workspace_of(request), request.query_params.get("name", ""))


ROUTES = [
    Route("/api/past", runs),
    Route("/api/past/about", about),
    Route("/api/past/curves", curves),
    Route("/api/past/packets", packets),
    Route("/api/past/packet/{pdu:int}", packet),
    Route("/api/past/transfers", listed_transfers),
    Route("/api/past/transfer/{number:int}", transfer),
    Route("/api/past/report", report),
    Route("/api/results", results),
    Route("/api/results/table", table),
    Route("/api/results/compared", compared),
]
