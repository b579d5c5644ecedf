# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A video file sent as RTP packets at the pace of its frames."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.files import make_folder
from airpath.video import rtp, sentlog, udplite
from airpath.video.errors import OptionError
from airpath.video.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airpath.video.codecs import Codec
    from airpath.video.packetise import Source, Stream
    from airpath.video.transport import Sender

LEAST_PACKET_BYTES, MOST_PACKET_BYTES = 64, 16_000
_GOODBYES = 3
_GOODBYE_SECONDS = 0.05
"""From one to the next."""


def default_coverage(codec: Codec) -> int:
    """Return the coverage of all headers: those of UDP-Lite, RTP and the payload format."""
    return udplite.HEADER_BYTES + rtp.HEADER_BYTES + codec.payload_header_bytes


def check_coverage(coverage_bytes: int, packet_bytes: int) -> None:
    """Do nothing if a coverage fits packets.

    Args:
        coverage_bytes: from the header of UDP-Lite on; 0 for the whole packet.
        packet_bytes: length of the longest RTP packet.

    Raises:
        OptionError: it does not; the message says why.

    """
    least, most = udplite.LEAST_COVERAGE_BYTES, udplite.HEADER_BYTES + packet_bytes
    if coverage_bytes and not least <= coverage_bytes <= most:
        message = (
            f"--coverage {coverage_bytes} is not within {least} … {most} bytes: it counts from the "
            f"header of UDP-Lite ({least} bytes), and no packet is longer ({least} + "
            f"--packet-bytes {packet_bytes}); 0 covers every packet as a whole"
        )
        raise OptionError(message)


def check_packet_bytes(packet_bytes: int) -> None:
    """Do nothing if packets may have a length.

    Raises:
        OptionError: they may not.

    """
    if not LEAST_PACKET_BYTES <= packet_bytes <= MOST_PACKET_BYTES:
        limits = f"{LEAST_PACKET_BYTES} … {MOST_PACKET_BYTES}"
        message = f"--packet-bytes {packet_bytes} is not within {limits}"
        raise OptionError(message)


def schedule(stream: Stream, fps: float, pace: str) -> list[float]:
    """Return the time of each packet, in seconds since the first.

    Args:
        stream: the packets.
        fps: frames per second.
        pace: ``frame`` sends all packets of a frame at the time of the frame, ``spread`` spreads
            them evenly until the next frame, ``none`` sends all at once.

    """
    if pace == "none":
        return [0.0] * len(stream.packets)
    times: list[float] = []
    begin = 0
    frames = stream.frames
    while begin < len(frames):
        end = begin
        while end < len(frames) and frames[end] == frames[begin]:
            end += 1
        at = max(frames[begin] / fps, times[-1] if times else 0.0)
        step = 1 / fps / (end - begin) if pace == "spread" else 0.0
        times += [at + step * number for number in range(end - begin)]
        begin = end
    return times


def send(
    sender: Sender,
    source: Source,
    stream: Stream,
    *,
    coverage_bytes: int,
    pace: str,
    log: Path | None,
) -> dict[str, Any]:
    """Send a stream, then the end of it; return what was sent.

    Args:
        sender: the socket.
        source: the video.
        stream: its packets.
        coverage_bytes: of UDP-Lite; 0 for the whole packet.
        pace: one of ``choices.PACES``.
        log: where to write the log of packets, before the end is sent.

    Raises:
        OSError: a packet cannot be sent, or the log not be written.

    """
    if log is not None:
        make_folder(log.parent)
    times = schedule(stream, source.frames_per_second, pace)
    sent: list[sentlog.Sent] = []
    progress = Progress()
    payload_bytes = 0
    begin = time.monotonic()
    with interrupt.noted(lambda: None):
        try:
            for number in _paced(times, begin):
                packet, frame = stream.packets[number], stream.frames[number]
                data = rtp.build(packet)
                now = time.time_ns()
                sender.send(data, coverage_bytes)
                payload_bytes += len(packet.payload)
                marker, crc = int(packet.marker), sentlog.crc32(data)
                sent.append(sentlog.Sent(number, packet.time, frame, marker, len(data), now, crc))
                progress.tell(f"sent frame {frame + 1} of {stream.frames[-1] + 1}")
        finally:
            # Also where the network fails: what was sent was sent.
            seconds = time.monotonic() - begin
            progress.end()
            interrupted = interrupt.asked.is_set()
            if log is not None:
                sentlog.write(log, sent)
        goodbye = rtp.Goodbye(rtp.SSRC, len(sent), payload_bytes)
        last = sent[-1].rtp_time if sent else 0
        for number in range(_GOODBYES):
            if number:
                time.sleep(_GOODBYE_SECONDS)
            sender.send(rtp.build_goodbye(goodbye, time.time_ns(), last), 0)
    return {
        "file": str(source.file),
        "codec": source.codec.name,
        "transport": sender.way,
        "coverage_bytes": coverage_bytes if sender.way != "udp" else None,
        "packets": len(sent),
        "frames": len({one.frame for one in sent}),
        "bytes": sum(one.bytes for one in sent),
        "seconds": round(seconds, 6),
        "frames_per_second": source.frames_per_second,
        "interrupted": interrupted,
    }


def _paced(times: list[float], begin: float) -> Iterator[int]:
    """Yield the number of each packet when its time has come, until a signal asks for the end."""
    for number, at in enumerate(times):
        while (wait := begin + at - time.monotonic()) > 0:
            if interrupt.asked.is_set():
                return
            time.sleep(min(wait, 0.1))
        if interrupt.asked.is_set():
            return
        yield number


def summary(report: dict[str, Any]) -> str:
    """Return the report of a sender for people."""
    rate = report["bytes"] * 8 / max(report["seconds"], 1 / report["frames_per_second"])
    coverage = report["coverage_bytes"]
    covered = (
        ""
        if coverage is None
        else f", coverage {coverage or 'whole packets'}" + (" bytes" if coverage else "")
    )
    lines = [
        f"sent {report['frames']} frames in {report['packets']} packets, {report['bytes']} bytes "
        f"of RTP in {report['seconds']:.3g} s ({rate / 1000:.4g} kbit/s)",
        f"{report['codec']} over {report['transport']}{covered}",
    ]
    if report["interrupted"]:
        lines.append("interrupted before the end of the video")
    return "\n".join(lines)
