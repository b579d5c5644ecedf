# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One bulk transfer over TCP: the two programs of the case study.

    transfer.py send PORT --bytes N             accepts one connection and sends N bytes over it
    transfer.py receive HOST PORT --bytes N     fetches them and checks every byte

Both ends take ``--sysctl NAME=VALUE`` and ``--initial-window SEGMENTS``, which hold for the network
namespace they are started in and are therefore meant for ``airpath exec`` alone. The receiving end
takes ``--wait SECONDS``: how long to do nothing first.
"""

from __future__ import annotations

import argparse
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

LINGER_SECONDS = 600
"""Longest time that a close waits for the other end to acknowledge it."""

SILENCE_SECONDS = 1800
"""After so long without a byte an end gives up. TCP backs off for up to two minutes at a time."""


def pattern(size_bytes: int) -> bytes:
    """Return bytes in which every 4-byte word is its own index, so that nothing can be swapped."""
    words = -(-size_bytes // 4)
    return struct.pack(f">{words}I", *range(words))[:size_bytes]


def send(port: int, size_bytes: int) -> None:
    """Accept one connection on any address and send it the pattern."""
    with socket.create_server(("", port)) as listener:
        listener.settimeout(SILENCE_SECONDS)
        connection, _ = listener.accept()
    with connection:
        connection.settimeout(SILENCE_SECONDS)
        connection.sendall(pattern(size_bytes))
        connection.shutdown(socket.SHUT_WR)
        # The other end closes when it has everything.
        connection.recv(1)


def receive(host: str, port: int, size_bytes: int) -> None:
    """Fetch the pattern; return once the sender knows that all of it has arrived.

    Raises:
        ValueError: other bytes arrived than were sent, or fewer.

    """
    chunks = []
    with socket.create_connection((host, port), timeout=SILENCE_SECONDS) as connection:
        while chunk := connection.recv(65536):
            chunks.append(chunk)
        # A close that lingers returns when its FIN is acknowledged, and with it goes the last
        # acknowledgement of data: the sender's log is complete when this program ends.
        connection.setblocking(True)
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_SECONDS)
        )
    received = b"".join(chunks)
    if received != pattern(size_bytes):
        message = f"received {len(received)} bytes, which are not the {size_bytes} that were sent"
        raise ValueError(message)


def set_kernel(name: str, value: str) -> None:
    """Write a kernel setting of this network namespace, such as net.ipv4.tcp_timestamps."""
    if not name.startswith("net."):
        message = f"--sysctl {name}: only settings of a network namespace (net.…) can be set"
        raise ValueError(message)
    (Path("/proc/sys") / name.replace(".", "/")).write_text(value)


def set_initial_window(segments: int) -> None:
    """Set the initial congestion window on every IPv4 route of this network namespace."""
    shown = subprocess.run(
        ["ip", "-4", "route", "show"], capture_output=True, text=True, check=True
    )
    for route in shown.stdout.splitlines():
        subprocess.run(
            ["ip", "-4", "route", "change", *route.split(), "initcwnd", str(segments)], check=True
        )


def main() -> int:
    """Run one end; the exit status is 1 if the transfer failed."""
    parser = argparse.ArgumentParser(description="One bulk transfer over TCP.")
    ends = parser.add_subparsers(dest="end", required=True)
    sender = ends.add_parser("send", help="accept one connection and send over it")
    receiver = ends.add_parser("receive", help="fetch and check")
    receiver.add_argument("host")
    receiver.add_argument("--wait", type=float, default=0.0, metavar="SECONDS")
    for end in (sender, receiver):
        end.add_argument("port", type=int)
        end.add_argument("--bytes", type=int, required=True)
        end.add_argument("--sysctl", action="append", default=[], metavar="NAME=VALUE")
        end.add_argument("--initial-window", type=int, metavar="SEGMENTS")
    arguments = parser.parse_args()
    try:
        for setting in arguments.sysctl:
            name, _, value = setting.partition("=")
            set_kernel(name, value)
        if arguments.initial_window:
            set_initial_window(arguments.initial_window)
        if arguments.end == "send":
            send(arguments.port, arguments.bytes)
        else:
            time.sleep(arguments.wait)
            receive(arguments.host, arguments.port, arguments.bytes)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"transfer.py {arguments.end}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
