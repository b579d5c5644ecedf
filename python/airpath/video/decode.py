# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Videos decoded to pictures: planes of 8 bits, colours at half the resolution (yuv420p)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airpath.video import about, codecs, ffmpeg
from airpath.video.errors import FileError
from airpath.video.packetise import frame_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.video.codecs import Codec

CONCEALMENT = ("-flags", "+output_corrupt", "-flags2", "+showall", "-ec", "guess_mvs+deblock")
"""ffmpeg's options by which a decoder shows damaged frames, with what is missing guessed."""

_PASS = (
    "-fps_mode",
    "passthrough",
    "-enc_time_base",
    f"1:{about.RTP_HERTZ}",
    "-pix_fmt",
    "yuv420p",
)
"""Every decoded frame once, with its own time, in the units of RTP."""


class Pictures(NamedTuple):
    """Decoded pictures in a file, one after the other."""

    path: Path
    width: int
    height: int
    times: list[int]
    """Of each picture, in the units of RTP."""
    complaint: str
    """The last of ffmpeg's messages; empty if there was none."""

    @property
    def picture_bytes(self) -> int:
        """Length of a picture."""
        return picture_bytes(self.width, self.height)


class Reference(NamedTuple):
    """The video that was sent, decoded."""

    pictures: Pictures
    frames_per_second: float
    codec: Codec | None
    """None for one that is not sent here, such as none at all."""


def picture_bytes(width: int, height: int) -> int:
    """Return the length of a picture."""
    return width * height + 2 * ((width + 1) // 2) * ((height + 1) // 2)


def decode_reference(file: Path, folder: Path, given_fps: float | None) -> Reference:
    """Decode the video that was sent, or the pictures that it was made of.

    Args:
        file: any video that ffmpeg reads.
        folder: for the pictures.
        given_fps: the frame rate, where the user says it.

    Raises:
        VideoError: it is no video.
        OSError: it cannot be read.

    """
    with file.open("rb"):
        pass
    notes = about.read(file)
    noted = codecs.CODECS.get(str((notes or {}).get("codec")))
    options = ["-f", noted.bitstream] if noted else []
    found = ffmpeg.probe(file, options)
    width, height = int(found.get("width") or 0), int(found.get("height") or 0)
    if width < 1 or height < 1:
        message = f"{file}: ffprobe cannot tell the size of its pictures"
        raise FileError(message)
    fps = given_fps or about.frames_per_second(notes, file) or frame_rate(found)
    if fps is None:
        message = f"{file} does not say its frame rate: give it with --fps"
        raise FileError(message)
    pictures = _decode([*options, "-i", file], folder / "reference.yuv", width, height)
    if not pictures.times:
        message = f"ffmpeg cannot decode a frame of {file}: {pictures.complaint}"
        raise FileError(message)
    by_name = {one.ffmpeg_name: one for one in codecs.CODECS.values()}
    return Reference(pictures, fps, by_name.get(str(found.get("codec_name"))))


def decode_received(
    file: Path,
    frames: Sequence[about.Frame] | None,
    codec: Codec,
    reference: Pictures,
    target: Path,
) -> Pictures:
    """Decode a received bitstream, with all its damage.

    Args:
        file: the bitstream.
        frames: its frames, whose RTP times the pictures then have; None to have ffmpeg find them.
        codec: of the bitstream.
        reference: the size of pictures.
        target: the file for the pictures.

    Raises:
        OSError: it cannot be read.

    """
    with file.open("rb"):
        pass
    width, height = reference.width, reference.height
    if frames is None:
        source: list[str | Path] = ["-f", codec.bitstream, "-i", file]
    else:
        container = target.with_suffix(".ivf")
        container.write_bytes(ivf(file.read_bytes(), frames, codec, width, height))
        # ffmpeg does not know H.265 in this container by its tag.
        forced = ["-c:v", "hevc"] if codec.name == "h265" else []
        source = [*forced, "-f", "ivf", "-i", container]
    return _decode([*CONCEALMENT, *source], target, width, height)


def ivf(
    bitstream: bytes, frames: Sequence[about.Frame], codec: Codec, width: int, height: int
) -> bytes:
    """Return frames in the container IVF, which gives the decoder each with its time.

    Args:
        bitstream: where they are.
        frames: place and time of each.
        codec: of the bitstream.
        width: of pictures.
        height: of pictures.

    """
    tag = codec.tag.encode()
    used = [frame for frame in frames if frame.length_bytes]
    head = struct.pack(
        "<4sHH4sHHIIII", b"DKIF", 0, 32, tag, width, height, about.RTP_HERTZ, 1, len(used), 0
    )
    parts = [head]
    for frame in used:
        content = bitstream[frame.offset_bytes : frame.offset_bytes + frame.length_bytes]
        parts.append(struct.pack("<IQ", len(content), frame.rtp_time) + content)
    return b"".join(parts)


def _decode(source: Sequence[str | Path], target: Path, width: int, height: int) -> Pictures:
    """Decode what ffmpeg can; what it cannot is missing among the pictures."""
    times = target.with_suffix(".times")
    messages = target.with_suffix(".log")
    scaled = ["-map", "0:v:0", "-vf", f"scale={width}:{height}", *_PASS]
    # One thread, with which the decoders conceal more, and always the same.
    words = [*ffmpeg.QUIET, "-threads", "1", *source]
    words += [*scaled, "-f", "rawvideo", target, *scaled, "-f", "framecrc", times]
    with (
        messages.open("wb") as told,
        ffmpeg.started("ffmpeg", words, stdout=told, stderr=told) as process,
    ):
        process.wait()
    shown = messages.read_text(errors="replace").strip().splitlines()
    found = []
    if times.exists():
        rows = [line.split(",") for line in times.read_text().splitlines() if line[:1].isdigit()]
        found = [int(row[2]) for row in rows]
    length = target.stat().st_size if target.exists() else 0
    found = found[: length // picture_bytes(width, height)]
    return Pictures(target, width, height, found, shown[-1] if shown else "")
