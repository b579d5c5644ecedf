"""Airpath: a wireless link of your choice between real programs.

``load(path)`` opens a run, ``runs(path)`` finds replications below a folder; docs/analysis.md shows
what to do with them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.analysis.folders import Replication
    from airpath.run import Run, RunError

__all__ = ["RunError", "load", "runs"]


def load(path: str | Path) -> Run:
    """Open a run's folder; see ``airpath.run.Run``.

    Raises:
        RunError: it holds no run that could be read.

    """
    from pathlib import Path

    from airpath.run import load_run

    return load_run(Path(path))


def runs(path: str | Path) -> list[Replication]:
    """Find the runs at or below a folder, each with the name of its set.

    Raises:
        RunError: there is none.

    """
    from pathlib import Path

    from airpath.analysis.folders import find

    return find([Path(path)])


def __getattr__(name: str) -> Any:
    # Not imported before it is asked for: the command starts without polars.
    if name == "RunError":
        return importlib.import_module("airpath.run").RunError
    message = f"module airpath has no attribute {name}"
    raise AttributeError(message)
