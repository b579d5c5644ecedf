# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A test video of moving shapes, digits and noise, made by ffmpeg's own sources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airpath.files import make_folder, write_whole
from airpath.video import about, ffmpeg, payload_nal
from airpath.video.choices import SIZES
from airpath.video.codecs import CODECS
from airpath.video.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

_NOISE = 2
_NOISE_SEED = 1
"""Strength and seed of the noise filter."""


def size_of(text: str) -> tuple[int, int]:
    """Return width and height of a picture by its name or as "WIDTHxHEIGHT".

    Raises:
        OptionError: it is neither, or the numbers do not fit.

    """
    if text in SIZES:
        return SIZES[text]
    found = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if not found:
        message = f"--size {text} is no size: write {', '.join(SIZES)} or WIDTHxHEIGHT"
        raise OptionError(message)
    width, height = int(found[1]), int(found[2])
    if width % 4 or height % 4 or min(width, height) < 16:
        message = f"--size {text}: width and height must be multiples of 4, at least 16"
        raise OptionError(message)
    return width, height


def scene(name: str, width: int, height: int, fps: float) -> str:
    """Return ffmpeg's description of a source of pictures (a filter graph with one output).

    Args:
        name: one of ``SCENES``.
        width: of pictures, in pixels.
        height: of pictures, in pixels.
        fps: frames per second.

    """
    common = f"size={width}x{height}:rate={fps:.12g}"
    if name != "shapes":
        return f"{name}={common},format=yuv420p"
    # A shaded oval that nods and sways before a still background, with two dark spots and a slit;
    # a box that crosses the picture; the digit of a counter; a little noise. What is costly to
    # draw is drawn once, and moved.
    still = f"trim=end_frame=1,loop=-1:1,setpts=N/({fps:.12g})/TB"
    oval_width, oval_height = _even(0.38 * width), _even(0.66 * height)
    slit_width, slit_height = _even(oval_width / 3), _even(oval_height / 12)
    digit, box = _even(0.16 * height), _even(0.1 * height)
    low = "lt(Y/H,0.5+0.2*sin(X/W*5))"
    spots = f"{_ellipse(0.32, 0.4, 0.07, 0.05)}+{_ellipse(0.68, 0.4, 0.07, 0.05)}"
    inside = f"255*{_ellipse(0.5, 0.5, 0.5, 0.5)}"
    x, y = "W*(0.31+0.1*sin(t*0.9))", "H*(0.16+0.04*cos(t*1.7))"
    return (
        f"color=gray:{common},format=yuv420p,trim=end_frame=1,"
        f"geq=lum='if({low},95+40*Y/H,70-20*X/W)':cr='if({low},120,124)':cb='if({low},146,112)',"
        f"{still}[background];"
        f"color=gray:size={oval_width}x{oval_height}:rate={fps:.12g},format=yuva420p,"
        f"trim=end_frame=1,geq=lum='if({spots},40,190-110*abs(X/W-0.42))':cr=152:cb=112:"
        f"a='{inside}',{still}[oval];"
        f"color=gray:size={slit_width}x{slit_height}:rate={fps:.12g},format=yuva420p,"
        f"trim=end_frame=1,geq=lum=40:cr=140:cb=120:a='{inside}',{still}[slit];"
        f"testsrc=size=320x240:rate={fps:.12g},crop=58:62:200:89,scale={digit}:{digit},"
        f"format=yuv420p[digit];"
        f"color=yellow:size={box}x{box}:rate={fps:.12g},format=yuv420p[box];"
        f"[background][oval]overlay=x='{x}':y='{y}':format=yuv420[1];"
        f"[1][slit]overlay=x='{x}+{slit_width}':"
        f"y='{y}+{oval_height}*(0.7+0.05*abs(sin(t*4)))':format=yuv420[2];"
        f"[2][digit]overlay=4:4[3];"
        f"[3][box]overlay=x='mod(t*{width}/4,{width})':y='{height}*0.85',"
        f"noise=alls={_NOISE}:allf=t:all_seed={_NOISE_SEED},format=yuv420p"
    )


