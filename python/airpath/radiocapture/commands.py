# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath trace send`` and ``airpath trace capture``: an error trace of a radio."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.files import told, writing
from airpath.radiocapture import frames, probe
from airpath.status import DONE, UNDONE, fail

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_BYTES = 65_535


def _problem(packets: int, length: int) -> str:
    if packets > probe.MOST_PACKETS:
        return f"--packets {packets} is more than {probe.MOST_PACKETS}"
    if not probe.LEAST_BYTES <= length <= LONGEST_BYTES:
        return f"--length {length} must be from {probe.LEAST_BYTES} to {LONGEST_BYTES} bytes"
    return ""


def send(*, to: str, port: int, packets: int, length: int, interval_ms: float) -> int:
    """Send the numbered packets."""
    problem = _problem(packets, length)
    if not 0 < port < 1 << 16:
        problem = f"--port {port} must be from 1 to 65535"
    if not 0 <= interval_ms <= 3_600_000:
        problem = f"--interval {interval_ms:g} must be from 0 to 3600000 ms"
    if problem:
        return fail("trace send", problem)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            begin = time.monotonic()
            for number in range(packets):
                wait = begin + number * interval_ms / 1000 - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
                try:
                    out.sendto(probe.payload(number, length), (to, port))
                except ConnectionRefusedError:
                    # An answer to an earlier packet; nobody needs to listen at the port.
                    continue
    except OSError as error:
        return fail("trace send", f"{to}: {told(error)}", UNDONE)
    print(f"airpath: sent {packets} packets of {length} bytes to {to}", file=sys.stderr)
    return DONE


def records(found: Iterable[bytes], packets: int, length: int) -> list[str]:
    """Return the record of each packet, from the frames that were received.

    The first frame of each packet counts. Positions count from the packet's IP header, whose bits
    and those of the UDP header are not compared.
    """
    lines = ["lost"] * packets
    missing = packets
    for frame in found:
        one = probe.find(frame, packets, length)
        if one is None or lines[one.number] != "lost":
            continue
        expected = probe.payload(one.number, length)
        here = frame[one.offset : one.offset + len(expected)]
        words = []
        if len(here) < len(expected):
            words.append(f"truncated {len(here) + probe.HEADER_BYTES}")
        if flips := probe.differing_bits(here, expected):
            positions = " ".join(str(bit + 8 * probe.HEADER_BYTES) for bit in flips)
            words.append(f"flipped {positions}")
        lines[one.number] = " ".join(words) or "ok"
        missing -= 1
        if missing == 0:
            break
    return lines


def capture(source: str, output: Path, *, packets: int, length: int, silence_s: float) -> int:
    """Write the trace of the numbered packets that a file has or an interface receives."""
    problem = _problem(packets, length)
    if not 0 < silence_s <= 86_400:
        problem = f"--silence {silence_s:g} must be more than 0, and at most 86400 s"
    if problem:
        return fail("trace capture", problem)
    path = Path(source)
    try:
        if path.is_file():
            lines = records(frames.read(path), packets, length)
        elif "/" in source or "." in source:
            message = f"there is no file {source}"
            raise frames.CaptureError(message)
        else:
            lines = records(frames.listen(source, silence_s), packets, length)
        if all(line == "lost" for line in lines):
            message = (
                f"{source} has none of the packets of airpath trace send; --packets and --length "
                "must be those of the sender, and the network must not be encrypted"
            )
            raise frames.CaptureError(message)
        head = f"# airpath trace capture: {packets} packets of {length} bytes\n"
        with writing():
            output.write_text(head + "\n".join(lines) + "\n")
    except (frames.CaptureError, OSError) as error:
        return fail("trace capture", error)
    lost = lines.count("lost")
    damaged = packets - lost - lines.count("ok")
    print(f"airpath: {packets} packets, {lost} lost, {damaged} damaged", file=sys.stderr)
    return DONE
