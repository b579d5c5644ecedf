# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Executors of replications: this machine, or workers elsewhere.

An executor is a module here with ``workers(address, root, made, keep)`` and an entry in
``EXECUTORS``. Nothing heavy is imported before it is chosen.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airpath.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from airpath.experiment.plan import Plan
    from airpath.experiment.replicate import Outcome, Task

LOCAL = "local"

EXECUTORS = {
    LOCAL: "",
    "dask": "airpath.experiment.executors.dask",
}
"""Names for ``--executor``, and the module of each; this process needs none for itself."""


class ExecutorError(Exception):
    """An executor that is not known, cannot be reached or does not fit; the message mends it."""


@dataclass(frozen=True)
class Workers:
    """Workers that wait for replications."""

    pool: Callable[[], Executor]
    """Makes what hands replications out."""

    carry_out: Callable[[Task], Outcome]
    """Function that the pool is given with each replication."""

    stop: Callable[[], None]
    """Ends what runs on the workers."""

    slots: int
    """Number of replications that run at once."""


def check_name(text: str) -> None:
    """Do nothing if there is such an executor.

    Raises:
        ExecutorError: there is none.

    """
    name = text.partition("://")[0]
    if name not in EXECUTORS or (name == LOCAL and text != LOCAL):
        hint = nearest(name, list(EXECUTORS))
        raise ExecutorError(f"--executor {text}: there is no such executor{hint}")


@contextmanager
def open_workers(
    text: str, root: Path, made: Plan, keep: Callable[[Path], None]
) -> Iterator[Workers | None]:
    """Yield the workers of an executor until the context ends; nothing for this machine's own.

    Args:
        text: NAME, or NAME://ADDRESS.
        root: folder of the results, which exists.
        made: what they shall run.
        keep: called with the folder of each run that is complete, before its outcome is told.

    Raises:
        ExecutorError: there is no such executor, or it cannot be used.
        MissingExtraError: a package that it needs is not installed.

    """
    check_name(text)
    name, _, address = text.partition("://")
    if name == LOCAL:
        yield None
        return
    with importlib.import_module(EXECUTORS[name]).workers(address, root, made, keep) as found:
        yield found
