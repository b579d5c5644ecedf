# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Keystrokes and their echoes over one TCP connection, as a remote shell has them; run as a script.

The client sends a request, waits for the whole response, thinks, and sends the next. It prints the
response times as JSON, with the keys of airpath send.

usage: interactive.py serve PORT REQUEST_BYTES RESPONSE_BYTES
       interactive.py type PORT REQUEST_BYTES RESPONSE_BYTES COUNT THINK_SECONDS fixed|exponential
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import socket
import statistics
import sys
import time
from typing import Any


def receive(connection: socket.socket, length: int) -> bool:
    """Read so many bytes; false if the other end has closed."""
    while length:
        piece = connection.recv(length)
        if not piece:
            return False
        length -= len(piece)
    return True


def serve(port: int, request: int, response: int) -> None:
    """Answer the requests of connections until they are closed, each in a process of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody has to wait for them
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as waiting:
        while True:
            connection, _ = waiting.accept()
            if os.fork() == 0:
                break
            connection.close()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while receive(connection, request):
            connection.sendall(bytes(response))


def pauses(count: int, mean_s: float, distribution: str, seed: int) -> list[float]:
    """Return the times between a response and the next request, in seconds."""
    if distribution == "fixed" or mean_s == 0:
        return [mean_s] * count
    draw = random.Random(seed)
    return [draw.expovariate(1 / mean_s) for _ in range(count)]


def converse(port: int, request: int, response: int, thoughts: list[float]) -> list[float]:
    """Send a request after each pause but the first; return the response times in seconds."""
    times = []
    with socket.create_connection(("server", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, thought in enumerate(thoughts):
            if number:
                time.sleep(thought)
            begun = time.monotonic()
            connection.sendall(bytes(request))
            if not receive(connection, response):
                message = f"the server closed the connection after {number} responses"
                raise ConnectionError(message)
            times.append(time.monotonic() - begun)
    return times


def summary(times: list[float]) -> dict[str, Any]:
    """Return quantiles, which are times that occurred, and the times themselves."""
    ordered = sorted(times)
    found: dict[str, Any] = {
        f"p{percent}_seconds": ordered[math.ceil(len(ordered) * percent / 100) - 1]
        for percent in (50, 99)
    }
    found |= {"min_seconds": ordered[0], "max_seconds": ordered[-1]}
    return found | {"mean_seconds": statistics.fmean(times), "seconds": times}


def main() -> int:
    """Be one end."""
    role, port, request, response = sys.argv[1], *(int(word) for word in sys.argv[2:5])
    try:
        if role == "serve":
            serve(port, request, response)
            return 0
        count, mean_s, distribution = int(sys.argv[5]), float(sys.argv[6]), sys.argv[7]
        thoughts = pauses(count, mean_s, distribution, int(os.environ.get("AIRPATH_SEED", "0")))
        times = converse(port, request, response, thoughts)
    except OSError as error:
        print(f"interactive.py: port {port}: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"end": {"streams": [{"response_times": summary(times)}]}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
