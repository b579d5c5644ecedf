# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""AF_XDP of this machine, for tests that need it."""

from __future__ import annotations

import socket

import pytest

FAMILY = 44


def needs_xdp() -> None:
    """Skip a test where the kernel has no AF_XDP."""
    try:
        socket.socket(FAMILY, socket.SOCK_RAW).close()
    except OSError as error:
        pytest.skip(f"this kernel has no AF_XDP for this user: {error}")
