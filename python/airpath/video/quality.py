# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""PSNR, SSIM and VMAF by frame (ffmpeg's filters), freezes, and jerkiness."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from airpath.video import ffmpeg

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PEAK = 255
_VMAF = "libvmaf"


class FrameQuality(NamedTuple):
    """Quality of the picture on the screen at a frame."""

    mse_y: float
    """Mean square of the differences of brightness."""
    ssim_y: float
    """Structural similarity of brightness (Wang et al. 2004), as ffmpeg computes it."""
    vmaf: float | None
    """None where ffmpeg has no libvmaf."""

    @property
    def psnr_y_db(self) -> float:
        """Peak signal-to-noise ratio of brightness; infinite for equal pictures."""
        return psnr_db(self.mse_y)


class Freezes(NamedTuple):
    """Times in which the screen did not change although frames had been sent."""

    number: int
    longest_seconds: float
    total_seconds: float


def psnr_db(mse: float) -> float:
    """Return 10 log10(255^2 / MSE); infinite for an error of zero."""
    return 10 * math.log10(PEAK**2 / mse) if mse > 0 else math.inf


def has_vmaf() -> bool:
    """Say whether ffmpeg has the filter libvmaf.

    Raises:
        VideoError: ffmpeg is not installed.

    """
    return _has_vmaf(ffmpeg.find())


@functools.cache
def _has_vmaf(_ffmpeg: str) -> bool:
    with ffmpeg.started(
        "ffmpeg",
        ["-hide_banner", "-filters"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        listed, _ = process.communicate()
    return any(line.split()[1:2] == [_VMAF.encode()] for line in listed.splitlines())


def measure(
    reference: Path, shown: Path, width: int, height: int, folder: Path, *, vmaf: bool
) -> list[FrameQuality]:
    """Return the quality of each picture.

    Args:
        reference: pictures in yuv420p.
        shown: as many pictures of the same size.
        width: of pictures.
        height: of pictures.
        folder: for temporary files.
        vmaf: whether to compute VMAF, too.

    Raises:
        VideoError: ffmpeg fails.

    """
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{width}x{height}"]
    names = ["psnr", "ssim"] + (["vmaf"] if vmaf else [])
    logs = {name: folder / f"{name}.log" for name in names}
    # Names of files in filters have escapes of their own: these have nothing to escape. The logs of
    # psnr and ssim themselves have two decimals; what they attach to pictures has six.
    filters = {
        "psnr": f"psnr,metadata=print:file={logs['psnr'].name}",
        "ssim": f"ssim,metadata=print:file={logs['ssim'].name}",
        "vmaf": "libvmaf=log_path=vmaf.log:log_fmt=json",
    }
    count = len(names)
    graph = [f"[0:v]split={count}" + "".join(f"[a{n}]" for n in range(count))]
    graph += [f"[1:v]split={count}" + "".join(f"[b{n}]" for n in range(count))]
    graph += [f"[a{n}][b{n}]{filters[name]}[o{n}]" for n, name in enumerate(names)]
    arguments: list[str | Path] = [*raw, "-i", shown, *raw, "-i", reference]
    arguments += ["-filter_complex", ";".join(graph)]
    for n in range(count):
        arguments += ["-map", f"[o{n}]", "-f", "null", "-"]
    ffmpeg.run(arguments, "compare pictures", folder=folder)
    mse = _printed(logs["psnr"], "psnr.mse.y")
    ssim = _printed(logs["ssim"], "ssim.Y")
    scores: Sequence[float | None] = [None] * len(mse)
    if vmaf:
        frames = json.loads(logs["vmaf"].read_text())["frames"]
        scores = [float(frame["metrics"]["vmaf"]) for frame in frames]
    return [FrameQuality(*row) for row in zip(mse, ssim, scores, strict=True)]


def _printed(log: Path, name: str) -> list[float]:
    """Return the values that a filter attached to each picture."""
    pattern = rf"^lavfi\.{re.escape(name)}=(\S+)$"
    return [float(value) for value in re.findall(pattern, log.read_text(), re.MULTILINE)]


def freezes(frozen: Sequence[bool], fps: float) -> Freezes:
    """Return the freezes of a screen.

    Args:
        frozen: by frame, True where the screen did not change.
        fps: frames per second.

    """
    runs, length = [], 0
    for one in [*frozen, False]:
        if one:
            length += 1
        elif length:
            runs.append(length)
            length = 0
    return Freezes(len(runs), max(runs, default=0) / fps, sum(runs) / fps)


def jerkiness(shown: Sequence[int | None], motion: Sequence[float], fps: float) -> float:
    """Return the share of motion that came in jumps: 0 where the screen changes at every frame.

    The form is that of Borer (2010), in which the time of a picture on the screen is weighted with
    the motion to the next one, without the S-shaped weights that were fitted to viewers:
    sum of (t_i - 1/f) m_i over sum of t_i m_i, with the time t_i of picture i on the screen, the
    frame rate f, and the root mean square m_i of the change of brightness to picture i + 1.

    Args:
        shown: by frame, the number of the picture on the screen.
        motion: by frame, the root mean square of the change from the frame before; the first is 0.
        fps: frames per second.

    """
    changes = [n for n in range(len(shown)) if n == 0 or shown[n] != shown[n - 1]]
    above = below = 0.0
    for begin, end in itertools.pairwise(changes):
        time = (end - begin) / fps
        above += (time - 1 / fps) * motion[end]
        below += time * motion[end]
    return above / below if below else 0.0


def motion_of(luma: NDArray[np.uint8]) -> list[float]:
    """Return the root mean square of the change of brightness from the picture before; first 0.

    Args:
        luma: brightness by picture, row and column.

    """
    rows = luma.reshape(len(luma), -1)
    out = [0.0]
    for before, after in itertools.pairwise(rows):
        difference = after.astype(np.float64) - before
        out.append(float(np.sqrt((difference**2).mean())))
    return out


def finite(value: float) -> float | None:
    """Return a number, or None for an infinite one, which JSON does not have."""
    return value if math.isfinite(value) else None


def overall(frames: Sequence[FrameQuality]) -> dict[str, Any]:
    """Return the quality of all frames: PSNR of the mean square error, mean SSIM and VMAF."""
    scores = [frame.vmaf for frame in frames if frame.vmaf is not None]
    mse = float(np.mean([frame.mse_y for frame in frames]))
    return {
        "psnr_y_db": finite(psnr_db(mse)),
        "ssim_y": float(np.mean([frame.ssim_y for frame in frames])),
        "vmaf": float(np.mean(scores)) if scores else None,
        "frames_identical": sum(frame.mse_y == 0 for frame in frames),
    }
