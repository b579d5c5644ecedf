# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Clips for the tests of video, and programs that they need."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import pytest

from airpath.video import about, packetise, receive, rtp, transport
from airpath.video.make import make

needs_ffmpeg = pytest.mark.skipif(
    shutil.which("ffmpeg") is None or shutil.which("ffprobe") is None,
    reason="ffmpeg is not installed",
)


@functools.cache
def packets_of(clip: Path) -> packetise.Stream:
    """Return the packets of a clip."""
    return packetise.packetise(packetise.inspect(clip), 200)


def received_without(clip: Path, lost: set[int], folder: Path) -> Path:
    """Return a file as received from a clip of which some frames are lost, with its notes."""
    stream = packets_of(clip)
    words = "-".join(map(str, sorted(lost))) or "none"
    path = folder / f"without-{words}{clip.suffix}"
    with path.open("wb") as file:
        reception = receive.Reception(file.fileno(), 0)
        for packet, frame in zip(stream.packets, stream.frames, strict=True):
            if frame not in lost:
                at = 10**12 + packet.time * 10**9 // about.RTP_HERTZ
                reception.push(transport.Arrival(rtp.build(packet), at, None))
                reception.expire(at + 1)
        reception.end()
    frames = [{**frame._asdict(), "damaged_packets": 0} for frame in reception.frames]
    about.write(path, {"codec": reception.codec.name if reception.codec else "", "frames": frames})
    return path


def make_clip(path: Path, codec: str) -> dict[str, Any]:
    """Make a video of 20 frames; return what is noted of it."""
    return make(
        path,
        codec=codec,
        frames=20,
        size="qcif",
        fps=10,
        rate_bps=64_000,
        scene_name="shapes",
        key_frame_interval=10,
        slice_bytes=200,
    )
