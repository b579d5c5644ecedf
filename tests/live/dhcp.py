# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A DHCP client of a test (RFC 2131): ``dhcp.py INTERFACE`` prints address and router, as JSON."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from pathlib import Path

COOKIE = b"\x63\x82\x53\x63"
DISCOVER, OFFER, REQUEST, ACK = 1, 2, 3, 5
ROUTER, REQUESTED, KIND, SERVER, END = 3, 50, 53, 54, 255


def ask(
    raw: socket.socket, address: bytes, kind: int, options: list[tuple[int, bytes]]
) -> dict[int, bytes]:
    """Send a message, and return the options of its answer, with the address as option 0."""
    number = os.urandom(4)
    head = struct.pack("!BBBB4sHH16x16s64x128x", 1, 1, 6, 0, number, 0, 0x8000, address)
    listed = [(KIND, bytes([kind])), *options]
    tail = b"".join(bytes([code, len(value)]) + value for code, value in listed)
    raw.sendto(head + COOKIE + tail + bytes([END]), ("255.255.255.255", 67))
    while True:
        answer = raw.recv(2048)
        if answer[4:8] != number:
            continue
        found, rest = {0: answer[16:20]}, answer[240:]
        while rest and rest[0] != END:
            if rest[0] == 0:
                rest = rest[1:]
                continue
            found[rest[0]] = rest[2 : 2 + rest[1]]
            rest = rest[2 + rest[1] :]
        return found


def main(interface: str) -> None:
    """Get a lease."""
    text = Path(f"/sys/class/net/{interface}/address").read_text().strip()
    address = bytes.fromhex(text.replace(":", ""))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        raw.bind(("", 68))
        raw.settimeout(40)
        offer = ask(raw, address, DISCOVER, [])
        assert offer[KIND][0] == OFFER
        chosen = [(REQUESTED, offer[0]), (SERVER, offer[SERVER])]
        lease = ask(raw, address, REQUEST, chosen)
        assert lease[KIND][0] == ACK
    print(json.dumps([socket.inet_ntoa(lease[0]), socket.inet_ntoa(lease[ROUTER])]))


if __name__ == "__main__":
    main(sys.argv[1])
