# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Addresses as users write them: HOST:PORT, [HOST]:PORT, :PORT."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from typing import NamedTuple

from airpath.video.errors import OptionError

DEPTH_VARIABLE = "AIRPATH_DEPTH"
"""Variable that the engine sets for the commands of a run."""


class Endpoint(NamedTuple):
    """An address of one family, and a port."""

    family: socket.AddressFamily
    address: str
    port: int

    @property
    def shown(self) -> str:
        """The endpoint as users write it."""
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else f"{self.address}:{self.port}"
        )


def split(text: str, flag: str) -> tuple[str, int]:
    """Return host and port of a text; the host is empty where it has none.

    Raises:
        OptionError: it has no port.

    """
    found = re.fullmatch(r"(?:\[([^\]]*)\]|([^:\[\]]*)):(\d{1,5})", text)
    if not found or not 1 <= int(found[3]) <= 65535:
        message = f"{flag} {text} is no HOST:PORT, such as server:5004 or [::1]:5004"
        raise OptionError(message)
    return found[1] or found[2] or "", int(found[3])


def resolve(text: str, flag: str, *, ipv4: bool = False) -> Endpoint:
    """Return the first address of a host, in the system's order.

    Args:
        text: HOST:PORT.
        flag: the option that it comes from.
        ipv4: whether only addresses of IPv4 count.

    Raises:
        OptionError: there is no such host.

    """
    host, port = split(text, flag)
    if not host:
        message = f"{flag} {text} names no host: write for example server:{port}"
        raise OptionError(message)
    try:
        family = socket.AF_INET if ipv4 else socket.AF_UNSPEC
        found = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)
    except OSError as error:
        message = f"{flag} {text}: {host} is unknown: {error.strerror}"
        raise OptionError(message) from error
    family, _, _, _, address = found[0]
    return Endpoint(family, str(address[0]), port)


def to_listen(text: str) -> Endpoint:
    """Return the address to listen at.

    For :PORT that is every address behind a link of Airpath (that of IPv6 that takes IPv4 too, if
    there is one), and the loopback elsewhere, so that no other host reaches the receiver.

    Raises:
        OptionError: there is no such host.

    """
    host, port = split(text, "--listen")
    if host:
        return resolve(text, "--listen")
    if not is_behind_link():
        return Endpoint(socket.AF_INET, "127.0.0.1", port)
    if socket.has_ipv6 and _is_local("::", socket.AF_INET6):
        return Endpoint(socket.AF_INET6, "::", port)
    return Endpoint(socket.AF_INET, "0.0.0.0", port)


def is_behind_link() -> bool:
    """Say whether this process is at an end of a link: the environment says so, and it is true."""
    if DEPTH_VARIABLE not in os.environ:
        return False
    for name in ("server", "client"):
        with contextlib.suppress(OSError):
            found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
            if any(_is_local(str(address[0]), family) for family, _, _, _, address in found):
                return True
    return False


def _is_local(address: str, family: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((address, 0))
        return True
    return False
