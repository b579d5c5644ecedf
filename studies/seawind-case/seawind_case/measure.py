"""What one replication shows, from its logs and the sender's capture."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
    """From the connection's first packet to the acknowledgement of its last byte of data; with
    QUIC, whose acknowledgements cannot be read, to the arrival of its last byte."""

    idle_seconds: float
    """For how much of that time the link towards the client transmitted nothing."""

    payload_bytes: int
    segments: int
    """Data segments sent, repeated ones included; with QUIC all packets towards the client."""

    retransmitted: int
    """Segments of which any byte was sent before; with QUIC packets that its sender gave up, whose
    data go into new ones."""

    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    """Packets dropped by cause, for "downlink" (data) and "uplink" (acknowledgements)."""

    congestion_control: str = ""
    kernel: str = ""
    seed: int = 0
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
    report = _quic_report(run)
    return _measured(run, _quic(run, report) if report else _tcp(run))


@dataclass(frozen=True)
class _Sent:
    """What the transport did."""

    elapsed_ns: int
    payload_bytes: int
    segments: int
    retransmitted: int
    congestion_control: str


def _tcp(run: Run) -> _Sent:
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
    workloads = run.manifest.get("workloads") or [{}]
    workload = (workloads[0].get("report") or {}).get("workload") or {}
    return _Sent(
        elapsed_ns=int(complete["time_ns"].to_numpy().min()) - _begin_ns(run),
        payload_bytes=size,
        segments=transfer.segments.height,
        retransmitted=int(transfer.segments["retransmission"].sum()),
        congestion_control=str(run.settings.get("congestion_control") or workload.get("cc", "")),
    )


def _quic_report(run: Run) -> dict[str, Any] | None:
    """Return what became of the run's QUIC workload, if it had one."""
    for workload in run.manifest.get("workloads") or []:
        report = workload.get("report") or {}
        if "quic" in report:
            return dict(report)
    return None


def _quic(run: Run, report: dict[str, Any]) -> _Sent:
    """Take from the ends' own report what encryption hides from the capture."""
    if report.get("outcome") != "complete":
        message = f"{run.directory}: the QUIC transfer is {report.get('outcome')}, not complete"
        raise RunError(message)
    return _Sent(
        elapsed_ns=int(report["downlink"]["last_byte_ns"]) - _begin_ns(run),
        payload_bytes=int(report["downlink"]["delivered_bytes"]),
        segments=run.captures["server"].filter(pl.col("interface") == "rx").height,
        retransmitted=int(report["quic"]["server"]["lost_packets"]),
        congestion_control=str(report["workload"]["cc"]),
    )


def _begin_ns(run: Run) -> int:
    # The capture begins with the connection's first packet: there is no other traffic.
    return int(run.captures["server"]["time_ns"].to_numpy().min())


def _measured(run: Run, sent: _Sent) -> Replication:
    """Add what the link did."""
    dropped: dict[str, Counter[str]] = {"downlink": Counter(), "uplink": Counter()}
    rows = run.drops().select(pl.col("direction").cast(pl.String), pl.col("cause").cast(pl.String))
    for direction, cause in rows.iter_rows():
        dropped[direction][cause] += 1
    frames = run.events.filter(
        (pl.col("kind") == "frame_sent") & (pl.col("direction") == "downlink")
    )
    elapsed = sent.elapsed_ns / 1e9
    lateness = (run.results.get("timings") or {}).get("lateness") or {}
    return Replication(
        elapsed_seconds=elapsed,
        idle_seconds=elapsed - float(frames["bits"].sum()) / RATE_BITS_PER_SECOND,
        payload_bytes=sent.payload_bytes,
        segments=sent.segments,
        retransmitted=sent.retransmitted,
        dropped=dropped,
        congestion_control=sent.congestion_control,
        kernel=str((run.manifest.get("host") or {}).get("kernel", "")),
        seed=int(run.manifest.get("seed") or 0),
        verdict=run.verdict,
        lateness_max_seconds=lateness.get("max_ns", 0) / 1e9,
    )
