# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Received videos compared with the one that was sent, frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.files import make_folder
from airpath.video import about, align, codecs, decode, ffmpeg, quality
from airpath.video.errors import FileError, OptionError
from airpath.video.progress import Progress
from airpath.video.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from airpath.video.align import Screen
    from airpath.video.decode import Pictures, Reference

_GREY = 128
_THUMB = 16
"""Rows and columns of small pictures, by which frames are told when no times are known."""


def compare(
    reference_file: Path,
    received: Sequence[Path],
    folder: Path,
    *,
    fps: float | None,
    playout_ns: int | None,
) -> tuple[Reference, list[Result]]:
    """Return the reference and a result for each received video.

    Args:
        reference_file: the video that was sent.
        received: bitstreams with the notes of ``airpath video receive``, or without.
        folder: for pictures; they are used by the results.
        fps: the frame rate, where the user says it.
        playout_ns: delay of a player after the first frame; None for one that waits.

    Raises:
        VideoError: a file is no video, or ffmpeg fails.
        OSError: a file cannot be read.

    """
    ffmpeg.find()
    progress = Progress()
    progress.tell(f"decoding {reference_file}")
    reference = decode.decode_reference(reference_file, folder, fps)
    vmaf = quality.has_vmaf()
    names = _names(received)
    results = []
    for number, (name, file) in enumerate(zip(names, received, strict=True)):
        progress.tell(f"comparing {file} ({number + 1} of {len(received)})")
        here = make_folder(folder / f"received-{number}")
        results.append(_one(name, file, reference, here, playout_ns=playout_ns, vmaf=vmaf))
    progress.end()
    return reference, results


def _names(files: Sequence[Path]) -> list[str]:
    """Return a name for each file: the last part of its path, with a number where two are equal."""
    names = [file.name for file in files]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: number + 1].count(name)})"
        for number, name in enumerate(names)
    ]


def _one(
    name: str,
    file: Path,
    reference: Reference,
    folder: Path,
    *,
    playout_ns: int | None,
    vmaf: bool,
) -> Result:
    count, fps = len(reference.pictures.times), reference.frames_per_second
    notes = about.read(file)
    noted = about.frames(notes, file, file.stat().st_size)
    codec = codecs.CODECS.get(str((notes or {}).get("codec"))) or reference.codec
    if codec is None:
        message = f"{file}: its codec is unknown; compare it with the file that was sent"
        raise FileError(message)
    if playout_ns is not None and noted is None:
        message = (
            f"--playout-delay needs the arrival of frames, which {about.beside(file)} of airpath "
            f"video receive has"
        )
        raise OptionError(message)
    decoded = decode.decode_received(file, noted, codec, reference.pictures, folder / "decoded.yuv")
    if noted is not None:
        arrivals = {frame.rtp_time: frame.arrived_ns for frame in noted}
        screen = align.by_time(decoded.times, count, fps, arrivals, playout_ns)
    else:
        screen = align.by_content(_thumbs(reference.pictures), _thumbs(decoded))
    shown = _write_shown(decoded, screen, folder / "shown.yuv", reference.pictures)
    frames = quality.measure(
        reference.pictures.path, shown.path, shown.width, shown.height, folder, vmaf=vmaf
    )
    motion = quality.motion_of(_planes(shown)[:, : shown.width * shown.height])
    report = {
        "file": str(file),
        "codec": codec.name,
        "frames_sent": count,
        "frames_per_second": fps,
        "frames_decoded": len(decoded.times),
        "frames_frozen": sum(screen.frozen),
        "frames_late": screen.late if playout_ns is not None else None,
        "aligned_by": "RTP time" if noted is not None else "content",
        "playout_delay_ns": playout_ns,
        **quality.overall(frames),
        "freezes": quality.freezes(screen.frozen, fps)._asdict(),
        "jerkiness": quality.jerkiness(screen.shown, motion, fps),
        "decoder_message": "" if decoded.times else decoded.complaint,
    }
    damaged = _damaged(notes, noted, count, fps)
    return Result(name, file, screen, frames, damaged, shown, report)


def _damaged(
    notes: dict[str, Any] | None, noted: list[about.Frame] | None, count: int, fps: float
) -> list[int | None]:
    """Return by frame the number of damaged packets, where the receiver knew it."""
    out: list[int | None] = [None] * count
    for frame, row in zip(noted or [], (notes or {}).get("frames") or [], strict=False):
        number = round(frame.rtp_time * fps / about.RTP_HERTZ)
        value = row.get("damaged_packets")
        if number < count and isinstance(value, int):
            out[number] = value
    return out


def _planes(pictures: Pictures) -> NDArray[np.uint8]:
    """Return the bytes of pictures, one row each, read as they are needed."""
    if not pictures.times:
        return np.zeros((0, pictures.picture_bytes), dtype=np.uint8)
    shape = (len(pictures.times), pictures.picture_bytes)
    return np.memmap(pictures.path, dtype=np.uint8, mode="r", shape=shape)


def _thumbs(pictures: Pictures) -> NDArray[np.float64]:
    """Return means of brightness over a few rows and columns, one row a picture."""
    rows = np.linspace(0, pictures.height, min(_THUMB, pictures.height) + 1).astype(int)
    columns = np.linspace(0, pictures.width, min(_THUMB, pictures.width) + 1).astype(int)
    areas = np.outer(np.diff(rows), np.diff(columns))
    out = []
    for planes in _planes(pictures):
        luma = planes[: pictures.width * pictures.height].astype(np.float64)
        luma = luma.reshape(pictures.height, pictures.width)
        sums = np.add.reduceat(np.add.reduceat(luma, rows[:-1], axis=0), columns[:-1], axis=1)
        out.append((sums / areas).ravel())
    return np.array(out).reshape(len(out), areas.size)


def _write_shown(decoded: Pictures, screen: Screen, target: Path, like: Pictures) -> Pictures:
    """Write the pictures on the screen, one for each frame that was sent."""
    planes = _planes(decoded)
    grey = bytes([_GREY]) * like.picture_bytes
    with target.open("wb") as file:
        for number in screen.shown:
            file.write(grey if number is None else planes[number].tobytes())
    return like._replace(path=target, times=list(range(len(screen.shown))))
