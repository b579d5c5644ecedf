# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Command ``airpath check``: the engine's for scenarios, Python's for experiments.

Only experiments need packages beside the standard library, so nothing heavy is imported before one
is found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from airpath.engine import EngineError, find_engine
from airpath.experiment.detect import is_experiment
from airpath.extras import require
from airpath.files import open_plain
from airpath.status import DONE, UNDONE, fail, status_of

if TYPE_CHECKING:
    from pathlib import Path


def check(files: list[Path], *, json_: bool) -> int:
    """Carry ``airpath check`` out."""
    status = DONE
    try:
        for file in files:
            if is_experiment(str(file)):
                found = _check_experiment(file, as_json=json_)
            else:
                words = [find_engine(), "check", *(["--json"] if json_ else []), str(file)]
                found = subprocess.run(words, check=False).returncode
            status = max(status, found)
    except EngineError as error:
        return fail("check", error)
    return status


def _check_experiment(file: Path, *, as_json: bool) -> int:
    try:
        os.close(open_plain(file))
    except OSError as error:
        _tell(str(file), None, f"cannot be read: {error.strerror}", as_json=as_json)
        return status_of(error)  # as the engine does where it cannot read a scenario
    require("experiments", f"airpath check of the experiment {file}")

    from airpath.experiment.loaded import ExperimentError
    from airpath.experiment.planned import plan_of
    from airpath.experiment.quantities import counted

    try:
        made = plan_of(file, None)
    except ExperimentError as error:
        for problem in error.problems:
            _tell(problem.file, problem.line, problem.what, as_json=as_json)
        return UNDONE  # as the engine does for scenarios
    if not as_json:
        sets = len({p.cell.set_name for p in made.cells})
        print(f"{file}: right; {counted(sets, 'set')}, {counted(len(made.cells), 'cell')}")
    for line in made.missing:
        print(f"{file}: on this machine: {line}", file=sys.stderr)
    return DONE


def _tell(file: str, line: int | None, what: str, *, as_json: bool) -> None:
    """Tell what is wrong; a file that cannot be read has no lines."""
    if as_json:
        place = {} if line is None else {"line": line}
        print(json.dumps({"file": file, **place, "message": what}))
    else:
        place_of_line = "" if line is None else f":{line}"
        print(f"{file}{place_of_line}: {what}", file=sys.stderr)
