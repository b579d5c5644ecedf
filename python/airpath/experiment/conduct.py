# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""From a plan to a runner in its results folder, whoever asks for it: a command or a program."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.experiment.executors import LOCAL, ExecutorError, check_name, open_workers
from airpath.experiment.folder import (
    COPY,
    FORMAT_VERSION,
    NOTES,
    PLAN,
    FolderError,
    Results,
    check_version,
)
from airpath.experiment.runner import Runner, check_same, prepare_links
from airpath.experiment.shown import read_notes
from airpath.files import make_folder, read_text, write_whole
from airpath.jsontext import parse_json
from airpath.shape import Object, fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airpath.experiment.jobs import Jobs
    from airpath.experiment.plan import Plan


_PLANNED = Object(
    {"cells": [Object({"set": str, "cell": str}, needed=("set", "cell"))]}, needed=("cells",)
)


def usual_folder(made: Plan) -> Path:
    """Return where results go if nobody names a folder."""
    return Path("results") / made.loaded.experiment.name


@contextmanager
def runner_in(
    root: Path,
    made: Plan,
    jobs: Jobs,
    tell: Callable[[str], None],
    *,
    resume: bool,
    executor: str = LOCAL,
) -> Iterator[Runner]:
    """Make or open a results folder, and yield what carries the plan out in it.

    Args:
        root: the folder; locked until the context ends.
        made: the plan.
        jobs: how many replications at a time.
        tell: takes lines for the user.
        resume: go on with what the folder holds.
        executor: what carries replications out, as ``--executor`` names it.

    Raises:
        ExecutorError: the executor is not known or cannot be used, or there are live runs.
        FolderError: the folder cannot be used, or holds results of another experiment, or any
            results where ``resume`` is not wanted.
        OSError: it cannot be written.

    """
    check_name(executor)
    if executor != LOCAL:
        _check_clocks(made, executor)
    folder = Results(root)
    _prepare(folder, resume)
    try:
        check_same(made, folder)
        _write_plan(root, made)
        prepare_links(made, root)
        with open_workers(executor, root) as workers:
            if workers is None:
                runner = Runner(made, folder, jobs, tell)
            else:
                if jobs.automatic:
                    jobs.use(workers.slots)
                runner = Runner(
                    made, folder, jobs, tell, workers.pool, workers.carry_out, workers.stop
                )
            runner.clean()
            yield runner
    finally:
        folder.close()


def _check_clocks(made: Plan, executor: str) -> None:
    """Refuse live runs on workers: how many of them one machine bears is found out on it.

    Raises:
        ExecutorError: there are some.

    """
    live = dict.fromkeys(one.cell.set_name for one in made.cells if one.cell.clock == "live")
    if live:
        raise ExecutorError(
            f"--executor {executor}: live runs need the machine that watches them; the sets "
            f"{', '.join(live)} are live: leave them out with --only, or use --executor local"
        )


def _prepare(folder: Results, resume: bool) -> None:
    """Make or open the results folder, and lock it."""
    root = folder.root
    there = root.is_dir() and any(root.iterdir())
    if there and not (root / PLAN).exists() and not (root / "lock").exists():
        message = f"{root} is not empty and holds no results of airpath run; name another --out"
        raise FolderError(message)
    make_folder(root)
    folder.lock()
    try:
        if (root / PLAN).exists():
            try:
                version = parse_json(read_text(root / PLAN)).get("format_version")
            except (ValueError, AttributeError):
                version = FORMAT_VERSION  # torn, and written anew below
            check_version(version, root)
            folder.repair()
            folder.read()
            if folder.done and not resume:
                message = (
                    f"{root} holds {len(folder.done)} replications already: --resume goes on with "
                    f"them, --out names another folder"
                )
                raise FolderError(message)
    except FolderError:
        folder.close()
        raise


def _write_plan(root: Path, made: Plan) -> None:
    """Keep the plan; what an earlier one had beyond it (--only) stays known."""
    document = {"format_version": FORMAT_VERSION, **made.document()}
    try:
        before = fitting(parse_json(read_text(root / PLAN)), _PLANNED, [])["cells"]
    except (OSError, ValueError):
        before = []
    now = {(cell["set"], cell["cell"]) for cell in document["cells"]}
    document["cells"] += [cell for cell in before if (cell["set"], cell["cell"]) not in now]
    write_whole(root / PLAN, json.dumps(document, indent=2) + "\n", sync=True)
    write_whole(root / COPY, made.loaded.text, sync=True)
    if text := read_notes(made.loaded):
        write_whole(root / NOTES, text, sync=True)
