# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Finding the engine, and becoming it.

``airpath exec …`` runs on every use, often many times in a script, so this module imports nothing
that the interpreter has not loaded already.
"""

from __future__ import annotations

import os
import sys

ENGINE = "airpath-engine"
"""File name of the engine's binary."""

ENGINE_VARIABLE = "AIRPATH_ENGINE"
"""Environment variable that names another engine binary, for those who work on the engine."""


class EngineError(Exception):
    """The engine's binary is missing or cannot be run."""


def find_engine() -> str:
    """Return the path of the engine's binary.

    In order: what ``AIRPATH_ENGINE`` names, the directory of this interpreter's scripts, the
    directory of the ``airpath`` script that was started, ``PATH``.

    Raises:
        EngineError: there is none; the message says how to mend that.

    """
    named = os.environ.get(ENGINE_VARIABLE)
    if named:
        if _is_program(named):
            return named
        message = (
            f"{ENGINE_VARIABLE} names {named!r}, which is no executable file; "
            f"correct it, or unset it to use the installed engine"
        )
        raise EngineError(message)
    directories = [os.path.join(sys.prefix, "bin")]
    if os.path.basename(sys.argv[0]) == "airpath":  # `pip install --user` keeps scripts elsewhere
        directories.append(os.path.dirname(os.path.abspath(sys.argv[0])))
    directories += os.environ.get("PATH", os.defpath).split(os.pathsep)
    for directory in directories:
        candidate = os.path.join(directory, ENGINE)
        if directory and _is_program(candidate):
            return candidate
    message = (
        f"the engine, {ENGINE}, is neither in {directories[0]} nor in PATH; "
        f"run `make setup` in a source tree, install the airpath wheel anew "
        f"(`pip install --force-reinstall airpath`), "
        f"or set {ENGINE_VARIABLE} to the path of the binary"
    )
    raise EngineError(message)


def become_engine(arguments: list[str]) -> None:
    """Replace this process by the engine, run with ``arguments``; return never.

    Signals, terminal and exit status are the engine's own from here on.

    Raises:
        EngineError: there is no engine, or it cannot be run (a wheel of another platform, say).

    """
    engine = find_engine()
    _restore_signals()
    try:
        os.execv(engine, [engine, *arguments])
    except OSError as error:
        message = f"cannot run {engine}: {error.strerror}; install airpath anew for this machine"
        raise EngineError(message) from error


def _restore_signals() -> None:
    """Undo what the interpreter changed, lest every program behind the link inherit it.

    Python ignores these two signals, and ignored signals survive execv: ``yes | head`` run by
    ``airpath exec`` would report errors instead of ending quietly.
    """
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
