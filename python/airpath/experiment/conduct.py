# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""From a plan to a runner in its results folder, whoever asks for it: a command or a program."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from functools import partial
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
from airpath.experiment.replicate import replicate
from airpath.experiment.runner import Runner, check_same, prepare_links
from airpath.experiment.shown import read_notes
from airpath.files import make_folder, read_text, write_whole
from airpath.jsontext import parse_json
from airpath.shape import Object, fitting
from airpath.store.keeper import kept_in
from airpath.store.mirror import HERE_ALONE
from airpath.store.url import Url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airpath.experiment.jobs import Jobs
    from airpath.experiment.plan import Plan
    from airpath.experiment.replicate import Outcome, Task
    from airpath.store.keeper import Keeper


_PLANNED = Object(
    {"cells": [Object({"set": str, "cell": str}, needed=("set", "cell"))]}, needed=("cells",)
)


def usual_folder(made: Plan) -> Path:
    """Return where results go if nobody names a folder."""
    return Path("results") / made.loaded.experiment.name


@contextmanager
def runner_in(
    place: Path | Url,
    made: Plan,
    jobs: Jobs,
    tell: Callable[[str], None],
    *,
    resume: bool,
    executor: str = LOCAL,
) -> Iterator[Runner]:
    """Make or open a results folder, and yield what carries the plan out in it.

    Args:
        place: the folder, locked until the context ends; or the URL of a store, which is mirrored
            in a folder of this machine and has each run once that is complete.
        made: the plan.
        jobs: how many replications at a time.
        tell: takes lines for the user.
        resume: go on with what the folder holds.
        executor: what carries replications out, as ``--executor`` names it.

    Raises:
        ExecutorError: the executor is not known or cannot be used, or there are live runs.
        FolderError: the folder cannot be used, or holds results of another experiment, or any
            results where ``resume`` is not wanted, or a path is not UTF-8.
        KeyboardInterrupt: a signal came while files were fetched from a store.
        MissingExtraError: a package that the executor or the store needs is not installed.
        OSError: it cannot be written.

    """
    check_name(executor)
    if executor != LOCAL:
        _check_clocks(made, executor)
    if isinstance(place, Url):
        with (
            kept_in(place, "run") as keeper,
            _runner_in(keeper.mirror.folder, made, jobs, tell, resume, executor, keeper) as runner,
        ):
            yield runner
    else:
        with _runner_in(place, made, jobs, tell, resume, executor, None) as runner:
            yield runner


@contextmanager
def _runner_in(
    root: Path,
    made: Plan,
    jobs: Jobs,
    tell: Callable[[str], None],
    resume: bool,
    executor: str,
    keeper: Keeper | None,
) -> Iterator[Runner]:
    _check_name(root, "name another --out")
    _check_name(made.loaded.file.resolve().parent, "move the experiment's file")
    folder = Results(root)
    _prepare(folder, resume, keeper)
    try:
        check_same(made, folder)
        _write_plan(root, made)
        prepare_links(made, root)
        keep = keeper.keep if keeper else _nothing
        with open_workers(executor, root, made, keep) as workers:
            if workers is None:
                carry_out = partial(_kept, keeper) if keeper else replicate
                runner = Runner(made, folder, jobs, tell, carry_out=carry_out)
            else:
                if jobs.automatic:
                    jobs.use(workers.slots)
                runner = Runner(
                    made, folder, jobs, tell, workers.pool, workers.carry_out, workers.stop
                )
            runner.clean()
            if keeper:
                keeper.begin()
            yield runner
    finally:
        folder.close()


def _check_name(folder: Path, remedy: str) -> None:
    """Refuse a folder whose path no file of JSON can hold.

    Raises:
        FolderError: its path is not UTF-8.

    """
    path = os.fsencode(folder.resolve())
    try:
        path.decode()
    except UnicodeDecodeError as error:
        name = path.decode(errors="backslashreplace")
        message = f"{name}: the name of this folder is not UTF-8; {remedy}"
        raise FolderError(message) from error


def _nothing(_folder: Path) -> None:
    """Do nothing with a complete run: it is where it shall be."""


def _kept(keeper: Keeper, task: Task) -> Outcome:
    """Run a replication, and write its folder to the store.

    Raises:
        OSError: its folders, or the store, cannot be written.

    """
    outcome = replicate(task)
    if outcome.status != "stopped":
        keeper.keep(Path(task.folder))
    return outcome


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


def _prepare(folder: Results, resume: bool, keeper: Keeper | None) -> None:
    """Make or open the results folder, and lock it."""
    root = folder.root
    there = root.is_dir() and any(one.name not in HERE_ALONE for one in root.iterdir())
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
            if keeper:
                # A command that was killed may have written a run and not its journal.
                for entry in folder.left_out([]):
                    folder.write("done", **entry)
            if folder.done and not resume:
                place = keeper.mirror.store.url if keeper else root
                message = (
                    f"{place} holds {len(folder.done)} replications already: --resume goes on with "
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
