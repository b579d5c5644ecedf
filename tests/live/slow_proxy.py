# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A proxy of ssh that delays what passes, in each direction: `slow_proxy.py ADDRESS PORT MS`."""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time


def copy(source: int, target: int, delay_s: float) -> None:
    """Copy what comes from one descriptor to another, each piece after the delay, to its end."""
    pieces: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def write() -> None:
        while True:
            due, piece = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not piece:
                os._exit(0)
            while piece:
                piece = piece[os.write(target, piece) :]

    threading.Thread(target=write, daemon=True).start()
    while True:
        piece = os.read(source, 1 << 16)
        pieces.put((time.monotonic() + delay_s, piece))
        if not piece:
            return


def main() -> None:
    """Carry a connection until one end closes it."""
    address, port, delay_ms = sys.argv[1:]
    with socket.create_connection((address, int(port))) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends = [(0, peer.fileno()), (peer.fileno(), 1)]
        copies = [threading.Thread(target=copy, args=(*end, int(delay_ms) / 1000)) for end in ends]
        for thread in copies:
            thread.start()
        for thread in copies:
            thread.join()
        # The last pieces are on their way, and end the process.
        threading.Event().wait()


if __name__ == "__main__":
    main()
