# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A cable between two hosts that loses packets of UDP: `lossy_cable.py PID ADDRESS PID ADDRESS`.

Each host has an end of the cable, called `lossy`. Every fourth packet is lost, in each direction,
and the first three in a row: a window that is not told of them stays closed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
from pathlib import Path

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN = 1
IFF_NO_PI = 0x1000
UDP = 17
EVERY = 4
FIRST = 3


def end(pid: str, address: str) -> int:
    """Make the end of the cable at the host of a process, and return its descriptor."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(network, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network of the host")
    os.close(network)
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"lossy", IFF_TUN | IFF_NO_PI))
    for words in (("addr", "add", f"{address}/24", "dev", "lossy"), ("link", "set", "lossy", "up")):
        subprocess.run(["ip", *words], check=True)
    return device


def is_udp(packet: bytes) -> bool:
    """Tell whether a packet is a datagram of UDP over IPv4."""
    return packet[0] >> 4 == 4 and packet[9] == UDP


def main() -> None:
    """Carry packets until the process is ended."""
    pids, addresses = sys.argv[1::2], sys.argv[2::2]
    one, other = (end(pid, address) for pid, address in zip(pids, addresses, strict=True))
    across = {one: other, other: one}
    seen = dict.fromkeys(across, 0)
    print("ready", flush=True)
    while True:
        for device in select.select(list(across), [], [])[0]:
            packet = os.read(device, 1 << 16)
            if is_udp(packet):
                seen[device] += 1
                if seen[device] <= FIRST or seen[device] % EVERY == 0:
                    continue
            os.write(across[device], packet)


if __name__ == "__main__":
    assert Path("/dev/net/tun").exists()
    main()
