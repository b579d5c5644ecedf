# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures of a received stream: losses, delay, jitter, throughput."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from airpath.video.about import RTP_HERTZ

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airpath.video.sentlog import Sent

_NANOSECONDS = 1_000_000_000


class Jitter:
    """Interarrival jitter (RFC 3550, section 6.4.1 and appendix A.8)."""

    def __init__(self) -> None:
        self.now_ns = 0.0
        """The smoothed estimate, as a receiver report has it."""
        self.highest_ns = 0.0
        self._sum_ns = 0.0
        self._count = 0
        self._transit_ns: float | None = None

    def push(self, arrived_ns: int, rtp_time: int) -> None:
        """Take a packet, in the order of arrival."""
        transit = arrived_ns - rtp_time * _NANOSECONDS / RTP_HERTZ
        if self._transit_ns is not None:
            self.now_ns += (abs(transit - self._transit_ns) - self.now_ns) / 16
            self.highest_ns = max(self.highest_ns, self.now_ns)
            self._sum_ns += self.now_ns
            self._count += 1
        self._transit_ns = transit

    @property
    def mean_ns(self) -> float:
        """Mean of the estimates after each packet."""
        return self._sum_ns / self._count if self._count else 0.0


def percentile(values: Sequence[int], share: float) -> int:
    """Return the least value that a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def spread(values: Sequence[int]) -> dict[str, int] | None:
    """Return mean, median, 95th percentile, least and greatest of delays; None of none."""
    if not values:
        return None
    return {
        "mean": round(sum(values) / len(values)),
        "median": percentile(values, 0.5),
        "p95": percentile(values, 0.95),
        "least": min(values),
        "greatest": max(values),
    }


def against_log(
    arrived: Mapping[int, tuple[int, int]], sent: Mapping[int, Sent]
) -> tuple[dict[str, Any], set[int]]:
    """Return figures that need the sender's log, and the numbers of damaged packets.

    Args:
        arrived: arrival since 1970 in nanoseconds and CRC of each packet, by its number.
        sent: the log.

    """
    known = {number: one for number, one in arrived.items() if number in sent}
    damaged = {number for number, (_, crc) in known.items() if crc != sent[number].crc32}
    delays = [at - sent[number].sent_ns for number, (at, _) in known.items()]
    return {"packets_damaged": len(damaged), "delay_ns": spread(delays)}, damaged
