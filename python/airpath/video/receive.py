# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A stream received, put back into order, and written as a bitstream for a decoder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from airpath import interrupt
from airpath.files import fresh, make_folder, write_all
from airpath.video import about, codecs, rtp, sentlog, statistics, transport
from airpath.video.errors import VideoError
from airpath.video.payloads import DEPACKETISERS
from airpath.video.progress import Progress
from airpath.video.reorder import ReorderBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from airpath.video.codecs import Codec
    from airpath.video.reorder import Released
    from airpath.video.transport import Arrival, Receiver

_POLL_SECONDS = 0.02
_MOST_JUMP = 3000
"""A number farther from the highest so far is damaged (MAX_DROPOUT of RFC 3550, A.1)."""


class Limits(NamedTuple):
    """Times after which a receiver ends."""

    wait_seconds: float
    """For the first packet."""
    silence_seconds: float
    """Without any packet after the first."""
    duration_seconds: float | None
    """Since the first packet, whatever arrives."""


class _Item(NamedTuple):
    packet: rtp.Packet
    arrived_ns: int


class Reception:
    """The packets of one stream: counted, ordered, and written as a bitstream."""

    def __init__(self, handle: int, reorder_delay_ns: int) -> None:
        """Begin.

        Args:
            handle: descriptor of the file for the bitstream.
            reorder_delay_ns: how long a packet waits for one before it.

        """
        self.codec: Codec | None = None
        self.goodbye: rtp.Goodbye | None = None
        self.invalid = 0
        self.bytes = 0
        self.arrived: dict[int, tuple[int, int]] = {}
        """Arrival and CRC of each packet by its number."""
        self.frames: list[about.Frame] = []
        self.frame_of: dict[int, int] = {}
        """Place in ``frames`` of each packet that was used."""
        self.jitter = statistics.Jitter()
        self.first_ns: int | None = None
        self.last_ns = 0
        self.buffer: ReorderBuffer[_Item] = ReorderBuffer(reorder_delay_ns)
        self._handle = handle
        self._written = 0
        self._ssrc = 0

    def push(self, arrival: Arrival) -> None:
        """Take a datagram."""
        data = arrival.data
        if rtp.is_rtcp(data):
            goodbye = rtp.parse_goodbye(data)
            if goodbye is not None and (self.codec is None or goodbye.ssrc == self._ssrc):
                self.goodbye = goodbye
            return
        packet = rtp.parse(data)
        if packet is None or not self._belongs(packet):
            self.invalid += 1
            return
        at = arrival.arrived_ns
        if self.first_ns is None:
            self.first_ns = at
        self.last_ns = max(at, self.last_ns)
        self.bytes += len(data)
        self.jitter.push(at, packet.time)
        number = self.buffer.extend(packet.sequence)
        self.arrived.setdefault(number, (at, sentlog.crc32(data)))
        self._use(self.buffer.push(packet.sequence, _Item(packet, at), at))

    def expire(self, now_ns: int) -> None:
        """Give up packets for which others have waited long enough."""
        self._use(self.buffer.expire(now_ns))

    def end(self) -> None:
        """Use all that waits."""
        self._use(self.buffer.flush())

    @property
    def is_complete(self) -> bool:
        """True if the sender has ended and all its packets are here."""
        return self.goodbye is not None and len(self.arrived) >= self.goodbye.packets

    def _belongs(self, packet: rtp.Packet) -> bool:
        """Say whether a packet is one of the stream, which the first one begins."""
        codec = codecs.of_payload_type(packet.payload_type)
        if self.codec is None:
            self.codec, self._ssrc = codec, packet.ssrc
            if codec is not None:
                self._depacketiser = DEPACKETISERS[codec.name]()
            return codec is not None
        highest = self.buffer.highest
        far = (
            highest is not None and abs(self.buffer.extend(packet.sequence) - highest) > _MOST_JUMP
        )
        return codec is self.codec and packet.ssrc == self._ssrc and not far

    def _use(self, released: Iterable[Released[_Item]]) -> None:
        for number, (packet, at), after_loss in released:
            new = not self.frames or self.frames[-1].rtp_time != packet.time
            content = self._depacketiser.begin_frame() if new else b""
            content += self._depacketiser.push(packet.payload, after_loss=after_loss)
            arrived = at - (self.first_ns or at)
            if new:
                frame = about.Frame(packet.time, self._written, len(content), 1, max(arrived, 0))
                self.frames.append(frame)
            else:
                frame = self.frames[-1]
                self.frames[-1] = frame._replace(
                    length_bytes=frame.length_bytes + len(content),
                    packets=frame.packets + 1,
                    arrived_ns=max(frame.arrived_ns, arrived),
                )
            self.frame_of[number] = len(self.frames) - 1
            write_all(self._handle, content)
            self._written += len(content)


