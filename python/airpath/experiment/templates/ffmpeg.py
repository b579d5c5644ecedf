# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``ffmpeg``: a video stream, and what a viewer would have seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from airpath.experiment.keys import Program, Ready, Time
from airpath.experiment.quantities import time_ns
from airpath.experiment.templates.template import Template, python

if TYPE_CHECKING:
    from airpath.experiment.templates.output import Output


class Ffmpeg(Template):
    """ffmpeg streams a test picture as MPEG-TS from the server to the client."""

    template: Literal["ffmpeg"]
    time: Time = Field(default="10 s", description="How long to stream")
    transport: Literal["udp", "rtp", "tcp"] = Field(
        default="udp", description="What carries it; rtp: over UDP, with numbered datagrams"
    )
    codec: Literal["mpeg2video", "libx264"] = Field(
        default="mpeg2video", description="ffmpeg's encoder; libx264 is H.264"
    )
    bitrate: str = Field(default="300k", description="ffmpeg's -b:v")
    picture: str = Field(
        default="320x240", pattern="^[0-9]+x[0-9]+$", description="Width and height"
    )
    frames_per_second: int = Field(default=15, ge=1, le=120, description="Frames per second")
    key_frame_interval: Time = Field(
        default="1 s", description="From one picture that needs no other to the next"
    )
    buffer: Time = Field(
        default="500 ms",
        description="How long after the first picture has come a player begins to show it",
    )
    port: int = Field(
        default=5004, ge=1024, le=65535, description="The client's port; with tcp the server's"
    )

    needs: ClassVar[Mapping[str, str]] = {"ffmpeg": "ffmpeg", "ffprobe": "ffmpeg"}

    def programs(self, name: str) -> list[Program]:
        """Return the sender of a video, and the receiver, which has the figures."""
        common = self.common()
        seconds = time_ns(self.time) / 1e9
        fps = self.frames_per_second
        apart = max(1, round(time_ns(self.key_frame_interval) / 1e9 * fps))
        source = ["-f", "lavfi", "-i", f"testsrc=size={self.picture}:rate={fps}"]
        frames = max(1, round(seconds * fps))
        # One thread and nothing of its own: the receiver makes the same stream once more.
        encoder = ["-c:v", self.codec, "-b:v", self.bitrate, "-g", str(apart), "-threads", "1"]
        encoder += ["-flags", "+bitexact", "-pix_fmt", "yuv420p"]
        encoder += (
            ["-preset", "veryfast", "-tune", "zerolatency"] if self.codec == "libx264" else []
        )
        over_tcp = self.transport == "tcp"
        client = self.user or "client"
        target, muxer = {
            "udp": (f"udp://{client}:{self.port}?pkt_size=1316", "mpegts"),
            "rtp": (f"rtp://{client}:{self.port}?pkt_size=1328", "rtp_mpegts"),
            "tcp": (f"tcp://[::]:{self.port}?listen=1", "mpegts"),
        }[self.transport]
        sender = ["ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-re", *source, *encoder]
        # ffmpeg keeps the end of the last picture back over RTP: one more, which does not count.
        sender += ["-frames:v", str(frames + (self.transport == "rtp"))]
        receiver = [*python("video.py"), self.transport, str(self.port)]
        receiver += [f"{seconds:g}", f"{time_ns(self.buffer) / 1e9:g}", *source, *encoder]
        receiver += ["-frames:v", str(frames), "-f", "mpegts"]
        listens = {
            **common,
            "start": "0 s",
            "ready": Ready(port=self.port),
            "service": False,
        }
        return [
            Program(
                name=f"{name}-sender",
                end="server",
                command=[*sender, "-f", muxer, target],
                **{**(listens if over_tcp else common), "user": None},
            ),
            Program(
                name=name,
                end="client",
                command=receiver,
                **(common if over_tcp else listens),
            ),
        ]

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether it is the report of the stream's receiver."""
        return isinstance(output.document.get("video"), dict)

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return the figures of pictures and of the player."""
        return {
            f"program_{name.replace('_seconds', '_time')}": float(value)
            for name, value in output.document["video"].items()
            if isinstance(value, int | float) and name != "seconds"
        }
