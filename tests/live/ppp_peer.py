# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Programs for the other end of a serial line.

``ppp_peer.py refuse LINE`` is a PPP peer that knows LCP and no IPCP; ``ppp_peer.py noise LINE LINE
SECONDS`` carries bytes between two lines, with noise for so many seconds. ``ppp_peer.py noisy LINE
FILE SEED -- COMMAND…`` does so between a line and a new pseudo-terminal, whose path takes the place
of ``@`` in the command, with noise as long as the file is there.
"""

from __future__ import annotations

import os
import pty
import random
import select
import signal
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LCP = 0xC021


def opened(path: str) -> int:
    """Open a line, raw, once it is there."""
    end = time.monotonic() + 60
    while True:
        try:
            line = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            break
        except FileNotFoundError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
    tty.setraw(line, termios.TCSANOW)
    return line


def check_sequence(data: bytes) -> int:
    """Return the 16-bit frame check sequence of RFC 1662."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ 0x8408 if value & 1 else value >> 1
    return value ^ 0xFFFF


def frame(protocol: int, packet: bytes) -> bytes:
    """Return a packet as it is on the line."""
    data = b"\xff\x03" + protocol.to_bytes(2, "big") + packet
    data += check_sequence(data).to_bytes(2, "little")
    escaped = (
        bytes([0x7D, b ^ 0x20]) if b < 0x20 or b in {0x7D, 0x7E} else bytes([b]) for b in data
    )
    return b"\x7e" + b"".join(escaped) + b"\x7e"


def packets(data: bytes) -> list[tuple[int, bytes]]:
    """Return protocols and packets of whole frames, with headers compressed or not."""
    found = []
    for part in data.split(b"\x7e"):
        plain, escaped = bytearray(), False
        for byte in part:
            if byte == 0x7D:
                escaped = True
                continue
            plain.append(byte ^ 0x20 if escaped else byte)
            escaped = False
        if len(plain) > 4 and check_sequence(bytes(plain[:-2])) == int.from_bytes(
            plain[-2:], "little"
        ):
            body = bytes(plain[2:-2] if plain[:2] == b"\xff\x03" else plain[:-2])
            found.append((int.from_bytes(body[:2], "big"), body[2:]))
    return found


def refuse(path: str) -> None:
    """Agree to whatever LCP asks for, and reject every other protocol."""
    line = opened(path)
    os.write(line, frame(LCP, bytes([1, 1, 0, 4])))
    waiting = b""
    while select.select([line], [], [], 60)[0]:
        try:
            data = os.read(line, 4096)
        except OSError:
            return
        if not data:
            return
        waiting += data
        *whole, waiting = waiting.split(b"\x7e")
        for protocol, packet in packets(b"\x7e".join(whole)):
            if protocol == LCP and packet[0] == 1:
                os.write(line, frame(LCP, b"\x02" + packet[1:]))
            elif protocol != LCP:
                rejected = protocol.to_bytes(2, "big") + packet
                header = bytes([8, 1]) + (4 + len(rejected)).to_bytes(2, "big")
                os.write(line, frame(LCP, header + rejected))


def carry(first: str, second: str, noisy_s: float) -> None:
    """Carry bytes between two lines; at first some are changed, lost or added."""
    end = time.monotonic() + noisy_s
    carry_between([opened(first), opened(second)], lambda: time.monotonic() < end, 7)


def carry_between(lines: list[int], is_noisy: Callable[[], bool], seed: int) -> None:
    """Carry bytes between two open lines until one of them ends."""
    draw = random.Random(seed)
    while True:
        ready = select.select(lines, [], [], 60)[0]
        if not ready:
            return
        for line in ready:
            try:
                data = os.read(line, 4096)
            except OSError:
                return
            if not data:
                return
            if is_noisy():
                noisy = bytearray()
                for byte in data:
                    kind = draw.randrange(3) if draw.random() < 0.01 else 3
                    noisy += (
                        bytes([byte ^ 1 << draw.randrange(8)]),
                        b"",
                        bytes([byte, draw.randrange(256)]),
                        bytes([byte]),
                    )[kind]
                data = bytes(noisy)
            while data:
                try:
                    data = data[os.write(lines[1 - lines.index(line)], data) :]
                except BlockingIOError:
                    time.sleep(0.001)
                except OSError:
                    return


def noisy(path: str, noise: str, seed: int, command: list[str]) -> None:
    """Carry bytes between a line and a program on a pseudo-terminal; the program ends with this."""
    master, terminal = pty.openpty()
    tty.setraw(terminal, termios.TCSANOW)
    os.set_blocking(master, False)
    words = [os.ttyname(terminal) if word == "@" else word for word in command]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    program = subprocess.Popen(words)
    try:
        carry_between([opened(path), master], Path(noise).exists, seed)
    finally:
        program.kill()
        program.wait()


if __name__ == "__main__":
    if sys.argv[1] == "refuse":
        refuse(sys.argv[2])
    elif sys.argv[1] == "noisy":
        noisy(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[6:])
    else:
        carry(sys.argv[2], sys.argv[3], float(sys.argv[4]))
