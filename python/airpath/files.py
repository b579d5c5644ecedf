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

FRESH = ".new"
"""End of a file's name until it is complete."""


def told(error: OSError) -> str:
    """Return an error of the system in words: the file, and what is the matter with it."""
    what = error.strerror or str(error)
    return f"{os.fsdecode(error.filename)}: {what}" if error.filename else what


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


def read_bytes(path: Path) -> bytes:
    """Return what an ordinary file holds.

    Raises:
        OSError: it is not there, cannot be read, or is no ordinary file.

    """
    with os.fdopen(open_plain(path), "rb") as file:
        return file.read()


def read_text(path: Path) -> str:
    """Return the text of an ordinary file.

    Raises:
        OSError: it is not there, cannot be read, or is no ordinary file.
        ValueError: it is not UTF-8 text.

    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (at byte {error.start})"
        raise ValueError(message) from error


def check_folder(folder: Path) -> None:
    """Refuse to write into a folder of somebody else, who could put links in the files' places.

    Raises:
        OSError: it belongs to another user, or is not there.

    """
    owner = folder.stat().st_uid
    if owner not in (0, os.geteuid()):
        what = (
            f"belongs to another user ({_user(owner)}): who owns a folder can lead what is written "
            f"into it elsewhere; name a folder of your own with --out"
        )
        raise PermissionError(errno.EPERM, what, str(folder))


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"


def make_folder(folder: Path) -> Path:
    """Make a folder to write into, if it is not there; return it.

    Raises:
        OSError: it cannot be made, or belongs to another user.

    """
    folder.mkdir(parents=True, exist_ok=True)
    check_folder(folder)
    return folder


@contextmanager
def fresh(path: Path) -> Iterator[int]:
    """Make a file that has its name only once it is complete; yield what to write into.

    Where that fails, by an error or by a signal, what was there before is untouched, and nothing is
    left behind.

    Raises:
        OSError: it cannot be written; the error names the file.

    """
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
