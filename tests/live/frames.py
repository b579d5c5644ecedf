# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A program in a test's network: sends raw Ethernet frames, or prints those of one EtherType.

``frames.py send INTERFACE FRAME…`` and ``frames.py receive INTERFACE ETHERTYPE COUNT``, all in hex.
A frame is printed as it was on the wire: the kernel hands the outer tag over beside it.
"""

from __future__ import annotations

import socket
import struct
import sys

SOL_PACKET = 263
PACKET_AUXDATA = 8
TAG_IS_VALID = 1 << 4
ALL = 3
PATIENCE_S = 40.0


def send(interface: str, frames: list[str]) -> None:
    """Send frames."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
        raw.bind((interface, 0))
        for frame in frames:
            raw.send(bytes.fromhex(frame))


def receive(interface: str, kind: str, count: int) -> None:
    """Print frames with a payload of this EtherType."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) as raw:
        raw.bind((interface, ALL))
        raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        raw.settimeout(PATIENCE_S)
        print("ready", flush=True)
        while count > 0:
            frame, extra, _, _ = raw.recvmsg(65536, 256)
            for level, number, data in extra:
                if (level, number) == (SOL_PACKET, PACKET_AUXDATA):
                    status, _, _, _, _, tag, tag_kind = struct.unpack("=IIIHHHH", data[:20])
                    if status & TAG_IS_VALID:
                        outer = struct.pack("!HH", tag_kind or 0x8100, tag)
                        frame = frame[:12] + outer + frame[12:]
            if bytes.fromhex(kind) in (frame[12:14], frame[16:18], frame[20:22]):
                print(frame.hex(), flush=True)
                count -= 1


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], sys.argv[3:])
    else:
        receive(sys.argv[2], sys.argv[3], int(sys.argv[4]))
