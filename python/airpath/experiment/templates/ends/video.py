# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Receives a video stream and says what a viewer would have seen of it; run as a script.

The stream is MPEG-TS of a picture that ffmpeg makes, so that the receiver can make the same stream
again and tell intact pictures from damaged ones. Prints a document of JSON.

usage: video.py TRANSPORT PORT SECONDS BUFFER_SECONDS ENCODER_ARGUMENT…
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from bisect import bisect_left
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

QUIET_S = 1.0
"""A stream whose time is over has ended once nothing has come for so long."""

PATIENCE_S = 30.0
"""Time limit for the first byte, beyond the stream's own length."""

CONNECT_S = 10.0

RECEIVED, REFERENCE = Path("received.ts"), Path("reference.ts")
FFMPEG = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error"]
TICKS = 90_000
"""MPEG-TS counts time in these a second."""

RTP_HEADER_BYTES = 12
SEQUENCE_NUMBERS = 1 << 16


class NothingCameError(Exception):
    """Not a byte of the stream arrived."""


class Arrivals:
    """The stream as it came: pieces of so many bytes at these times."""

    def __init__(self) -> None:
        """Begin."""
        self.times: list[float] = []
        self.lengths: list[int] = []
        self.sequence: list[int] = []

    def take(self, piece: bytes) -> None:
        """Note a piece that has just come."""
        self.times.append(time.monotonic())
        self.lengths.append(len(piece))


def receive(transport: str, port: int, seconds: float) -> Arrivals:
    """Write the stream to RECEIVED until it is over.

    Raises:
        NothingCameError: no byte came.
        OSError: the port is taken, or nobody sends.

    """
    arrivals = Arrivals()
    with RECEIVED.open("wb") as file:
        if transport == "tcp":
            with socket.create_connection(("server", port), CONNECT_S) as connection:
                connection.settimeout(seconds + PATIENCE_S)
                while piece := connection.recv(1 << 16):
                    arrivals.take(piece)
                    file.write(piece)
        else:
            _datagrams(arrivals, file, port, seconds, rtp=transport == "rtp")
    if not arrivals.times:
        message = f"nothing came to port {port}"
        raise NothingCameError(message)
    return arrivals


def _datagrams(arrivals: Arrivals, file: Any, port: int, seconds: float, *, rtp: bool) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sink:
        sink.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sink.bind(("::", port))
        sink.settimeout(seconds + PATIENCE_S)
        while True:
            try:
                datagram = sink.recv(1 << 16)
            except TimeoutError:
                return
            if rtp:
                arrivals.sequence.append(int.from_bytes(datagram[2:4], "big"))
                datagram = datagram[RTP_HEADER_BYTES:]
            arrivals.take(datagram)
            file.write(datagram)
            # Silence within the stream may be a blackout of the link.
            left = seconds - (arrivals.times[-1] - arrivals.times[0])
            sink.settimeout(max(0.0, left) + QUIET_S)


def pictures(file: Path) -> dict[int, str]:
    """Decode a stream; return the digest of each picture by its time in TICKS."""
    words = ["-copyts", "-i", str(file), "-map", "0:v", "-fps_mode", "passthrough"]
    words += ["-enc_time_base", f"1:{TICKS}", "-f", "framemd5", "-"]
    found = {}
    for line in _output([*FFMPEG, *words]).splitlines():
        if line and not line.startswith("#"):
            fields = [field.strip() for field in line.split(",")]
            found[int(fields[2])] = fields[5]
    return found


def _output(command: list[str]) -> str:
    # A decoder that stumbles over what the link has lost is no failure.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout


def complete_at(arrivals: Arrivals) -> dict[int, float]:
    """Return when the last byte of each picture came, by the picture's time in TICKS."""
    command = ["ffprobe", "-v", "quiet", "-select_streams", "v", "-show_entries"]
    rows = _output([*command, "packet=pts,pos", "-of", "csv=p=0", str(RECEIVED)])
    begins = []
    for row in rows.splitlines():
        fields = row.split(",")
        if len(fields) >= 2 and fields[0].isdigit() and fields[1].isdigit():
            begins.append((int(fields[1]), int(fields[0])))
    begins.sort()
    ends = list(accumulate(arrivals.lengths))
    # A picture lasts in the file until the next one begins.
    limits = [*(position for position, _ in begins[1:]), ends[-1]]
    return {
        ticks: arrivals.times[min(bisect_left(ends, limit), len(ends) - 1)]
        for (_, ticks), limit in zip(begins, limits, strict=True)
    }


def playing(times: dict[int, float], period: int, count: int, buffer_s: float) -> dict[str, Any]:
    """Return what a player shows that begins so long after the first picture has come.

    It waits for a picture that is late, and shows on what it has in place of one that never comes.

    Args:
        times: when each picture came, by its own time in TICKS.
        period: from one picture to the next, in TICKS.
        count: pictures that were sent.
        buffer_s: how long after the first picture has come the player begins.

    """
    order = sorted(times)
    late, waits = 0.0, []
    begin = times[order[0]] + buffer_s
    for ticks in order:
        due = begin + (ticks - order[0]) / TICKS + late
        if times[ticks] > due:
            waits.append(times[ticks] - due)
            late += waits[-1]
    gaps = [(b - a - period) / TICKS for a, b in pairwise(order)]
    missing = count - len(order)
    return {
        "rebufferings": len(waits),
        "rebuffering_seconds": sum(waits),
        "frozen_seconds": missing * period / TICKS,
        "longest_freeze_seconds": max([0.0, *gaps, *waits]),
    }


def lost_datagrams(sequence: list[int]) -> int:
    """Return how many numbers of RTP are missing between the least and the greatest that came."""
    seen, number = {0}, 0
    for before, after in pairwise(sequence):
        step = (after - before + SEQUENCE_NUMBERS // 2) % SEQUENCE_NUMBERS - SEQUENCE_NUMBERS // 2
        number += step
        seen.add(number)
    return max(seen) - min(seen) + 1 - len(seen)


def main() -> int:
    """Receive, decode, compare, print."""
    transport, port = sys.argv[1], int(sys.argv[2])
    seconds, buffer_s = float(sys.argv[3]), float(sys.argv[4])
    try:
        arrivals = receive(transport, port, seconds)
    except (NothingCameError, OSError) as error:
        print(f"video.py: {transport} port {port}: {error}", file=sys.stderr)
        return 1
    subprocess.run([*FFMPEG, "-y", *sys.argv[5:], str(REFERENCE)], check=True)
    sent, received = pictures(REFERENCE), pictures(RECEIVED)
    REFERENCE.unlink()
    intact = sum(received.get(ticks) == digest for ticks, digest in sent.items())
    came = [ticks for ticks in sent if ticks in received]
    video: dict[str, Any] = {
        "transport": transport,
        "frames_sent": len(sent),
        "frames_received": len(came),
        "frames_intact": intact,
        "frames_damaged": len(came) - intact,
        "frames_lost": len(sent) - len(came),
        "bytes": sum(arrivals.lengths),
        "seconds": arrivals.times[-1] - arrivals.times[0],
    }
    if transport == "rtp":
        video["datagrams_lost"] = lost_datagrams(arrivals.sequence)
    at = complete_at(arrivals)
    times = {ticks: at[ticks] for ticks in came if ticks in at}
    if times:
        order = sorted(sent)
        video.update(playing(times, order[1] - order[0], len(sent), buffer_s))
    print(json.dumps({"video": video}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
