# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Files that an experiment names, packed for workers that do not see them."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.experiment.executors import ExecutorError
from airpath.experiment.executors.errands import pack_files
from airpath.experiment.quantities import show_bytes
from airpath.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airpath.experiment.plan import Plan

MOST_BYTES = 100_000_000
"""Greatest size of all files together that travel to workers."""

LONGEST = 4096
"""Length of the longest path."""


def inputs_of(made: Plan, root: Path) -> bytes:
    """Return the files that an experiment names, under their whole paths, as one archive.

    Named are scenarios, and what a relative path in the experiment or in a scenario leads to: a
    trace, a capture, a program.

    Args:
        made: the plan.
        root: folder of the results, with the scenarios that stand in the experiment.

    Raises:
        ExecutorError: they are too large.
        OSError: one cannot be read.

    """
    here = made.loaded.file.resolve().parent
    experiment = made.loaded.experiment
    found: dict[Path, None] = dict.fromkeys(sorted((root.resolve() / "networks").glob("*.toml")))
    texts = [(here, text) for text in _texts(experiment.model_dump(mode="json"))]
    texts += [(here, text) for one in made.cells for text in _texts(one.cell.workload.model_dump())]
    for network in experiment.networks.values():
        if network.scenario:
            scenario = (here / network.scenario).resolve()
            found[scenario] = None
            document = tomllib.loads(read_text(scenario))
            texts += [(scenario.parent, text) for text in _texts(document)]
    for folder, text in texts:
        for word in {text, *text.replace("=", " ").replace(",", " ").split()}:
            if word and len(word) < LONGEST and not Path(word).is_absolute():
                path = Path(os.path.normpath(folder / word))
                if _is_file(path):
                    found[path] = None
    size = sum(path.stat().st_size for path in found)
    if size > MOST_BYTES:
        raise ExecutorError(
            f"the files that the experiment names have {show_bytes(size)}, and at most "
            f"{show_bytes(MOST_BYTES)} travel to workers; put the experiment and --out into a "
            f"folder that all workers share"
        )
    return pack_files([(path, str(path).lstrip("/")) for path in found])


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that can be no path
        return False


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts within a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
