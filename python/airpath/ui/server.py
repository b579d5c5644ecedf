# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page's server, put together."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from airpath.ui.drives import Drives
from airpath.ui.errors import UiError
from airpath.ui.follows import Follows
from airpath.ui.guard import Guard
from airpath.ui.launch import Launcher
from airpath.ui.plans import Plans
from airpath.ui.queue import Queue
from airpath.ui.routes import build, drive, experiments, look, page
from airpath.ui.routes.answer import READING, told
from airpath.ui.scratch import remove_leftovers
from airpath.ui.turn import Turn
from airpath.ui.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from airpath.ui.accounts import Accounts

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine for itself."""


@dataclass(frozen=True)
class Setting:
    """Settings of the page's server."""

    folder: Path
    """The workspace, an absolute path without links."""
    token: str
    port: int
    accounts: Accounts | None = None
    """Accounts where other machines can reach the page."""


def app(setting: Setting) -> Guard:
    """Return the server as an ASGI application."""
    workspace = Workspace(setting.folder)
    launcher = Launcher(workspace)
    turn = Turn()
    queue = Queue(workspace, turn=turn)
    plans = Plans(workspace, turn)
    drives = Drives(workspace)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(lambda: remove_leftovers(workspace.folders()))
        yield
        drives.close()
        # Before plans: the end of one lets the queue go on.
        queue.close()
        plans.close()
        launcher.close()

    inner = Starlette(
        routes=[*build.ROUTES, *drive.ROUTES, *look.ROUTES, *experiments.ROUTES, *page.routes()],
        exception_handlers=dict.fromkeys((UiError, MemoryError, *READING, Exception), told),
        lifespan=lifespan,
    )
    state = inner.state
    state.workspace, state.launcher, state.queue = workspace, launcher, queue
    state.drives, state.plans, state.follows = drives, plans, Follows()
    state.token, state.accounts = setting.token, setting.accounts
    names = [f"{name}:{setting.port}" for name in LOOPBACK]
    if setting.accounts is not None:
        return Guard(inner, setting.token, frozenset(), frozenset())
    origins = frozenset(f"http://{name}" for name in names)
    return Guard(inner, setting.token, frozenset(names), origins)
