"""Two runs of one transfer, packet by packet, as the server's end saw them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.headers import FLAG_ACK, FLAG_SYN, PROTOCOL_TCP
from airpath.run import RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airpath.run import Run

OTHER = {"rx": "tx", "tx": "rx"}
WAYS = {"rx": "sent", "tx": "received"}


@dataclass(frozen=True)
class Packet:
    """What of a packet must be the same in both runs: initial numbers and ports need not be."""

    way: str
    """"sent" or "received", by the server."""
    flags: int
    sequence: int
    """From the end's initial number on."""
    acknowledgement: int
    payload_bytes: int

    def __str__(self) -> str:
        """Tell it as the server sees it."""
        if self.payload_bytes:
            return f"{self.way} {self.sequence}:{self.sequence + self.payload_bytes}"
        if self.flags & FLAG_SYN:
            return f"{self.way} SYN"
        return f"{self.way} acknowledgement {self.acknowledgement}"


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    packets: list[Packet]
    times_ms: list[float]
    """Since the first packet."""
    start_ms: float
    """When the first packet left the client, after the run's t = 0."""
    drops: list[tuple[float, str]]
    """Time as above and, in words, which packet the link dropped and why."""


@dataclass(frozen=True)
class PacketComparison:
    """How far two runs of one transfer are the same."""

    first: Side
    second: Side
    equal_packets: int
    """How many are the same from the beginning on."""

    @property
    def same(self) -> bool:
        """All packets are the same, in the same order."""
        return self.equal_packets == len(self.first.packets) == len(self.second.packets)

    @property
    def differences_ms(self) -> NDArray[np.float64]:
        """Time in the first run less that in the second, of each packet that is the same."""
        count = self.equal_packets
        first = np.array(self.first.times_ms[:count], dtype=np.float64)
        return first - np.array(self.second.times_ms[:count], dtype=np.float64)

    def first_different_drop(self) -> tuple[str, str] | None:
        """Return what the link dropped in either run where the two first drop different packets."""
        for one, other in zip_longest(self.first.drops, self.second.drops):
            if one is None or other is None or one[1] != other[1]:
                return _told(one), _told(other)
        return None


def _told(drop: tuple[float, str] | None) -> str:
    return f"{drop[1]} at {drop[0] / 1e3:.2f} s" if drop else "nothing more"


def compare_packets(first: Run, second: Run) -> PacketComparison:
    """Align the captures of two runs at the server.

    Raises:
        RunError: a capture at either end is missing, or holds no TCP connection.

    """
    sides = side(first), side(second)
    pairs = zip(sides[0].packets, sides[1].packets, strict=False)
    equal = 0
    for one, other in pairs:
        if one != other:
            break
        equal += 1
    return PacketComparison(*sides, equal_packets=equal)


def side(run: Run) -> Side:
    """Read one run.

    Raises:
        RunError: as ``compare_packets``.

    """
    server, client = run.captures.get("server"), run.captures.get("client")
    if server is None or client is None:
        message = f"{run.directory}: needs the captures of both ends (--log packets)"
        raise RunError(message)
    seen = server.sort("time_ns", maintain_order=True)
    initial = {}
    for way in WAYS:
        numbered = seen.filter((pl.col("interface") == way) & (pl.col("protocol") == PROTOCOL_TCP))
        if numbered.is_empty():
            message = f"{run.directory}: server.pcapng holds no TCP connection"
            raise RunError(message)
        # The SYN's own number, or the first one seen where the capture holds no SYN.
        begun = numbered.filter(pl.col("flags") & FLAG_SYN > 0)
        initial[way] = int((numbered if begun.is_empty() else begun)["sequence"][0])
    packets = []
    columns = ["flags", "sequence", "acknowledgement", "payload"]
    rows = seen.select(pl.col("interface").cast(pl.String), *columns).iter_rows()
    for way, flags, sequence, acknowledgement, payload in rows:
        number = (acknowledgement - initial[OTHER[way]]) % (1 << 32) if flags & FLAG_ACK else 0
        packets.append(
            Packet(WAYS[way], flags, (sequence - initial[way]) % (1 << 32), number, payload)
        )
    begin = int(seen["time_ns"][0])
    return Side(
        packets=packets,
        times_ms=((seen["time_ns"] - begin) / 1e6).to_list(),
        start_ms=int(client["time_ns"].to_numpy().min()) / 1e6,
        drops=_drops(run, begin),
    )


def _drops(run: Run, begin_ns: int) -> list[tuple[float, str]]:
    """Name each drop by the packet's place among those of its direction: ids differ by run."""
    offered = run.path_events("offered").select(
        "pdu", place=pl.int_range(1, pl.len() + 1).over("direction")
    )
    drops = run.drops().join(offered, on="pdu", how="left").sort("time_ns", maintain_order=True)
    return [
        ((time - begin_ns) / 1e6, f"{direction} packet {place} by {cause}")
        for time, direction, place, cause in drops.select(
            "time_ns",
            pl.col("direction").cast(pl.String),
            "place",
            pl.col("cause").cast(pl.String),
        ).iter_rows()
    ]
