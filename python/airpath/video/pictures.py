# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of a comparison: quality over frames, the worst frames side by side, a short clip."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.files import write_whole
from airpath.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    WIDTH_INCHES,
    Picture,
    canvas,
    stack,
)
from airpath.video import ffmpeg
from airpath.video.result import worst

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from airpath.video.decode import Pictures, Reference
    from airpath.video.result import Result

_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE)
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MOST_VIDEOS = len(_COLOURS)
"""Number of videos in a picture."""
_WORST_FRAMES = 3
_CLIP_SECONDS = 15
_HEADROOM_DB = 3
_LEAST_CLIP_WIDTH = 320


def write(
    reference: Reference, results: Sequence[Result], out: Path, file_format: str, *, clip: bool
) -> list[Path]:
    """Write all pictures of a comparison; return their paths.

    Args:
        reference: the video that was sent.
        results: what viewers saw.
        out: a folder that exists.
        file_format: png, svg or pdf.
        clip: whether to write the clip too.

    Raises:
        VideoError: ffmpeg fails.
        OSError: a file cannot be written.

    """
    frames = worst(results, _WORST_FRAMES, reference.frames_per_second)
    pictures = [over_frames(results), side_by_side(reference, results, frames)]
    files = [picture.save(out, file_format) for picture in pictures]
    if clip:
        files.append(out / "clip.mp4")
        write_clip(reference, results, frames, files[-1])
    return files


def over_frames(results: Sequence[Result]) -> Picture:
    """Draw PSNR, SSIM and VMAF over the time of the video, with freezes and damaged frames.

    VMAF has a panel if it was measured.
    """
    fps = float(results[0].report["frames_per_second"])
    finite = [value for one in results for value in one.psnr_db if math.isfinite(value)]
    top = max(finite, default=40.0) + _HEADROOM_DB
    has_vmaf = any(one.report["vmaf"] is not None for one in results)
    with stack(3 if has_vmaf else 2, row_inches=2.3) as (figure, axes):
        for number, result in enumerate(results):
            style: dict[str, Any] = {"color": _COLOURS[number], "linestyle": _LINES[number]}
            times = np.arange(len(result.frames)) / fps
            psnr = np.array(result.psnr_db)
            drawn = np.minimum(psnr, top)
            ssim = np.array([frame.ssim_y for frame in result.frames])
            shown = result.report["psnr_y_db"]
            mean = "identical" if shown is None else f"{shown:.1f} dB"
            label = f"{result.name}: PSNR {mean}, SSIM {result.report['ssim_y']:.3f}"
            if has_vmaf:
                label += f", VMAF {result.report['vmaf']:.1f}"
                vmaf = np.array([frame.vmaf for frame in result.frames], dtype=float)
                axes[2].plot(times, vmaf, linewidth=0.9, **style)
            axes[0].plot(times, drawn, linewidth=0.9, label=label, **style)
            axes[1].plot(times, ssim, linewidth=0.9, **style)
            hit = np.array([bool(value) for value in result.damaged])
            if hit.any():
                axes[0].plot(
                    times[hit],
                    drawn[hit],
                    linestyle="none",
                    marker="x",
                    markersize=3.5,
                    color=_COLOURS[number],
                    label="damaged packets in the frame",
                )
            _mark_frozen(axes[0], result, fps, number, len(results))
        axes[0].axhline(top, color=GREY, linewidth=0.6, linestyle=":")
        axes[0].set_ylabel("PSNR of brightness (dB)")
        axes[0].set_title(
            "On the dotted line: no difference. Bars below: the screen keeps the last picture",
            loc="left",
            color="#444444",
        )
        axes[1].set_ylabel("SSIM of brightness")
        if has_vmaf:
            axes[2].set_ylabel("VMAF")
        axes[-1].set_xlabel("Time in the video (s)")
        axes[0].margins(x=0.01)
        figure.legend(loc="outside lower center", ncols=1)
    return Picture("quality", figure)


def _mark_frozen(axis: Any, result: Result, fps: float, number: int, count: int) -> None:
    """Draw a bar below the curves where the screen kept the last picture."""
    spans = [(n / fps, 1 / fps) for n, frozen in enumerate(result.screen.frozen) if frozen]
    height = 0.035
    bottom = 0.01 + (count - 1 - number) * (height + 0.01)
    if spans:
        axis.broken_barh(
            spans,
            (bottom, height),
            transform=axis.get_xaxis_transform(),
            color=_COLOURS[number],
            linewidth=0,
        )


