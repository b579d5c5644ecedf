# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Points of a trace of rates, in any format that the engine reads."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from airpath.engine import EngineError, find_engine

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60.0
"""Maximum time for reading a trace."""


class RatesError(Exception):
    """A file is no trace of rates; the message is the engine's."""


def rates_of(path: Path) -> list[tuple[float, float]]:
    """Return times in seconds and rates in bit/s.

    Raises:
        RatesError: the file is no trace of rates, or the engine is missing.

    """
    try:
        done = subprocess.run(
            [find_engine(), "trace", "show", str(path), "--json", "--points"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (EngineError, OSError, subprocess.TimeoutExpired) as error:
        raise RatesError(str(error)) from error
    if done.returncode != 0:
        raise RatesError(done.stderr.strip().removeprefix("airpath: "))
    found = json.loads(done.stdout)
    if "rates" not in found:
        raise RatesError(f"{path}: it is a trace of errors, not of rates")
    return [(time_ns / 1e9, float(rate)) for time_ns, rate in found["rates"]]