def receive(
    receiver: Receiver,
    *,
    out: Path,
    transport_name: str,
    limits: Limits,
    reorder_delay_ns: int,
    sent: Path | None,
) -> dict[str, Any]:
    """Receive a stream; write its bitstream and the notes about it; return the report.

    Args:
        receiver: the socket.
        out: the bitstream.
        transport_name: one of ``choices.TRANSPORTS``.
        limits: when to end.
        reorder_delay_ns: how long a packet waits for one before it.
        sent: the sender's log, read at the end; None for none.

    Raises:
        VideoError: no packet arrives, or the sender's log is damaged.
        OSError: a file cannot be written or read.

    """
    make_folder(out.parent)
    refused_before = transport.checksum_failures(transport_name)
    with fresh(out) as handle:
        reception = Reception(handle, reorder_delay_ns)
        ended_by = _collect(receiver, reception, limits)
        reception.end()
        refused_after = transport.checksum_failures(transport_name)
        by_kernel = (
            None
            if refused_before is None or refused_after is None
            else refused_after - refused_before
        )
        # With raw sockets the kernel counts what this process counts, or nothing.
        refused = receiver.refused if "raw" in receiver.way else by_kernel
        if not reception.arrived:
            raise VideoError(_nothing(ended_by, limits, reception, refused))
    report = _report(reception, receiver.way, ended_by, reorder_delay_ns, refused)
    about.write(out, {**report, "frames": _rows(reception, None)})
    if sent is not None:
        # What was received is on the disk by now, however the log is.
        figures, damaged = statistics.against_log(reception.arrived, sentlog.read(sent))
        report |= figures
        about.write(out, {**report, "frames": _rows(reception, damaged)})
    return report


def _collect(receiver: Receiver, reception: Reception, limits: Limits) -> str:
    """Receive until something ends it; return what."""
    begin = last = time.monotonic()
    first: float | None = None
    left: float | None = None
    progress = Progress()
    reorder_seconds = reception.buffer.delay_ns / 1e9
    with interrupt.noted(lambda: None):
        while True:
            arrivals = receiver.receive(_POLL_SECONDS)
            now = time.monotonic()
            for arrival in arrivals:
                reception.push(arrival)
            reception.expire(time.time_ns())
            if arrivals:
                last = now
                first = now if first is None else first
            if reception.goodbye is not None and left is None:
                left = now
            progress.tell(f"received {len(reception.arrived)} packets")
            waits = limits.wait_seconds if first is None else limits.silence_seconds
            ends = {
                "signal": interrupt.asked.is_set(),
                "sender": reception.is_complete
                or (left is not None and now - left > max(reorder_seconds, 0.2)),
                "duration": None not in (first, limits.duration_seconds)
                and now - (first or 0) > (limits.duration_seconds or 0),
                "silence": now - (begin if first is None else last) > waits,
            }
            for name, is_so in ends.items():
                if is_so:
                    progress.end()
                    return name


def _nothing(ended_by: str, limits: Limits, reception: Reception, refused: int | None) -> str:
    """Say that no packet of a stream arrived, and what did."""
    waited = limits.wait_seconds
    why = {
        "signal": "before the command was ended",
        "sender": "though the sender has ended",
    }.get(ended_by, f"within {waited:g} s")
    seen = []
    if reception.invalid:
        seen.append(f"{reception.invalid} datagrams were no RTP packets of a known codec")
    if refused:
        seen.append(f"{refused} datagrams failed their checksum")
    hint = (
        "; ".join(seen) or "is the sender's --to right, and is --transport the same at both ends?"
    )
    return f"no packet of a video arrived {why}; nothing is written ({hint})"


