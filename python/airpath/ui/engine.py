# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The engine's commands as the page uses them: bounded in time, with their words for errors."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from airpath.engine import EngineError, find_engine
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE_S = 60.0
"""Maximum time of a command whose result the page waits for."""


def ask(words: Sequence[str], *, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of the engine to its end.

    Args:
        words: the command, without the engine's name.
        text: its input.

    Raises:
        UiError: there is no engine, or it takes too long.

    """
    try:
        return subprocess.run(
            [find_engine(), *words],
            input=text if text is not None else "",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (EngineError, OSError) as error:
        raise UiError(str(error), 500) from error
    except subprocess.TimeoutExpired as error:
        raise UiError(f"airpath {words[0]} took longer than {PATIENCE_S:.0f} s", 504) from error


def ask_json(words: Sequence[str]) -> Any:
    """Return the JSON that a command prints.

    Raises:
        UiError: the command fails; the message is its own.

    """
    done = ask(words)
    if done.returncode != 0:
        raise UiError(done.stderr.strip() or f"airpath {words[0]} failed")
    return json.loads(done.stdout)
