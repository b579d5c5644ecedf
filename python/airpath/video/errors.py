# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The errors of the commands about video."""

from __future__ import annotations


class VideoError(Exception):
    """A command about video cannot do its work; the message is all that the user reads."""


class OptionError(VideoError):
    """An option of a command about video is wrong."""