def _even(length: float) -> int:
    """Return an even number of pixels near a length, as colours have half as many."""
    return max(round(length / 2) * 2, 2)


def _ellipse(x: float, y: float, half_width: float, half_height: float) -> str:
    """Return an expression that is 1 within an ellipse, in shares of width and height."""
    return f"lt(pow((X/W-{x})/{half_width},2)+pow((Y/H-{y})/{half_height},2),1)"


def encoding(codec: str, rate_bps: int, key_frame_interval: int, slice_bytes: int) -> list[str]:
    """Return ffmpeg's options of an encoder: one thread, no frame that refers to a later one.

    Args:
        codec: its name.
        rate_bps: the rate aimed at.
        key_frame_interval: frames from one that needs no other to the next.
        slice_bytes: length after which a new slice (of H.263 a group of blocks) begins; 0 for
            one slice a frame. AV1 has none.

    """
    common = ["-threads", "1", "-g", str(key_frame_interval), "-b:v", str(rate_bps)]
    # Without a buffer of two seconds the first frames are far beyond a low rate.
    common += ["-maxrate", str(rate_bps), "-bufsize", str(2 * rate_bps)]
    if codec == "h263p":
        slices = ["-ps", str(slice_bytes)] if slice_bytes else []
        return ["-c:v", "h263p", *common, "-bf", "0", *slices]
    if codec == "h264":
        slices = [f"slice-max-size={slice_bytes}"] if slice_bytes else []
        options = ":".join(["threads=1", "sliced-threads=0", *slices])
        return [
            "-c:v",
            "libx264",
            *common,
            "-preset",
            "medium",
            "-tune",
            "zerolatency",
            "-x264-params",
            options,
        ]
    if codec == "h265":
        options = "log-level=error:pools=none:frame-threads=1:bframes=0:repeat-headers=1:info=0"
        return [
            "-c:v",
            "libx265",
            *common,
            "-preset",
            "fast",
            "-tune",
            "zerolatency",
            "-x265-params",
            options,
        ]
    return [
        "-c:v",
        "libaom-av1",
        *common,
        "-usage",
        "realtime",
        "-cpu-used",
        "8",
        "-lag-in-frames",
        "0",
    ]


def make(
    out: Path,
    *,
    codec: str,
    frames: int,
    size: str,
    fps: float,
    rate_bps: int,
    scene_name: str,
    key_frame_interval: int,
    slice_bytes: int,
) -> dict[str, Any]:
    """Write a test video and the notes about it; return the notes.

    Args:
        out: the file; what it holds is a bare bitstream.
        codec: one of ``CODECS``.
        frames: number of frames.
        size: of pictures.
        fps: frames per second.
        rate_bps: the rate aimed at.
        scene_name: one of ``SCENES``.
        key_frame_interval: frames from one that needs no other to the next.
        slice_bytes: length after which a slice ends; 0 for one slice a frame.

    Raises:
        VideoError: ffmpeg is not there, or cannot make it.
        OSError: the file cannot be written.

    """
    width, height = size_of(size)
    make_folder(out.parent)
    arguments = ["-filter_complex", scene(scene_name, width, height, fps)]
    arguments += ["-frames:v", str(frames)]
    arguments += encoding(codec, rate_bps, key_frame_interval, slice_bytes)
    arguments += [
        "-flags",
        "+bitexact",
        "-fflags",
        "+bitexact",
        "-f",
        # The same bytes; newer versions of ffmpeg refuse H.263+ as h263.
        "rawvideo" if codec == "h263p" else CODECS[codec].bitstream,
        "pipe:1",
    ]
    bitstream = ffmpeg.run(arguments, f"make a video with the codec {codec}")
    if codec in ("h264", "h265"):
        bitstream = payload_nal.with_long_start_codes(bitstream)
    notes = {
        "codec": codec,
        "width": width,
        "height": height,
        "frames_per_second": fps,
        "frame_count": frames,
        "scene": scene_name,
        "bytes": len(bitstream),
        "rate_bps": round(len(bitstream) * 8 * fps / frames),
    }
    write_whole(out, bitstream)
    about.write(out, notes)
    return notes
