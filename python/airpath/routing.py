# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Names of all commands, and which of them are Python's.

Every start of the command comes by, also that of a link: this module imports nothing. What the
commands are, ``declarations.py`` and the engine's facts say; tests compare the names.
"""

from __future__ import annotations

NAMES = (
    *("exec", "shell", "gateway", "relay", "sim", "run", "plan", "results", "profiles", "check"),
    *("schema", "facts", "log", "send", "recv", "record", "runs", "state", "set", "drive"),
    *("replay", "trace", "fading", "modes", "wsim", "timing", "warp", "analyse", "plot", "report"),
    *("ui", "video", "wireshark", "completions", "man"),
)
"""All commands, in the order of the overview."""

OF_PYTHON = frozenset(
    {
        *("run", "plan", "results", "drive", "analyse", "plot", "report", "ui", "video"),
        *("wireshark", "completions", "man"),
    }
)
"""Commands of Python's."""

OF_BOTH = frozenset({"check", "schema"})
"""The engine's for scenarios, Python's for experiments."""

BELOW_THE_ENGINES = frozenset(
    {
        *(("trace", "plot"), ("trace", "fit"), ("trace", "send"), ("trace", "capture")),
        *(("fading", "show"), ("fading", "convert")),
        *(("timing", "plot"), ("timing", "table")),
    }
)
"""Python's among the subcommands of the engine's commands."""

BELOW_PYTHONS = frozenset(
    {("video", "make"), ("video", "send"), ("video", "receive"), ("video", "compare")}
)
"""Subcommands of Python's commands."""


def is_of_python(arguments: list[str]) -> bool:
    """Say whether Python carries a command line out, rather than the engine."""
    command = arguments[0]
    return (
        command in OF_PYTHON
        or tuple(arguments[:2]) in BELOW_THE_ENGINES
        or (command in OF_BOTH and not {"-h", "--help"}.isdisjoint(arguments))
        or (command == "schema" and "--experiment" in arguments)
        or (command == "check" and _names_an_experiment(arguments[1:]))
    )


def is_mistyped(word: str) -> bool:
    """Say whether a word is no command, and near to one of Python's, which the engine cannot know.

    What else is not known here is for the engine to say: it may be newer.
    """
    if word in NAMES or word.startswith("-"):
        return False
    import difflib  # only where there is no such command

    return bool(difflib.get_close_matches(word, sorted(OF_PYTHON), 1, 0.7))


def _names_an_experiment(arguments: list[str]) -> bool:
    """Say whether one of the files to check is an experiment, which Python checks."""
    from airpath.experiment.detect import is_experiment

    return any(is_experiment(word) for word in arguments if not word.startswith("-"))
