# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The result of a comparison: as text, as a table of frames, and the worst frames of it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.files import write_whole
from airpath.video import quality

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from airpath.video.align import Screen
    from airpath.video.decode import Pictures
    from airpath.video.quality import FrameQuality

_EQUAL_DB = 200.0
"""A number for equal pictures, beyond that of any other."""


@dataclass(frozen=True)
class Result:
    """A received video as a viewer saw it."""

    name: str
    file: Path
    screen: Screen
    frames: list[FrameQuality]
    damaged: list[int | None]
    """By frame: number of its packets that were damaged; None where it is unknown."""
    shown: Pictures
    """The pictures on the screen, one for each frame."""
    report: dict[str, Any]

    @property
    def psnr_db(self) -> list[float]:
        """PSNR of brightness by frame."""
        return [frame.psnr_y_db for frame in self.frames]


def write_table(result: Result, path: Path) -> None:
    """Write the quality of every frame as CSV.

    Raises:
        OSError: it cannot be written.

    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["frame", "time_s", "psnr_y_db", "ssim_y", "vmaf", "frozen", "damaged_packets"])
    fps = result.report["frames_per_second"]
    for number, frame in enumerate(result.frames):
        psnr = quality.finite(frame.psnr_y_db)
        cells = [
            number,
            f"{number / fps:.6g}",
            "inf" if psnr is None else f"{psnr:.4f}",
            f"{frame.ssim_y:.6f}",
            "" if frame.vmaf is None else f"{frame.vmaf:.4f}",
            int(result.screen.frozen[number]),
            "" if result.damaged[number] is None else result.damaged[number],
        ]
        rows.writerow(cells)
    write_whole(path, text.getvalue())


def worst(results: Sequence[Result], most: int, fps: float) -> list[int]:
    """Return the frames of the lowest PSNR of any result, a second apart or more, in order."""
    lowest = np.min([[min(value, _EQUAL_DB) for value in one.psnr_db] for one in results], axis=0)
    apart = max(round(fps), 1)
    chosen: list[int] = []
    for frame in np.argsort(lowest, kind="stable"):
        if len(chosen) < most and all(abs(int(frame) - one) >= apart for one in chosen):
            chosen.append(int(frame))
    return sorted(chosen)


def summary(reference_file: Path, results: Sequence[Result]) -> str:
    """Return the reports of results for people."""
    lines = []
    for result in results:
        report = result.report
        psnr = report["psnr_y_db"]
        freeze = report["freezes"]
        late = report["frames_late"]
        lines += [
            f"{result.file} against {reference_file}",
            f"  PSNR {'infinite (identical)' if psnr is None else f'{psnr:.2f} dB'}, "
            f"SSIM {report['ssim_y']:.4f}, "
            + (
                "VMAF not measured: this ffmpeg has no libvmaf (--ffmpeg takes one that has)"
                if report["vmaf"] is None
                else f"VMAF {report['vmaf']:.1f}"
            ),
            f"  {report['frames_sent']} frames sent, {report['frames_decoded']} decoded, "
            f"{report['frames_identical']} shown without any difference"
            + (f", {late} late" if late is not None else ""),
            f"  {freeze['number']} freezes, {freeze['total_seconds']:.3g} s in all, the longest "
            f"{freeze['longest_seconds']:.3g} s; jerkiness {report['jerkiness']:.3f}",
            f"  frames aligned by {report['aligned_by']}; a missing frame shows the last picture",
        ]
        if report["decoder_message"]:
            lines.append(f"  nothing could be decoded: {report['decoder_message']}")
    return "\n".join(lines)
