"""Telling experiment files from scenario files without parsing either.

``airpath check`` looks at every file so, before it decides who checks it: nothing heavy here.
"""

from __future__ import annotations

import re

_EXPERIMENT = re.compile(
    r"^\s*(?:\[\[\s*sets\s*\]\]|sets\s*=|\[\s*(?:networks|workloads)\s*\.)", re.MULTILINE
)


def is_experiment(path: str) -> bool:
    """Say whether a file has the tables of an experiment.

    True for one that is not there as well: who reads experiments says so of any file.
    """
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 (pathlib costs the engine's start)
            return _EXPERIMENT.search(file.read()) is not None
    except OSError:
        return path != "-"
    except UnicodeDecodeError:
        return False
