# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""ffmpeg and ffprobe as child processes, which end with this one.

The ffmpeg is that of ``--ffmpeg``, that of the variable ``AIRPATH_FFMPEG``, or the one on the
``PATH``. The ffprobe beside a chosen ffmpeg is used, or the one on the ``PATH``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.video.errors import FileError, LackingError, OptionError, VideoError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

QUIET = ("-hide_banner", "-nostdin", "-nostats", "-loglevel", "error", "-y")
SHOWN_LINES = 5
"""Lines of ffmpeg's own messages that an error shows, the last ones."""

VARIABLE = "AIRPATH_FFMPEG"
"""Variable of the environment that names the ffmpeg to use."""

_chosen: ContextVar[Path | None] = ContextVar("chosen", default=None)
"""The ffmpeg of ``--ffmpeg``."""

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def chosen(program: Path | None) -> Iterator[None]:
    """Use this ffmpeg within the block; None leaves the choice to variable and ``PATH``."""
    token = _chosen.set(program)
    try:
        yield
    finally:
        _chosen.reset(token)


def find(program: str = "ffmpeg") -> str:
    """Return the path of ffmpeg or ffprobe.

    Raises:
        VideoError: it is not installed.
        OptionError: what ``--ffmpeg`` names is no program.

    """
    option, variable = _chosen.get(), os.environ.get(VARIABLE)
    named = option or variable
    if named:
        given = Path(named).expanduser()
        # A path must hold in every working directory; a name alone is looked up in PATH, too.
        ffmpeg = shutil.which(str(given.absolute())) or shutil.which(str(given))
        if ffmpeg is None:
            kind, source = (OptionError, "--ffmpeg") if option else (LackingError, VARIABLE)
            message = f"{source} {named}: there is no such program, or it may not be executed"
            raise kind(message)
        if program == "ffmpeg":
            return ffmpeg
        beside = shutil.which(str(Path(ffmpeg).with_name(program)))
        if beside is not None:
            return beside
    path = shutil.which(program)
    if path is None:
        message = f"{program} is not here: apt install ffmpeg (Debian; elsewhere the same name)"
        raise LackingError(message)
    return path


@contextlib.contextmanager
def started(
    program: str, arguments: Sequence[str | Path], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; end it when the block ends, or this process does.

    Raises:
        VideoError: it is not installed.

    """
    with subprocess.Popen(
        [find(program), *map(str, arguments)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        preexec_fn=_end_with_parent,
        **options,
    ) as process:

        def end() -> None:
            with contextlib.suppress(OSError):
                process.kill()

        with interrupt.at_end(end):
            try:
                yield process
            except BaseException:
                end()
                raise


def run(arguments: Sequence[str | Path], what: str, *, folder: Path | None = None) -> bytes:
    """Run ffmpeg to its end; return its standard output.

    Args:
        arguments: those behind the ones that keep it quiet.
        what: the work, for the error: "read clip.h264".
        folder: where it runs.

    Raises:
        VideoError: it is not installed, or fails; the message has its last lines.

    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": folder}
    with started("ffmpeg", [*QUIET, *arguments], **options) as process:
        output, messages = process.communicate()
    check(process.returncode, messages, what)
    return output


def check(status: int, messages: bytes, what: str, kind: type[VideoError] = VideoError) -> None:
    """Do nothing if a program succeeded.

    Raises:
        VideoError: it did not; the message has its last lines.

    """
    if status != 0:
        lines = messages.decode(errors="replace").strip().splitlines()[-SHOWN_LINES:]
        told = "".join(f"\n  {line}" for line in lines) or "\n  (no message)"
        message = f"ffmpeg cannot {what} (exit status {status}):{told}"
        raise kind(message)


def probe(file: Path, options: Sequence[str] = ()) -> dict[str, Any]:
    """Return what ffprobe says of the first video stream of a file.

    Args:
        file: the file.
        options: those in front of it, such as its format.

    Raises:
        VideoError: the file is no video that ffprobe knows, or ffprobe is not installed.

    """
    entries = "stream=codec_name,width,height,avg_frame_rate,r_frame_rate:format=format_name"
    arguments = ["-hide_banner", "-loglevel", "error", *options, "-select_streams", "v:0"]
    arguments += ["-show_entries", entries, "-of", "json", str(file)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("ffprobe", arguments, **pipes) as process:
        output, messages = process.communicate()
    check(process.returncode, messages, f"read {file}", FileError)
    found = json.loads(output)
    streams = found.get("streams") or []
    if not streams:
        message = f"{file} holds no video"
        raise FileError(message)
    return {**streams[0], "format": found.get("format", {}).get("format_name", "")}
