# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Counts of tcptrace, and segments that brought nothing new, from one capture alone."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from naive.figures import figures
from naive.packets import ACK, SYN, Seen, near, seen

if TYPE_CHECKING:
    from pathlib import Path


def _connection(folder: Path, start: int, number: int) -> list[Seen]:
    """Return the packets of the connection that began as the given one, from 0."""
    by_key: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for packet in seen(folder, start, set()):
        by_key[(*packet.key, packet.isn)].append(packet)
    return sorted(by_key.values(), key=lambda packets: min(p.time for p in packets))[number]


def tcptrace(folder: Path, start: int, number: int, end: str, way: str) -> dict[str, float]:
    """Count as tcptrace does, from the capture of the data's sender alone.

    Actual data packets and bytes, retransmitted ones, unique bytes, and samples of the round trip
    time: an acknowledgement gives one if its number is the end of a segment sent once, and nothing
    was retransmitted since. tcptrace keeps intervals of the sequence space; so does this.
    """
    mine = [p for p in _connection(folder, start, number) if p.end == end]
    mine.sort(key=lambda p: p.order)
    anchor = next(p.sequence + 1 for p in mine if p.sent and p.flags & SYN)
    covered: list[tuple[int, int]] = []
    outstanding: dict[int, tuple[int, int, bool]] = {}
    counts: dict[str, float] = dict.fromkeys(
        ("segments", "sent_bytes", "retransmitted_segments", "retransmitted_bytes"), 0
    )
    counts["unique_bytes"] = 0
    samples = []
    repairs = acknowledged = 0
    for packet in mine:
        if packet.sent and packet.payload and packet.direction == way:
            first = near(packet.sequence, anchor)
            last = first + packet.payload
            again = sum(max(0, min(b, last) - max(a, first)) for a, b in covered)
            counts["segments"] += 1
            counts["sent_bytes"] += packet.payload
            counts["retransmitted_bytes"] += again
            counts["unique_bytes"] += packet.payload - again
            counts["retransmitted_segments"] += again > 0
            repairs += again > 0
            outstanding[last] = packet.time, repairs, last in outstanding or again > 0
            touching = [one for one in covered if one[0] <= last and first <= one[1]]
            covered = [one for one in covered if one not in touching]
            covered.append(
                (min([first, *(a for a, _ in touching)]), max([last, *(b for _, b in touching)]))
            )
        elif not packet.sent and packet.flags & ACK:
            acked = near(packet.acknowledgement, anchor)
            if acked > acknowledged:
                acknowledged = acked
                sent_ns, repairs_then, ambiguous = outstanding.get(acked, (0, -1, True))
                if not ambiguous and repairs_then == repairs:
                    samples.append((packet.time - sent_ns) / 1e9)
    counts["rtt_samples"] = len(samples)
    return counts | {
        name: value
        for name, value in figures("rtt", samples).items()
        if name in ("rtt_min", "rtt_max")
    }


def arrived_in_vain(folder: Path, start: int, number: int, way: str) -> set[int]:
    """Return the ids of segments that brought their receiver nothing new, by its capture alone."""
    mine = [p for p in _connection(folder, start, number) if p.direction == way and not p.sent]
    had: set[int] = set()
    vain = set()
    for packet in sorted(mine, key=lambda p: p.time):
        content = {(packet.sequence + byte) % (1 << 32) for byte in range(packet.payload)}
        if content and content <= had:
            vain.add(packet.pdu)
        had |= content
    return vain
