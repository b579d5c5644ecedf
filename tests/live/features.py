# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A program in a test's network: switches features of an interface off, as ``ethtool -K`` does.

``features.py INTERFACE FEATURE…``, with the kernel's names such as ``tx-vlan-hw-insert``.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
import sys

IOCTL = 0x8946
GET_STRINGS = 0x1B
GET_SET_INFO = 0x37
SET_FEATURES = 0x3B
STRINGS_OF_FEATURES = 4
NAME_BYTES = 32


def call(interface: str, request: bytes) -> bytes:
    """Hand a structure of ethtool to the kernel, and return what it has written into it."""
    memory = array.array("B", request)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kernel:
        fcntl.ioctl(
            kernel, IOCTL, struct.pack("16sP16x", interface.encode(), memory.buffer_info()[0])
        )
    return memory.tobytes()


def names(interface: str) -> list[str]:
    """Return the names of all features, in the kernel's order."""
    info = call(interface, struct.pack("=IIQI", GET_SET_INFO, 0, 1 << STRINGS_OF_FEATURES, 0))
    count = struct.unpack_from("=I", info, 16)[0]
    head = struct.pack("=III", GET_STRINGS, STRINGS_OF_FEATURES, count)
    told = call(interface, head + bytes(NAME_BYTES * count))[len(head) :]
    fields = (told[at : at + NAME_BYTES] for at in range(0, len(told), NAME_BYTES))
    return [field.split(b"\0")[0].decode() for field in fields]


def switch_off(interface: str, features: list[str]) -> None:
    """Switch features off."""
    known = names(interface)
    blocks = -(-len(known) // 32)
    valid = [0] * blocks
    for feature in features:
        index = known.index(feature)
        valid[index // 32] |= 1 << (index % 32)
    pairs = b"".join(struct.pack("=II", block, 0) for block in valid)
    call(interface, struct.pack("=II", SET_FEATURES, blocks) + pairs)


if __name__ == "__main__":
    switch_off(sys.argv[1], sys.argv[2:])
