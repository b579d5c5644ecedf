# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Files of a store, by any package that fsspec knows."""

from __future__ import annotations

import errno
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.extras import MissingExtraError, require
from airpath.store.errors import StoreError, told_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from airpath.store.url import Url

AT_ONCE = 100
"""Files that are asked for together, between two tellings of how far it is."""

PATIENCE = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 4}}
"""For S3: seconds, and the number of tries."""


@dataclass(frozen=True)
class Found:
    """A file of a store."""

    size: int
    version: str
    """Differs once the file has other contents: a digest, or the time of its last change."""


class Store:
    """The files below a URL."""

    def __init__(self, url: Url) -> None:
        """Find the package that knows such URLs.

        Raises:
            MissingExtraError: it is not installed.
            StoreError: no package knows them.

        """
        self.url = url
        needs = f"{url.scheme}:// as a place of results"
        is_s3 = url.scheme in ("s3", "s3a")
        if is_s3 or importlib.util.find_spec("fsspec") is None:
            require("s3", needs)
        from fsspec.core import url_to_fs

        options: dict[str, Any] = {"config_kwargs": PATIENCE} if is_s3 else {}
        try:
            with told_of(url, "be used"):
                self.files, self.path = url_to_fs(str(url), **options)
        except StoreError as error:
            if isinstance(error.__cause__, ImportError):
                message = f"{needs}: {error.__cause__}"
                raise MissingExtraError(message) from error
            if isinstance(error.__cause__, ValueError):
                what = "there is no such kind of URL; use s3://BUCKET/PREFIX, or a folder"
                raise StoreError(errno.EPROTONOSUPPORT, what, str(url)) from error
            raise
        self.path = self.path.rstrip("/")

    def listed(self) -> dict[str, Found]:
        """Return all files, by their names below the URL; none where there is nothing.

        Raises:
            StoreError: they cannot be listed, or a name leads out of a folder.

        """
        with told_of(self.url, "list files"):
            self.files.invalidate_cache()
            try:
                found = self.files.find(self.path, detail=True)
            except FileNotFoundError:
                # A prefix that nothing has, or a bucket that is not there: a write will tell.
                found = {}
        prefix = self.files._strip_protocol(self.path) + "/"
        listed = {}
        for path, about in found.items():
            name = path.removeprefix(prefix)
            if name == path or not name or name.endswith("/"):
                continue
            if any(word in ("", ".", "..") or "\0" in word for word in name.split("/")):
                raise StoreError(
                    errno.EINVAL, f"the name `{name!r:.200}` leads out of a folder", str(self.url)
                )
            listed[name] = Found(int(about.get("size") or 0), _version(about))
        return listed

    def get(self, names: Sequence[str], folder: Path, progress: Callable[[int, int], None]) -> None:
        """Fetch files into a folder.

        Raises:
            StoreError: one cannot be fetched.

        """
        for done in range(0, len(names), AT_ONCE):
            progress(done, len(names))
            some = names[done : done + AT_ONCE]
            for name in some:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with told_of(self.url, "fetch files"):
                self.files.get(
                    [f"{self.path}/{name}" for name in some], [str(folder / n) for n in some]
                )

    def put(self, folder: Path, names: Sequence[str]) -> None:
        """Write files of a folder.

        Raises:
            StoreError: one cannot be written.

        """
        with told_of(self.url, "write"):
            for name in names if not self.files.async_impl else ():
                self.files.makedirs(f"{self.path}/{name}".rpartition("/")[0], exist_ok=True)
            self.files.put(
                [str(folder / name) for name in names], [f"{self.path}/{name}" for name in names]
            )

    def write(self, name: str, content: bytes) -> None:
        """Write a file.

        Raises:
            StoreError: it cannot be written.

        """
        path = f"{self.path}/{name}"
        with told_of(self.url, "write"):
            if not self.files.async_impl:
                self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.files.pipe_file(path, content)

    def read(self, name: str) -> bytes | None:
        """Return a file's contents; None if there is no such file.

        Raises:
            StoreError: it cannot be read.

        """
        with told_of(self.url, "read"):
            self.files.invalidate_cache()
            try:
                content: bytes = self.files.cat_file(f"{self.path}/{name}")
            except FileNotFoundError:
                return None
        return content

    def remove(self, names: Sequence[str]) -> None:
        """Delete files.

        Raises:
            StoreError: one cannot be deleted.

        """
        if not names:
            return
        with told_of(self.url, "delete"):
            try:
                self.files.rm([f"{self.path}/{name}" for name in names])
            except FileNotFoundError:
                return


def _version(about: dict[str, Any]) -> str:
    for key in ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "modified"):
        if about.get(key):
            return str(about[key])
    return ""
