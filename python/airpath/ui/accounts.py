# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Accounts of a page that other machines can reach: names, and passwords as scrypt keeps them.

The file has one line an account, ``NAME:SALT:KEY`` in hexadecimal. ``airpath ui --add-account
NAME`` writes it, with mode 0600.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airpath.files import open_plain
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_COST = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 2**20}
LEAST_PASSWORD = 12
"""Minimum length of a password."""

_REFUSALS_BEFORE_WAIT = 5
_WAIT_S = 30.0


@dataclass
class Accounts:
    """The accounts of a file."""

    keys: dict[str, tuple[bytes, bytes]]
    """Salt and key of each name."""
    _refused: list[float] = field(default_factory=list)

    @classmethod
    def of_file(cls, path: Path) -> Accounts:
        """Read the accounts of a file.

        Raises:
            UiError: the file cannot be read, others may read it, or a line is no account.

        """
        try:
            with os.fdopen(open_plain(path), encoding="utf-8") as file:
                if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise UiError(f"{path}: others may read it; chmod 600 {path}")
                lines = file.read(1_000_000).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UiError(f"{path}: cannot be read: {error}") from error
        keys = {}
        for number, line in enumerate(lines, 1):
            name, _, rest = line.partition(":")
            salt, _, key = rest.partition(":")
            try:
                keys[name] = (bytes.fromhex(salt), bytes.fromhex(key))
            except ValueError:
                keys[name] = (b"", b"")
            if not _NAME.fullmatch(name) or not all(keys[name]):
                raise UiError(f"{path}:{number}: is no account; write it with --add-account")
        if not keys:
            raise UiError(f"{path}: has no account; add one with --add-account NAME")
        return cls(keys)

    def opens(self, name: str, password: str) -> bool:
        """Say whether a password is that of a name.

        Raises:
            UiError: there were too many wrong ones lately.

        """
        now = time.monotonic()
        self._refused = [at for at in self._refused if now - at < _WAIT_S]
        if len(self._refused) >= _REFUSALS_BEFORE_WAIT:
            raise UiError(f"too many wrong passwords; try again in {_WAIT_S:.0f} s", 429)
        # An unknown name takes as long as a known one.
        salt, key = self.keys.get(name, (b"\0" * 16, b""))
        if hmac.compare_digest(_key(password, salt), key):
            return True
        self._refused.append(now)
        return False


def add_account(path: Path, name: str, password: str) -> None:
    """Add an account to a file, or give the account of that name another password.

    Raises:
        UiError: the name or the password is not possible, or the file cannot be written.

    """
    if not _NAME.fullmatch(name):
        raise UiError(f"{name!r} is no name of an account: use letters, digits, `_`, `.`, `@`, `-`")
    if len(password) < LEAST_PASSWORD:
        raise UiError(f"the password is shorter than {LEAST_PASSWORD} characters")
    salt = secrets.token_bytes(16)
    try:
        before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [line for line in before if not line.startswith(f"{name}:")]
        text = "\n".join([*kept, f"{name}:{salt.hex()}:{_key(password, salt).hex()}", ""])
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        fresh = path.with_name(f".{path.name}.new")
        with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    except OSError as error:
        raise UiError(f"{path}: cannot be written: {error.strerror}") from error


def _key(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, **_COST)