def side_by_side(reference: Reference, results: Sequence[Result], frames: Sequence[int]) -> Picture:
    """Draw frames as they were sent and as they were seen, one row each."""
    columns = 1 + len(results)
    pictures = reference.pictures
    width = WIDTH_INCHES / columns
    row_inches = width * pictures.height / pictures.width + 0.22
    sent = _rgb(pictures, frames)
    seen = [_rgb(result.shown, frames) for result in results]
    with canvas(row_inches * len(frames) + 0.1) as figure:
        grid = figure.subplots(len(frames), columns, squeeze=False)
        for row, frame in enumerate(frames):
            time = frame / reference.frames_per_second
            _show(grid[row, 0], sent[row], f"frame {frame} ({time:.2f} s) as sent")
            for column, result in enumerate(results):
                psnr = result.psnr_db[frame]
                told = "identical" if math.isinf(psnr) else f"{psnr:.1f} dB"
                kept = ", kept" if result.screen.frozen[frame] else ""
                _show(grid[row, column + 1], seen[column][row], f"{result.name}: {told}{kept}")
    return Picture("worst-frames", figure)


def _show(axis: Any, picture: NDArray[np.uint8], title: str) -> None:
    axis.imshow(picture, interpolation="nearest")
    axis.set_title(title, fontsize=7, loc="left", pad=2)
    axis.set_axis_off()


def _raw(pictures: Pictures, fps: float = 25) -> list[str | Path]:
    size = f"{pictures.width}x{pictures.height}"
    rate = f"{fps:.12g}"
    words: list[str | Path] = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size]
    return [*words, "-framerate", rate, "-i", pictures.path]


def _rgb(pictures: Pictures, frames: Sequence[int]) -> NDArray[np.uint8]:
    """Return some pictures in red, green and blue: by picture, row, column and colour."""
    chosen = "+".join(f"eq(n,{frame})" for frame in frames)
    words = [*_raw(pictures), "-vf", f"select='{chosen}'", "-fps_mode", "passthrough"]
    words += ["-pix_fmt", "rgb24", "-f", "rawvideo", "pipe:1"]
    content = ffmpeg.run(words, "convert pictures")
    shape = (len(frames), pictures.height, pictures.width, 3)
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def write_clip(
    reference: Reference, results: Sequence[Result], frames: Sequence[int], path: Path
) -> None:
    """Write the part around the worst frame as a clip: as sent, and as seen, side by side.

    Raises:
        VideoError: ffmpeg fails.
        OSError: the clip cannot be written.

    """
    fps = reference.frames_per_second
    count = len(reference.pictures.times)
    length = min(count, round(_CLIP_SECONDS * fps))
    lowest = min(frames, key=lambda frame: min(result.psnr_db[frame] for result in results))
    begin = min(max(lowest - length // 2, 0), count - length)
    videos = [reference.pictures, *(result.shown for result in results)]
    factor = max(math.ceil(_LEAST_CLIP_WIDTH / reference.pictures.width), 1)
    words: list[str | Path] = []
    for video in videos:
        words += _raw(video, fps)
    trimmed = f"trim=start_frame={begin}:end_frame={begin + length},setpts=PTS-STARTPTS"
    scaled = f"scale=iw*{factor}:ih*{factor}:flags=neighbor"
    parts = [f"[{n}:v]{trimmed},{scaled}[v{n}]" for n in range(len(videos))]
    joined = "".join(f"[v{n}]" for n in range(len(videos)))
    parts.append(f"{joined}hstack=inputs={len(videos)},pad=ceil(iw/2)*2:ceil(ih/2)*2")
    words += [
        "-filter_complex",
        ";".join(parts),
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-crf",
        "18",
    ]
    words += ["-threads", "1"]
    words += ["-pix_fmt", "yuv420p", "-movflags", "frag_keyframe+empty_moov"]
    words += ["-fflags", "+bitexact", "-flags", "+bitexact", "-f", "mp4", "pipe:1"]
    write_whole(path, ffmpeg.run(words, "make the clip"))
