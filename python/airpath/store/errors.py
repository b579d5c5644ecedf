# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Errors of stores in words: what could not be done, why, and what mends it."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airpath.facts import EXIT_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = ("QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "507")
"""Words by which stores say that they are full."""

NO_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "TokenRetrievalError",
)
"""Errors of S3's package where it does not know who asks."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OF_THE_URL = frozenset({errno.EPROTONOSUPPORT, errno.EINVAL, errno.ENOENT})
"""Errors of what was named, rather than of the store."""


class StoreError(OSError):
    """A store that cannot be used; the message says what mends it."""

    @property
    def status(self) -> int:
        """Exit status of a command that ends with the error."""
        if self.errno in _FULL:
            return int(EXIT_STATUSES["unwritable"])
        return int(EXIT_STATUSES["usage" if self.errno in _OF_THE_URL else "undone"])


@contextmanager
def told_of(url: str, doing: str) -> Iterator[None]:
    """Turn whatever a store's package raises into an error that says what mends it.

    Args:
        url: the store.
        doing: what is tried, such as ``write``.

    Raises:
        StoreError: something went wrong in the block.

    """
    try:
        yield
    except StoreError:
        raise
    except Exception as error:  # packages of stores raise what they like
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
        raise StoreError(number, _words(url, doing, error), url) from error


def _words(url: str, doing: str, error: Exception) -> str:
    name = type(error).__name__
    said = " ".join(str(error).split())[:300] or name
    scheme, _, rest = url.partition("://")
    bucket = rest.partition("/")[0]
    number = error.errno if isinstance(error, OSError) else None
    is_s3 = scheme in ("s3", "s3a")
    if name in (
        "NoCredentialsError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "TokenRetrievalError",
    ):
        return (
            f"no credentials ({said}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            f"AWS_PROFILE"
        )
    if number in (errno.ENOSPC, errno.EDQUOT) or any(word in said for word in FULL):
        return f"no space is left there to {doing} ({said}); make room, and go on with --resume"
    if isinstance(error, PermissionError):
        rights = "s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject" if is_s3 else "it"
        return f"access denied, to {doing} ({said}); the credentials need the right to {rights}"
    if isinstance(error, FileNotFoundError) and is_s3:
        return (
            f"no bucket `{bucket}` to {doing} ({said}); make it with `aws s3 mb s3://{bucket}`, or "
            f"mend the name"
        )
    if _is_of_network(name, error):
        where = "the network and AWS_ENDPOINT_URL" if is_s3 else "the network and the URL"
        return f"cannot be reached, to {doing} ({said}); check {where}"
    return f"cannot {doing} ({name}: {said})"


def _is_of_network(name: str, error: Exception) -> bool:
    return isinstance(error, ConnectionError | TimeoutError) or name in (
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ClientConnectorError",
        "ConnectionClosedError",
        "HTTPClientError",
        "gaierror",
        "InvalidEndpointDiscoveryConfigurationError",
    )
