# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios: schema, profiles, checks, changes, files."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airpath.experiment.detect import is_experiment
from airpath.ui import curves, document, engine
from airpath.ui.errors import UiError
from airpath.ui.routes.answer import answered, body, text, workspace_of

if TYPE_CHECKING:
    from starlette.requests import Request


@lru_cache(maxsize=1)
def _schema() -> Response:
    return JSONResponse(engine.ask_json(["schema"]))


@lru_cache(maxsize=1)
def _profiles() -> Any:
    return engine.ask_json(["profiles", "--json"])


async def schema(_request: Request) -> Response:
    """Return the JSON Schema of scenarios."""
    return await asyncio.to_thread(_schema)


async def profiles(_request: Request) -> Response:
    """Return the built-in links."""
    return await answered(_profiles)


async def profile(request: Request) -> Response:
    """Return the scenario of a built-in link."""
    name = request.path_params["name"]

    def show() -> dict[str, str]:
        if name not in {each["name"] for each in _profiles()}:
            raise UiError(f"there is no profile {name!r}", 404)
        done = engine.ask(["profiles", "show", name])
        return {"toml": done.stdout}

    return await answered(show)


async def thumbnail(request: Request) -> Response:
    """Return the curves of a built-in link."""
    return await answered(curves.thumbnail, request.path_params["name"])


async def check(request: Request) -> Response:
    """Return what is wrong in a scenario, and its values."""
    ask = await body(request)
    folder = workspace_of(request).beside(text(ask, "file", ""))
    return await answered(document.check, text(ask, "toml"), folder)


async def edit(request: Request) -> Response:
    """Return a scenario with values changed, and what is wrong in it."""
    ask = await body(request)
    edits = ask.get("edits")
    if not isinstance(edits, list) or not all(isinstance(one, dict) for one in edits):
        raise UiError("`edits` is no list of changes")
    for one in edits:
        path = one.get("path")
        if not isinstance(path, list) or not all(isinstance(step, (str, int)) for step in path):
            raise UiError("`path` of a change is no list of keys")

    folder = workspace_of(request).beside(text(ask, "file", ""))

    def changed() -> dict[str, Any]:
        toml = document.edit(text(ask, "toml"), edits)
        return {"toml": toml, "checked": document.check(toml, folder)}

    return await answered(changed)


async def files(request: Request) -> Response:
    """Return the names of scenarios and experiments of the workspace."""
    workspace = workspace_of(request)

    def listed() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"scenarios": [], "experiments": []}
        for path in workspace.files(".toml"):
            kind = "experiments" if is_experiment(str(path)) else "scenarios"
            found[kind].append(workspace.name_of(path))
        return found

    return await answered(listed)


async def read(request: Request) -> Response:
    """Return the text of a file of the workspace."""
    name = request.query_params.get("name", "")
    if not name.endswith((".toml", ".trace", ".csv", ".txt", ".json")):
        raise UiError(f"{name!r} is neither a scenario nor a trace", 403)
    return await answered(lambda: {"text": workspace_of(request).read_text(name)})


async def write(request: Request) -> Response:
    """Write a scenario, an experiment or a trace into the workspace."""
    ask = await body(request)
    name, content = text(ask, "name"), text(ask, "text")
    suffix = next((end for end in (".toml", ".trace", ".csv", ".txt") if name.endswith(end)), None)
    if suffix is None:
        raise UiError("a file's name ends with .toml, .trace, .csv or .txt")
    workspace = workspace_of(request)
    if workspace.inside(name).exists() and not ask.get("replace"):
        raise UiError(f"there is a file {name!r} already", 409)
    path = workspace.write_text(name, suffix, content)
    return JSONResponse({"name": workspace.name_of(path)})


async def trace(request: Request) -> Response:
    """Return the rate over time of a trace of the workspace."""
    path = workspace_of(request).inside(request.query_params.get("name", ""))
    return await answered(curves.trace, path)


ROUTES = [
    Route("/api/schema", schema),
    Route("/api/profiles", profiles),
    Route("/api/profiles/{name}", profile),
    Route("/api/profiles/{name}/thumbnail", thumbnail),
    Route("/api/scenario/check", check, methods=["POST"]),
    Route("/api/scenario/edit", edit, methods=["POST"]),
    Route("/api/files", files),
    Route("/api/file", read),
    Route("/api/file", write, methods=["PUT"]),
    Route("/api/trace", trace),
]
