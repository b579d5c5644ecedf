# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Places of results on command lines: a folder, or the URL of one."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Url(str):
    """The URL of a folder in a store; everything else is a path."""

    __slots__ = ()

    @property
    def scheme(self) -> str:
        """The word before ``://``, in small letters."""
        return self.partition("://")[0].lower()

    @property
    def last(self) -> str:
        """The last word of its path, or else the host or bucket."""
        return self.rstrip("/").rpartition("/")[2]


def place(word: str) -> Path | Url:
    """Return what a word on a command line names; ``file://`` is a folder of this machine.

    Raises:
        ValueError: it is a URL of a file on another machine, or names no folder.

    """
    if not _URL.match(word):
        return Path(word)
    url = Url(word.rstrip("/"))
    if url.scheme == "file":
        parts = urlsplit(word)
        if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
            raise ValueError(word)
        return Path(unquote(parts.path))
    if not url.partition("://")[2]:
        raise ValueError(word)
    return url