def _report(
    reception: Reception, way: str, ended_by: str, reorder_delay_ns: int, refused: int | None
) -> dict[str, Any]:
    buffer = reception.buffer
    received = len(reception.arrived)
    sent = reception.goodbye.packets if reception.goodbye else None
    assert buffer.first is not None
    assert buffer.highest is not None
    span = buffer.highest - buffer.first + 1
    seconds = (reception.last_ns - (reception.first_ns or 0)) / 1e9
    return {
        "codec": reception.codec.name if reception.codec else None,
        "transport": way,
        "ended_by": ended_by,
        "packets_sent": sent,
        "packets_received": received,
        "packets_lost": max((sent if sent is not None else span) - received, 0),
        "packets_late": buffer.late,
        "packets_duplicate": buffer.duplicates,
        "packets_invalid": reception.invalid,
        "packets_refused": refused,
        "packets_damaged": None,
        "frames_received": len(reception.frames),
        "bytes_received": reception.bytes,
        "seconds": round(seconds, 9),
        "throughput_bps": round(reception.bytes * 8 / seconds) if seconds > 0 else None,
        "jitter_ns": {
            "last": round(reception.jitter.now_ns),
            "mean": round(reception.jitter.mean_ns),
            "greatest": round(reception.jitter.highest_ns),
        },
        "delay_ns": None,
        "reorder_delay_ns": reorder_delay_ns,
    }


def _rows(reception: Reception, damaged: set[int] | None) -> list[dict[str, Any]]:
    """Return the frames for the notes; with the number of damaged packets, where it is known."""
    rows: list[dict[str, Any]] = [frame._asdict() for frame in reception.frames]
    if damaged is not None:
        for row in rows:
            row["damaged_packets"] = 0
        for number in damaged:
            if number in reception.frame_of:
                rows[reception.frame_of[number]]["damaged_packets"] += 1
    return rows


def summary(report: dict[str, Any], out: Path) -> str:
    """Return the report of a receiver for people."""
    sent = report["packets_sent"]
    total = f" of {sent}" if sent is not None else ""
    lost = report["packets_lost"]
    share = lost / max(lost + report["packets_received"], 1)
    rate = report["throughput_bps"]
    jitter = report["jitter_ns"]
    lines = [
        f"received {report['packets_received']}{total} packets, {report['frames_received']} frames"
        f", {report['bytes_received']} bytes of RTP in {report['seconds']:.3g} s"
        + (f" ({rate / 1000:.4g} kbit/s)" if rate else ""),
        f"{report['codec']} over {report['transport']}, ended by {_ENDS[report['ended_by']]}",
        f"lost {lost} ({share:.2%}), late {report['packets_late']}, duplicate "
        f"{report['packets_duplicate']}, invalid {report['packets_invalid']}",
    ]
    refused, damaged = report["packets_refused"], report["packets_damaged"]
    told = [] if refused is None else [f"refused for their checksum {refused}"]
    told.append(
        "damaged: unknown without --sent"
        if damaged is None
        else f"damaged and handed to the decoder {damaged}"
    )
    lines.append(", ".join(told))
    delay = report["delay_ns"]
    if delay:
        lines.append(
            f"delay: mean {delay['mean'] / 1e6:.1f} ms, median {delay['median'] / 1e6:.1f} ms, "
            f"95 % {delay['p95'] / 1e6:.1f} ms, greatest {delay['greatest'] / 1e6:.1f} ms"
        )
    lines += [
        f"jitter (RFC 3550): mean {jitter['mean'] / 1e6:.1f} ms, "
        f"last {jitter['last'] / 1e6:.1f} ms",
        f"{out}",
    ]
    return "\n".join(lines)


_ENDS = {
    "signal": "a signal",
    "sender": "the sender",
    "duration": "--duration",
    "silence": "silence",
}
