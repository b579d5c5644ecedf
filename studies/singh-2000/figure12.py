# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figure 12 of Singh 2000: a video through ``airpath wsim``, over UDP and over UDP-Lite.

Radio blocks have errors with the rate of the thesis, 1.58 %, and 20 % of the bytes of such a block
are damaged. Both protocols see the same errors of each seed. Printed are means over the seeds with
95 % intervals, and of the differences of the pairs; drawn are the quality of each frame, and frames
of the first seed. VMAF is measured if the ffmpeg of ``--ffmpeg`` has libvmaf.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.analysis.intervals import mean_with_half_width
from airpath.files import make_folder
from airpath.plots.style import BLUE, VERMILLION, Picture, stack
from airpath.video import ffmpeg, pictures
from airpath.video.compare import compare
from airpath.video.result import worst

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROTOCOLS = {"udp": (BLUE, "-"), "udp-lite": (VERMILLION, "--")}
ERRORS = '{ type = "bernoulli", probability = 0.0158 }'
AIRPATH = (sys.executable, "-c", "import sys; from airpath.cli import main; sys.exit(main())")
MOST_DB = 50.0
"""PSNR of a frame that is shown without any difference, which has none."""
FPS = 10


def airpath(*words: object) -> str:
    """Return what a command prints."""
    command = [*AIRPATH, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def damage(clip: Path, folder: Path, seed: int) -> tuple[list[Path], list[float]]:
    """Send the clip by each protocol; return the files that arrive, and the losses."""
    files, losses = [], []
    for protocol in PROTOCOLS:
        file = folder / f"{protocol}.h263"
        words = ("--units", "h263", "--adu-size", 500, "--protocol", protocol)
        errors = ("--errors", ERRORS, "--errors-within", 0.2, "--seed", seed)
        said = airpath("wsim", "--input", clip, "--out", file, *words, *errors, "--json")
        summary = json.loads(said)
        files.append(file)
        losses.append(100 * summary["dropped_packets"] / summary["packets"])
    return files, losses


def draw(psnr: NDArray[np.float64], ssim: NDArray[np.float64], out: Path) -> None:
    """Draw the quality of each frame: means over seeds, and bands of 95 % intervals."""
    with stack(2, row_inches=2.0) as (figure, axes):
        labels = ("PSNR of brightness (dB)", "SSIM of brightness")
        for axis, values, label in zip(axes, (psnr, ssim), labels, strict=True):
            times = np.arange(values.shape[2]) / FPS
            for number, (protocol, (colour, line)) in enumerate(PROTOCOLS.items()):
                found = [mean_with_half_width(column.tolist()) for column in values[:, number].T]
                mean = np.array([one.mean for one in found])
                half = np.array([one.half_width for one in found])
                axis.plot(times, mean, color=colour, linestyle=line, label=protocol)
                axis.fill_between(times, mean - half, mean + half, color=colour, alpha=0.2)
            axis.set_ylabel(label)
        axes[0].legend()
        axes[1].set_xlabel("Time in the video (s)")
        Picture("figure12-quality", figure).save(out, "png")


def main(words: list[str] | None = None) -> None:
    """Read the options, and carry the study out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results/figure12"))
    parser.add_argument("--ffmpeg", type=Path, help="the ffmpeg that decodes and compares")
    options = parser.parse_args(words)
    with ffmpeg.chosen(options.ffmpeg):
        study(options.seeds, options.frames, make_folder(options.out))


def study(seeds: int, frame_count: int, out: Path) -> None:
    """Print the table and draw, with the ffmpeg that was chosen."""
    rows: list[dict[str, list[float]]] = []
    by_frame: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="singh-figure12-") as name:
        folder = Path(name)
        clip = folder / "clip.h263"
        video = ("--codec", "h263p", "--fps", FPS, "--frames", frame_count)
        rate = ("--rate", "10 kbit/s", "--slice-bytes", 200, "--out", clip)
        airpath("video", "make", *video, *rate)
        for seed in range(1, seeds + 1):
            files, losses = damage(clip, folder, seed)
            decoded = make_folder(folder / f"seed-{seed}")
            reference, results = compare(clip, files, decoded, fps=FPS, playout_ns=None)
            if seed == 1:
                frames = worst(results, 3, FPS)
                shown = pictures.side_by_side(reference, results, frames)
                shown.save(out, "png")
            psnr = [np.minimum(one.psnr_db, MOST_DB) for one in results]
            ssim = [[frame.ssim_y for frame in one.frames] for one in results]
            by_frame.append((psnr, ssim))
            row = {
                "packets dropped (%)": losses,
                "frames decoded": [one.report["frames_decoded"] for one in results],
                "PSNR by frame (dB)": [float(np.mean(one)) for one in psnr],
                "SSIM by frame": [float(np.mean(one)) for one in ssim],
            }
            if results[0].report["vmaf"] is not None:
                row["VMAF by frame"] = [one.report["vmaf"] for one in results]
            rows.append(row)
            for file in decoded.rglob("*.yuv"):
                file.unlink()
    print("| | udp | udp-lite | udp-lite less udp |\n|---|---|---|---|")
    for what in rows[0]:
        values = np.array([row[what] for row in rows], dtype=float)
        columns = [*values.T, values[:, 1] - values[:, 0]]
        means = [mean_with_half_width(one.tolist()) for one in columns]
        cells = [f"{one.mean:.3f} ± {one.half_width:.3f}" for one in means]
        print(f"| {what} | " + " | ".join(cells) + " |")
    both = np.array(by_frame, dtype=float)
    draw(both[:, 0], both[:, 1], out)


if __name__ == "__main__":
    main()
