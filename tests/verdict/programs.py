# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Programs at the ends of a run and beside it, which measure and disturb.

They use the standard library only, for they run under any Python that every user may start. Stamps
are of CLOCK_MONOTONIC, which both ends of a run share, as they live on one host.
Usage: programs.py PROGRAM ARGUMENT…
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable

HEAD = struct.Struct("!QQ")
SO_RCVBUFFORCE = 33
NEVER = 2**62


def send(port: str, path: str, count: str, interval: str, size: str, burst: str) -> None:
    """Send numbered datagrams in bursts; note when each was due and sent."""
    target = (socket.gethostbyname("server"), int(port))
    padding = bytes(max(0, int(size) - HEAD.size))
    rows, number = [], 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        begun = time.monotonic_ns()
        for step in range(int(count)):
            due = begun + round(step * float(interval) * 1e9)
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            for _ in range(int(burst)):
                sent = time.monotonic_ns()
                # Refused: it never left, and counts as lost.
                with contextlib.suppress(OSError):
                    sender.sendto(HEAD.pack(number, sent) + padding, target)
                rows.append(f"{number} {due} {sent}\n")
                number += 1
    with open(path, "w") as file:  # noqa: PTH123
        file.writelines(rows)
    # What is under way may arrive.
    time.sleep(0.4)


def receive(port: str, path: str, buffer: str, stall_after: str, stall: str) -> None:
    """Note when each datagram was read; after `stall_after` of them keep still for a while."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        if int(buffer):
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
        else:
            with contextlib.suppress(OSError):
                receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        receiver.bind(("0.0.0.0", int(port)))
        taken = 0
        while True:
            content = receiver.recv(1 << 16)
            arrived = time.monotonic_ns()
            number, sent = HEAD.unpack_from(content)
            os.write(file, f"{number} {sent} {arrived}\n".encode())
            taken += 1
            if taken == int(stall_after):
                time.sleep(float(stall))


def echo(port: str) -> None:
    """Send back what comes, one connection after the other."""
    with socket.create_server(("0.0.0.0", int(port))) as listener:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection, contextlib.suppress(OSError):
                while part := connection.recv(4096):
                    connection.sendall(part)


def pingpong(port: str, path: str, count: str, host: str) -> None:
    """Send a byte and wait for it to come back, over and over; note when rounds began and ended."""
    rows = []
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(20)
        for number in range(int(count)):
            begun = time.monotonic_ns()
            connection.sendall(b"x")
            connection.recv(1)
            rows.append(f"{number} {begun} {time.monotonic_ns()}\n")
    with open(path, "w") as file:  # noqa: PTH123
        file.writelines(rows)


def drain(port: str, path: str) -> None:
    """Take what comes over one connection; note how many bytes came and in how long."""
    with socket.create_server(("0.0.0.0", int(port))) as listener:
        connection, _ = listener.accept()
        taken, begun = 0, time.monotonic_ns()
        with connection, contextlib.suppress(OSError):
            while part := connection.recv(1 << 20):
                taken += len(part)
    with open(path, "w") as file:  # noqa: PTH123
        json.dump({"bytes": taken, "ns": time.monotonic_ns() - begun}, file)


def flood(port: str, seconds: str) -> None:
    """Send over one connection without a pause."""
    block = bytes(1 << 20)
    end = time.monotonic() + float(seconds)
    with socket.create_connection(("server", int(port)), 10) as connection:
        while time.monotonic() < end:
            connection.sendall(block)


def reluctant(port: str, backlog: str, pause: str) -> None:
    """Listen with little room, accept after a pause, and answer each connection with a byte."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("0.0.0.0", int(port)))
        listener.listen(int(backlog))
        time.sleep(float(pause))
        kept = []
        while True:
            connection, _ = listener.accept()
            with contextlib.suppress(OSError):
                connection.sendall(b"x")
            kept.append(connection)


def connect(port: str, path: str, count: str, seconds: str) -> None:
    """Begin many connections at once; note how many had an answer within some seconds."""
    target = (socket.gethostbyname("server"), int(port))
    sockets = []
    for _ in range(int(count)):
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.setblocking(False)
        one.connect_ex(target)
        sockets.append(one)
    time.sleep(float(seconds))
    answered = 0
    for one in sockets:
        with contextlib.suppress(OSError):
            answered += len(one.recv(1))
        one.close()
    with open(path, "w") as file:  # noqa: PTH123
        json.dump({"tried": int(count), "answered": answered}, file)


def hog(kind: str, level: str, seconds: str, on_ms: str, off_ms: str) -> None:
    """Be busy on every processor: at a priority (fifo), a nice level (nice), or plainly."""
    end = time.monotonic() + float(seconds)
    on, off = float(on_ms) / 1e3, float(off_ms) / 1e3
    children = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for processor in sorted(os.sched_getaffinity(0)):
        child = os.fork()
        if child:
            children.append(child)
            continue
        os.sched_setaffinity(0, {processor})
        # Whoever started this may be killed; a busy real-time program must not outlive that.
        signal.alarm(round(float(seconds)) + 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if kind == "fifo":
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(level)))
        elif kind == "nice":
            os.setpriority(os.PRIO_PROCESS, 0, int(level))
        while time.monotonic() < end:
            until = time.monotonic() + on
            while time.monotonic() < until:
                pass
            if off:
                time.sleep(off)
        os._exit(0)
    try:
        for child in children:
            os.waitpid(child, 0)
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


PROGRAMS: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (send, receive, echo, pingpong, drain, flood, reluctant, connect, hog)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
