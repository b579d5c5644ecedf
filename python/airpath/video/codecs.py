# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Codecs that the commands about video send: names, formats of bitstreams, RTP payload types."""

from __future__ import annotations

from typing import NamedTuple

from airpath.video.errors import FileError


class Codec(NamedTuple):
    """A codec, and the RTP payload format that carries it."""

    name: str
    """As the commands call it."""
    ffmpeg_name: str
    """As ffprobe calls it."""
    bitstream: str
    """ffmpeg's format of the bare bitstream."""
    suffix: str
    """Of files with the bare bitstream."""
    payload_type: int
    """Of the dynamic ones of RFC 3551; it tells the receiver the codec without a session
    description."""
    payload_header_bytes: int
    """Of the payload format's own header, where a frame is cut into several packets."""
    tag: str
    """Four characters that name the codec in containers."""
    source: str
    """The document that specifies the payload format."""


CODECS = {
    codec.name: codec
    for codec in (
        Codec("h263p", "h263", "h263", ".h263", 96, 2, "H263", "RFC 4629"),
        Codec("h264", "h264", "h264", ".h264", 97, 2, "H264", "RFC 6184"),
        Codec("h265", "hevc", "hevc", ".h265", 98, 3, "H265", "RFC 7798"),
        Codec("av1", "av1", "obu", ".obu", 99, 1, "AV01", "AV1 RTP payload format, version 1.0.0"),
    )
}
"""Every codec, by name."""


def of_ffmpeg(name: str, file: object) -> Codec:
    """Return the codec that ffprobe found in a file.

    Raises:
        VideoError: there is no payload format for it here.

    """
    for codec in CODECS.values():
        if codec.ffmpeg_name == name:
            return codec
    message = (
        f"{file} holds video of the codec {name}; airpath video sends {', '.join(CODECS)}: "
        f"convert it first, for example with ffmpeg -i {file} -c:v libx264 -bf 0 clip.h264"
    )
    raise FileError(message)


def of_payload_type(number: int) -> Codec | None:
    """Return the codec with an RTP payload type, or None."""
    for codec in CODECS.values():
        if codec.payload_type == number:
            return codec
    return None
