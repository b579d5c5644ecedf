"""What one replication shows, from its logs and the sender's capture."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from airpath.run import RunError, load_run
from airpath.tcp import transfers

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.run import Run


RATE_BITS_PER_SECOND = 9600


@dataclass(frozen=True)
class Replication:
    """The figures of one transfer, as the sending end saw it."""

    elapsed_seconds: float
    """From the connection's first packet to the acknowledgement of its last byte of data."""

    idle_seconds: float
    """For how much of that time the link towards the client transmitted nothing."""

    payload_bytes: int
    segments: int
    """Data segments sent, repeated ones included."""

    retransmitted: int
    """Segments of which any byte was sent before."""

    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    """Packets dropped by cause, for "downlink" (data) and "uplink" (acknowledgements)."""

    congestion_control: str = ""
    verdict: str = ""
    lateness_max_seconds: float = 0.0

    @property
    def throughput_bytes_per_second(self) -> float:
        """Payload over elapsed time."""
        return self.payload_bytes / self.elapsed_seconds

    def drops(self, direction: str | None = None) -> int:
        """Return how many packets were dropped, in one direction or both."""
        return sum(
            causes.total()
            for way, causes in self.dropped.items()
            if direction is None or way == direction
        )


def measure(folder: Path) -> Replication:
    """Measure the replication in ``folder``.

    Raises:
        RunError: the folder holds no complete transfer.

    """
    return measure_run(load_run(folder))


def measure_run(run: Run) -> Replication:
    """Measure a replication whose folder is open.

    Raises:
        RunError: it holds no complete transfer towards the client.

    """
    found = [transfer for transfer in transfers(run) if transfer.direction == "downlink"]
    if not found or found[0].vantage != "server":
        message = f"{run.directory}: no TCP data from the server in server.pcapng"
        raise RunError(message)
    transfer = found[0]
    size = transfer.payload_bytes
    complete = transfer.acknowledgements.filter(pl.col("number") >= size)
    if complete.is_empty():
        message = f"{run.directory}: the last of {size} bytes was never acknowledged"
        raise RunError(message)
    # The capture begins with the connection's first packet: there is no other traffic.
    begin_ns = int(run.captures["server"]["time_ns"].to_numpy().min())
    end_ns = int(complete["time_ns"].to_numpy().min())
    dropped: dict[str, Counter[str]] = {"downlink": Counter(), "uplink": Counter()}
    rows = run.drops().select(pl.col("direction").cast(pl.String), pl.col("cause").cast(pl.String))
    for direction, cause in rows.iter_rows():
        dropped[direction][cause] += 1
    frames = run.events.filter(
        (pl.col("kind") == "frame_sent") & (pl.col("direction") == "downlink")
    )
    elapsed = (end_ns - begin_ns) / 1e9
    results = run.manifest.get("results") or {}
    lateness = (results.get("timings") or {}).get("lateness") or {}
    settings = run.manifest.get("settings") or {}
    return Replication(
        elapsed_seconds=elapsed,
        idle_seconds=elapsed - float(frames["bits"].sum()) / RATE_BITS_PER_SECOND,
        payload_bytes=size,
        segments=transfer.segments.height,
        retransmitted=int(transfer.segments["retransmission"].sum()),
        dropped=dropped,
        congestion_control=str(settings.get("congestion_control", "")),
        verdict=str((results.get("verdict") or {}).get("grade", "unknown")),
        lateness_max_seconds=lateness.get("max_ns", 0) / 1e9,
    )
