# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The ``airpath`` command: hands most subcommands to the engine, keeps a few for Python."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed does not have it
import os
import sys

# Ctrl-C ends this process by the signal, without a word, from here on: in the engine, which it may
# become, and in Python until a command has been imported and sees to it itself. The module below
# `signal` is built in; `signal` takes ten times as long to import, in which Ctrl-C is a traceback.
if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> int:
    """Run the ``airpath`` command with ``sys.argv``; return its exit status.

    Commands that Python does not own never return: the process becomes the engine.
    """
    arguments = sys.argv[1:]
    if arguments[:1] == ["help"] and len(arguments) > 1:  # airpath help exec
        arguments = [*arguments[1:], "--help"]
    command = arguments[0] if arguments else "--help"
    if command in ("--help", "-h", "help"):
        from airpath.commands import overview

        try:
            print(overview(), flush=True)
        except BrokenPipeError:  # `airpath --help | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        from airpath.facts import EXIT_STATUSES

        return EXIT_STATUSES["done" if arguments else "usage"]
    if command in ("--version", "-V"):
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"airpath {version('airpath')}")
        except PackageNotFoundError:
            print(
                "airpath: this tree is not installed, and has no version; "
                "run `make setup` in it, or ask airpath-engine --version",
                file=sys.stderr,
            )
            from airpath.facts import EXIT_STATUSES

            return EXIT_STATUSES["lacking"]
        return 0

    from airpath.routing import NAMES, is_mistyped, is_of_python

    if is_of_python(arguments):
        from airpath.app import run
        from airpath.terminal import show_control_characters

        show_control_characters()
        return run(arguments)
    if is_mistyped(command):
        from airpath.commandline import unknown_command
        from airpath.facts import EXIT_STATUSES

        print(unknown_command(command, NAMES), file=sys.stderr)
        return EXIT_STATUSES["usage"]

    from airpath.engine import EngineError, become_engine

    try:
        become_engine(arguments)
    except EngineError as error:
        print(f"airpath: {error}", file=sys.stderr)
    from airpath.facts import EXIT_STATUSES

    return EXIT_STATUSES["lacking"]
