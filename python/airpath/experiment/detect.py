# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Telling experiment files from scenario files without parsing either.

``airpath check`` looks at every file so, before it decides who checks it: nothing heavy here.
"""

from __future__ import annotations

import os
import re
import stat

_EXPERIMENT = re.compile(
    r"^\s*(?:\[\[\s*sets\s*\]\]|sets\s*=|\[\s*(?:networks|workloads)\s*\.)", re.MULTILINE
)

MOST_BYTES = 16_000_000
"""The longest experiment file that is read, in bytes."""


def is_experiment(path: str) -> bool:
    """Say whether a file has the tables of an experiment.

    True for one that is not there as well: who reads experiments says so of any file. A pipe or a
    device is left to the engine, as it can be read only once, or without end; so is a long file.
    """
    try:
        about = os.stat(path)  # noqa: PTH116 (pathlib costs the engine's start)
        if (
            stat.S_ISFIFO(about.st_mode)
            or stat.S_ISCHR(about.st_mode)
            or about.st_size > MOST_BYTES
        ):
            return False
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return _EXPERIMENT.search(file.read()) is not None
    except OSError:
        return path != "-"
    except UnicodeDecodeError:
        return False
