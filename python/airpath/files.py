# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Files of runs and results: read where they are files, written where nobody can lead astray.

What is read may be anything: a pipe that never ends, a device, a folder. What is written goes into
a folder of this user's (or of root's), into a file that is made for it: never through a link that
somebody left there.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airpath import interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

REPLICATION = "replication.json"
"""Record of an experiment on a run."""

FRESH = ".new"
"""End of a file's name until it is complete."""


class UnwritableError(OSError):
    """Output cannot be written, or its folder not be made."""


def told(error: OSError) -> str:
    """Return an error of the system in words: the file, and what is the matter with it."""
    what = error.strerror or str(error)
    if not error.filename:
        return what
    name = os.fsdecode(error.filename)
    if not isinstance(error, UnwritableError):
        return f"{name}: {what}"
    mend = _MEND.get(error.errno or 0)
    return f"cannot write {name}: {what}{f'; {mend}' if mend else ''}"


_MEND = {
    errno.EACCES: "name another place, or get the right to write there",
    errno.EEXIST: "name another place: there is a file",
    errno.EDQUOT: "make room there, or name another place",
    errno.ENOENT: "make the folder, or name another place",
    errno.ENOSPC: "make room there, or name another place",
    errno.ENOTDIR: "name another place: a part of the name is a file",
    errno.EROFS: "name another place: the file system there is read-only",
}
"""Advice on errors of the system when something is written."""


@contextmanager
def writing() -> Iterator[None]:
    """Have errors of the system in the block be those of output.

    Raises:
        UnwritableError: there was one.

    """
    try:
        yield
    except UnwritableError:
        raise
    except OSError as error:
        raise UnwritableError(error.errno, error.strerror, error.filename) from error


def open_plain(path: Path) -> int:
    """Open a file for reading; return its descriptor.

    Raises:
        OSError: it is not there, cannot be read, or is no ordinary file.

    """
    # Without O_NONBLOCK, a pipe that nobody writes to would be waited for.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return handle
    os.close(handle)
    number = errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL
    what = "is a folder, not a file" if stat.S_ISDIR(kind) else "is no ordinary file"
    raise OSError(number, what, str(path))


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """Return what an ordinary file holds.

    Args:
        path: the file.
        most: how many bytes it may have; None for any number.

    Raises:
        OSError: it is not there, cannot be read, is no ordinary file, or is longer.

    """
    with os.fdopen(open_plain(path), "rb") as file:
        if most is None:
            return file.read()
        content = file.read(most + 1)
    if len(content) > most:
        what = f"it is longer than {most / 1e6:g} MB, the limit for such a file"
        raise OSError(errno.EFBIG, what, str(path))
    return content


def read_text(path: Path, most: int | None = None) -> str:
    """Return the text of an ordinary file.

    Args:
        path: the file.
        most: how many bytes it may have; None for any number.

    Raises:
        OSError: it is not there, cannot be read, is no ordinary file, or is longer.
        ValueError: it is not UTF-8 text.

    """
    try:
        return read_bytes(path, most).decode()
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (at byte {error.start})"
        raise ValueError(message) from error


def check_folder(folder: Path) -> None:
    """Refuse to write into a folder in which somebody else can exchange what is written.

    As the engine does with the folders of runs.

    Raises:
        OSError: it belongs to another user, everybody may write to it, or it is not there.

    """
    for place in (*reversed(folder.absolute().parents), folder.absolute()):
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode) and not _is_trusted(about.st_uid):
            what = (
                f"is a link that belongs to another user ({_user(about.st_uid)}), and is not "
                f"followed; name the place itself, or remove the link"
            )
            raise PermissionError(errno.EPERM, what, str(place))
    about = folder.stat()
    if not _is_trusted(about.st_uid):
        who = f"belongs to another user ({_user(about.st_uid)}), who could"
    elif about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
        who = "may be written to by everybody (`chmod o-w` ends that), who could"
    else:
        return
    what = (
        f"{who} exchange what is written there; a folder that does not exist yet is made and is "
        f"yours (--out)"
    )
    raise PermissionError(errno.EPERM, what, str(folder))


def _is_trusted(owner: int) -> bool:
    if owner in (0, os.geteuid()):
        return True
    # In a user namespace all that is not this user's has this owner, root's too.
    try:
        nobody = int(Path("/proc/sys/kernel/overflowuid").read_text())
        inside, outside, count = Path("/proc/self/uid_map").read_text().split()[:3]
    except (OSError, ValueError):
        return False
    return owner == nobody and (inside, outside, count) != ("0", "0", str(2**32 - 1))


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def make_folder(folder: Path) -> Path:
    """Make a folder to write into, if it is not there; return it.

    Raises:
        UnwritableError: it cannot be made, or belongs to another user.

    """
    with writing():
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(folder)
    return folder


@contextmanager
def fresh(path: Path) -> Iterator[int]:
    """Make a file that has its name only once it is complete; yield what to write into.

    Where that fails, by an error or by a signal, what was there before is untouched, and nothing is
    left behind.

    Raises:
        UnwritableError: it cannot be written; the error names the file.

    """
    with writing(), _made(path) as handle:
        yield handle


@contextmanager
def _made(path: Path) -> Iterator[int]:
    check_folder(path.parent)
    if path.exists() and not path.is_file():
        what = "is a folder" if path.is_dir() else "is no ordinary file"
        raise OSError(errno.EINVAL, f"{what}; name a file", str(path))
    # A link goes, not what it leads to; what a killed process left goes as well.
    made = path.with_name(path.name + FRESH)
    with interrupt.unlinked(made):
        try:
            with suppress(FileNotFoundError):
                made.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(made, flags, 0o666)
            try:
                yield handle
            finally:
                os.close(handle)
            made.rename(path)
        except OSError as error:
            # Of calls over a descriptor an error names no file.
            if error.filename in (None, str(made), made):
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise


def check_place(path: Path) -> None:
    """Make sure that a file can be written, before there is anything to write.

    Raises:
        UnwritableError: it cannot.

    """
    with writing():
        check_folder(path.parent)
        made = path.with_name(path.name + FRESH)
        with interrupt.unlinked(made):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                os.close(os.open(made, flags, 0o666))
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error


def write_all(handle: int, content: bytes) -> None:
    """Write all of it; the system may take a part only, as when a disk is about to be full.

    Raises:
        OSError: there is no room, or the device failed.

    """
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def write_whole(path: Path, content: str | bytes, *, sync: bool = False) -> None:
    """Write a file so that it is there whole or not at all, whatever happens.

    Args:
        path: the file.
        content: all of it.
        sync: whether it shall be on the disk when this returns.

    Raises:
        OSError: it cannot be written; the error names the file.

    """
    with fresh(path) as handle:
        write_all(handle, content.encode() if isinstance(content, str) else content)
        if sync:
            os.fsync(handle)
