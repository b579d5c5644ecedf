# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The errors of the commands about video."""

from __future__ import annotations

from airpath.facts import EXIT_STATUSES


class VideoError(Exception):
    """A command about video cannot do its work; the message is all that the user reads."""

    status = EXIT_STATUSES["undone"]
    """Exit status of the command."""


class OptionError(VideoError):
    """An option of a command about video is wrong."""

    status = EXIT_STATUSES["usage"]


class FileError(VideoError):
    """A file that was named is damaged, or is no video that can be used."""

    status = EXIT_STATUSES["usage"]


class LackingError(VideoError):
    """A program that is needed is not installed, or the kernel does not have what is needed."""

    status = EXIT_STATUSES["lacking"]
