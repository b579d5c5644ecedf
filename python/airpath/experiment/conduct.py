"""From a plan to a runner in its results folder, whoever asks for it: a command or a program."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.experiment.folder import (
    COPY,
    FORMAT_VERSION,
    NOTES,
    PLAN,
    FolderError,
    Results,
    check_version,
    write_atomically,
)
from airpath.experiment.runner import Runner, check_same, prepare_links
from airpath.experiment.shown import read_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airpath.experiment.jobs import Jobs
    from airpath.experiment.plan import Plan


def usual_folder(made: Plan) -> Path:
    """Return where results go if nobody names a folder."""
    return Path("results") / made.loaded.experiment.name


@contextmanager
def runner_in(
    root: Path, made: Plan, jobs: Jobs, tell: Callable[[str], None], *, resume: bool
) -> Iterator[Runner]:
    """Make or open a results folder, and yield what carries the plan out in it.

    Args:
        root: the folder; locked until the context ends.
        made: the plan.
        jobs: how many replications at a time.
        tell: takes lines for the user.
        resume: go on with what the folder holds.

    Raises:
        FolderError: the folder cannot be used, or holds results of another experiment, or any
            results where ``resume`` is not wanted.
        OSError: it cannot be written.

    """
    folder = Results(root)
    _prepare(folder, resume)
    try:
        check_same(made, folder)
        _write_plan(root, made)
        prepare_links(made, root)
        runner = Runner(made, folder, jobs, tell)
        runner.clean()
        yield runner
    finally:
        folder.close()


def _prepare(folder: Results, resume: bool) -> None:
    """Make or open the results folder, and lock it."""
    root = folder.root
    there = root.is_dir() and any(root.iterdir())
    if there and not (root / PLAN).exists() and not (root / "lock").exists():
        message = f"{root} is not empty and holds no results of airpath run; name another --out"
        raise FolderError(message)
    root.mkdir(parents=True, exist_ok=True)
    folder.lock()
    try:
        if (root / PLAN).exists():
            try:
                version = json.loads((root / PLAN).read_text()).get("format_version")
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
        before = json.loads((root / PLAN).read_text())["cells"]
    except (OSError, ValueError, KeyError):
        before = []
    now = {(cell["set"], cell["cell"]) for cell in document["cells"]}
    document["cells"] += [cell for cell in before if (cell["set"], cell["cell"]) not in now]
    write_atomically(root / PLAN, json.dumps(document, indent=2) + "\n")
    write_atomically(root / COPY, made.loaded.text)
    if text := read_notes(made.loaded):
        write_atomically(root / NOTES, text)
