# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A video file cut into RTP packets: by ffmpeg's RTP muxer, AV1 by ``payload_av1.py``."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple

from airpath.video import about, codecs, ffmpeg, payload_av1, payload_nal, rtp
from airpath.video.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airpath.video.codecs import Codec

_TIMES = 1 << 32


class Source(NamedTuple):
    """A video file to be sent."""

    file: Path
    codec: Codec
    frames_per_second: float
    rate_is_guessed: bool
    """True where neither the file, nor its notes, nor the user says the frame rate."""
    is_bare: bool
    """True for a bitstream without container, which has no times."""
    width: int
    height: int


class Stream(NamedTuple):
    """RTP packets of a video, in the order of sending, and the number of the frame of each."""

    packets: list[rtp.Packet]
    frames: list[int]


_GUESSED_FPS = 25.0


def inspect(file: Path, given_fps: float | None = None) -> Source:
    """Return what a video file holds.

    Args:
        file: a bare bitstream, or any file that ffmpeg reads.
        given_fps: the frame rate, where the user says it.

    Raises:
        VideoError: it is no video, or its codec has no payload format here.
        OSError: it cannot be read.

    """
    with file.open("rb"):
        pass
    notes = about.read(file)
    noted = codecs.CODECS.get(str((notes or {}).get("codec")))
    found = ffmpeg.probe(file, ["-f", noted.bitstream] if noted else [])
    codec = codecs.of_ffmpeg(str(found.get("codec_name")), file)
    is_bare = found["format"] in {one.bitstream for one in codecs.CODECS.values()}
    fps = given_fps or about.frames_per_second(notes, file)
    guessed = False
    if fps is None:
        fps = None if is_bare else frame_rate(found)
        guessed = fps is None
    return Source(
        file,
        codec,
        fps or _GUESSED_FPS,
        guessed,
        is_bare,
        int(found.get("width") or 0),
        int(found.get("height") or 0),
    )


def frame_rate(found: Mapping[str, Any]) -> float | None:
    """Return the frame rate that ffprobe found, or None if it is none."""
    above, _, below = str(found.get("avg_frame_rate")).partition("/")
    try:
        value = float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return None
    return value if 0 < value <= 1000 else None


def packetise(source: Source, packet_bytes: int) -> Stream:
    """Return the RTP packets of a video; sequence numbers and times begin at 0.

    Args:
        source: the video.
        packet_bytes: length of the longest RTP packet, with its header.

    Raises:
        VideoError: ffmpeg cannot read or cut it.

    """
    made = (
        _of_av1(source, packet_bytes)
        if source.codec.name == "av1"
        else _of_ffmpeg(source, packet_bytes)
    )
    if not made:
        message = f"{source.file} holds no frame"
        raise FileError(message)
    times = _times(made, source)
    first = min(times)
    packets, frames = [], []
    for number, (packet, time) in enumerate(zip(made, times, strict=True)):
        packets.append(
            packet._replace(
                payload_type=source.codec.payload_type,
                sequence=number,
                time=time - first,
                ssrc=rtp.SSRC,
            )
        )
        frames.append(round((time - first) * source.frames_per_second / about.RTP_HERTZ))
    return Stream(packets, frames)


def _times(packets: list[rtp.Packet], source: Source) -> list[int]:
    """Return the RTP time of each packet."""
    if not source.is_bare:
        # Relative to the first time, so that a wrap of the 32 bits does no harm.
        first = packets[0].time
        return [(one.time - first + _TIMES // 2) % _TIMES - _TIMES // 2 for one in packets]
    # ffmpeg gives every frame of a bare bitstream a time of its own, but of H.263 a wrong one.
    times, frame = [], -1
    before: int | None = None
    for packet in packets:
        frame += packet.time != before
        before = packet.time
        times.append(round(frame * about.RTP_HERTZ / source.frames_per_second))
    return times


def reading(source: Source) -> list[str]:
    """Return ffmpeg's options in front of the file that have it read with the right times."""
    if not source.is_bare:
        return []
    return ["-f", source.codec.bitstream, "-framerate", f"{source.frames_per_second:.12g}"]


def _of_ffmpeg(source: Source, packet_bytes: int) -> list[rtp.Packet]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    arguments = [*ffmpeg.QUIET, *reading(source), "-i", source.file, "-map", "0:v:0", "-c", "copy"]
    if source.codec.name in ("h264", "h265") and not source.is_bare:
        # Containers keep the parameter sets apart; a receiver must get them with the stream.
        arguments += ["-bsf:v", f"{source.codec.ffmpeg_name}_mp4toannexb"]
    arguments += ["-f", "rtp", "-rtpflags", "skip_rtcp", "-packetsize", packet_bytes]
    # Every packet is one write, and so one message of the socket. Nobody reads ffmpeg's words
    # while packets come: in a pipe, many of them would stop it.
    arguments += [f"pipe:{theirs.fileno()}"]
    with (
        tempfile.TemporaryFile() as messages,
        ours,
        theirs,
        ffmpeg.started(
            "ffmpeg",
            [str(word) for word in arguments],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=messages,
        ) as process,
    ):
        theirs.close()
        packets = _received(ours, packet_bytes, source)
        status = process.wait()
        messages.seek(0)
        ffmpeg.check(status, messages.read(), f"cut {source.file} into RTP packets", FileError)
    return packets


def _received(ours: socket.socket, packet_bytes: int, source: Source) -> list[rtp.Packet]:
    packets = []
    while data := ours.recv(2 * packet_bytes + 65536):
        packet = rtp.parse(data)
        if packet is None:
            message = f"ffmpeg wrote something that is no RTP packet ({len(data)} bytes)"
            raise FileError(message)
        packets.append(packet)
    if source.codec.name in ("h264", "h265"):
        # ffmpeg takes the first byte of a start code for the end of the NAL unit before it.
        trim = payload_nal.without_trailing_zeros
        return [
            packet._replace(payload=trim(packet.payload, source.codec.name)) for packet in packets
        ]
    return packets


def _of_av1(source: Source, packet_bytes: int) -> list[rtp.Packet]:
    copied: list[str | Path] = ["-i", source.file, "-map", "0:v:0", "-c", "copy"]
    copied += ["-f", "obu", "pipe:1"]
    if source.is_bare:
        bitstream = source.file.read_bytes()
    else:
        bitstream = ffmpeg.run(copied, f"read {source.file}")
    packets: list[rtp.Packet] = []
    for number, unit in enumerate(payload_av1.temporal_units(bitstream)):
        payloads = payload_av1.packetise(unit, packet_bytes - rtp.HEADER_BYTES)
        time = round(number * about.RTP_HERTZ / source.frames_per_second)
        packets += [
            rtp.Packet(0, place == len(payloads) - 1, 0, time, 0, payload)
            for place, payload in enumerate(payloads)
        ]
    return packets
