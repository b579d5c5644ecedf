# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Quality of received video: against numpy, by hand, and of clips of which frames are missing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from airpath.video import about, align, compare, ffmpeg, quality, result
from airpath.video.codecs import CODECS
from airpath.video.comparison import run
from airpath.video.errors import VideoError
from videos import needs_ffmpeg, received_without

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH, HEIGHT = 48, 32


def smooth_pictures(count: int, noise: float) -> NDArray[np.uint8]:
    """Return pictures in yuv420p, one row each: slopes with noise."""
    draw = np.random.default_rng(3)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    out = []
    for number in range(count):
        luma = 90 + 2 * columns + rows + 5 * number + draw.normal(0, noise, (HEIGHT, WIDTH))
        colours = np.full(WIDTH * HEIGHT // 2, 120 + number)
        out.append(np.concatenate([luma.clip(0, 255).ravel(), colours]))
    return np.array(out).astype(np.uint8)


def luma_of(planes: NDArray[np.uint8]) -> NDArray[np.float64]:
    rows = planes[:, : WIDTH * HEIGHT].astype(np.float64)
    return rows.reshape(len(rows), HEIGHT, WIDTH)


def ssim(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the mean SSIM (Wang et al. 2004, eq. 13) over windows of 8x8, 4 apart."""
    values = []
    low, high = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    for row in range(0, HEIGHT - 7, 4):
        for column in range(0, WIDTH - 7, 4):
            a = one[row : row + 8, column : column + 8].ravel()
            b = other[row : row + 8, column : column + 8].ravel()
            (aa, ab), (_, bb) = np.cov(a, b)
            numerator = (2 * a.mean() * b.mean() + low) * (2 * ab + high)
            denominator = (a.mean() ** 2 + b.mean() ** 2 + low) * (aa + bb + high)
            values.append(numerator / denominator)
    return float(np.mean(values))


@needs_ffmpeg
def test_psnr_and_ssim_agree_with_numpy(tmp_path: Path) -> None:
    sent, seen = smooth_pictures(4, 0), smooth_pictures(4, 3)
    seen[2] = sent[2]
    seen[3, 0] ^= 1
    for name, planes in (("sent", sent), ("seen", seen)):
        (tmp_path / name).write_bytes(planes.tobytes())
    found = quality.measure(
        tmp_path / "sent", tmp_path / "seen", WIDTH, HEIGHT, tmp_path, vmaf=False
    )
    errors = ((luma_of(sent) - luma_of(seen)) ** 2).mean(axis=(1, 2))
    assert errors[0] > 3
    for frame, mse, one, other in zip(found, errors, luma_of(sent), luma_of(seen), strict=True):
        assert frame.mse_y == pytest.approx(mse, abs=1e-5)
        assert frame.ssim_y == pytest.approx(ssim(one, other), abs=2e-3)
        expected = 10 * math.log10(255**2 / mse) if mse else math.inf
        assert frame.psnr_y_db == pytest.approx(expected, abs=1e-4)
    assert (found[2].psnr_y_db, found[2].ssim_y) == (math.inf, 1)
    whole = quality.overall(found)
    assert whole["psnr_y_db"] == pytest.approx(10 * math.log10(255**2 / errors.mean()), abs=1e-4)
    assert whole["frames_identical"] == 1
    assert quality.overall([found[2]])["psnr_y_db"] is None


def test_freezes_by_hand() -> None:
    frozen = [False, True, True, False, True, False, False, True, True, True]
    found = quality.freezes(frozen, 10)
    assert (found.number, found.longest_seconds) == (3, 0.3)
    assert found.total_seconds == pytest.approx(0.6)
    assert quality.freezes([False] * 5, 10) == quality.Freezes(0, 0, 0)


def test_jerkiness_by_hand() -> None:
    assert quality.jerkiness([0, 1, 2, 3], [0, 5, 5, 5], 10) == 0
    # Picture 0 for 0.3 s, then 6 of motion; picture 1 for 0.1 s, then 2 of motion.
    motion = [0, 0, 0, 6, 2]
    found = quality.jerkiness([0, 0, 0, 1, 2], motion, 10)
    assert found == pytest.approx((0.2 * 6) / (0.3 * 6 + 0.1 * 2))
    assert quality.jerkiness([0, 0, 0], [0, 0, 0], 10) == 0


def test_motion_by_hand() -> None:
    luma = np.array([[[0, 0], [0, 0]], [[3, 0], [0, 4]], [[3, 0], [0, 4]]], dtype=np.uint8)
    assert quality.motion_of(luma) == [0, 2.5, 0]


def test_screen_by_time() -> None:
    # Frames 0, 1, 4 of 6 were decoded.
    screen = align.by_time([0, 9000, 36000], 6, 10)
    assert screen.shown == [0, 1, 1, 1, 2, 2]
    assert screen.frozen == [False, False, True, True, False, True]
    assert align.by_time([18000], 4, 10).shown == [None, None, 0, 0]
    assert align.by_time([18000], 4, 10).frozen == [True, True, False, True]


def test_screen_with_a_player_that_does_not_wait() -> None:
    times = [0, 9000, 18000, 27000]
    arrivals = {0: 1_000_000_000, 9000: 1_100_000_000, 18000: 1_480_000_000, 27000: 1_390_000_000}
    in_time = align.by_time(times, 5, 10, arrivals, 280_000_000)
    assert (in_time.shown, in_time.late) == ([0, 1, 2, 3, 3], 0)
    # At 100 ms frame 2 is 180 ms late, and comes behind frame 3.
    late = align.by_time(times, 5, 10, arrivals, 100_000_000)
    assert (late.shown, late.late) == ([0, 1, 1, 3, 3], 1)


@pytest.mark.parametrize("missing", [[], [0], [3, 4, 5], [1, 7, 11], [11]])
def test_screen_by_content(missing: list[int]) -> None:
    draw = np.random.default_rng(1)
    reference = draw.normal(100, 30, (12, 16))
    left = [number for number in range(12) if number not in missing]
    received = reference[left] + draw.normal(0, 3, (len(left), 16))
    shown: list[int | None] = []
    for frame in range(12):
        before = [place for place, number in enumerate(left) if number <= frame]
        shown.append(before[-1] if before else None)
    assert align.by_content(reference, received).shown == shown
    # Pictures that nobody sent, too.
    extra = np.insert(received, 2, draw.normal(100, 30, (len(missing) + 1, 16)), axis=0)
    found = align.by_content(reference, extra)
    if not missing:
        assert [one for one in found.shown if one != 2] == [0, 1, *range(3, 13)]
    assert align.by_content(reference, np.zeros((0, 16))).shown == [None] * 12


# Clips.


@needs_ffmpeg
@pytest.mark.parametrize("codec", sorted(set(CODECS) - {"h264"}))
def test_an_undamaged_video_is_identical(
    codec: str, clips: dict[str, Path], tmp_path: Path
) -> None:
    whole = received_without(clips[codec], set(), tmp_path)
    _, (report,), _ = run(
        clips[codec], [whole], out=None, fps=None, playout_ns=None, file_format="png", clip=False
    )
    assert (report["psnr_y_db"], report["ssim_y"]) == (None, 1)
    assert report["frames_identical"] == report["frames_decoded"] == 20
    assert report["freezes"] == {"number": 0, "longest_seconds": 0, "total_seconds": 0}
    assert report["jerkiness"] == 0
    assert report["vmaf"] is None or report["vmaf"] > 90


@needs_ffmpeg
@pytest.mark.parametrize("aligned_by", ["RTP time", "content"])
def test_a_missing_frame_is_concealed_by_the_last(
    aligned_by: str, clips: dict[str, Path], tmp_path: Path
) -> None:
    """Frame 9 is missing, behind which everything is new."""
    lacking = received_without(clips["h264"], {9}, tmp_path)
    if aligned_by == "content":
        about.beside(lacking).unlink()
    with_folder = tmp_path / "pictures"
    with_folder.mkdir()
    reference, (found,) = compare.compare(
        clips["h264"], [lacking], with_folder, fps=None, playout_ns=None
    )
    assert found.report["aligned_by"] == aligned_by
    assert found.screen.frozen == [n == 9 for n in range(20)]
    size = 176 * 144
    planes = np.fromfile(reference.pictures.path, dtype=np.uint8).reshape(20, size * 3 // 2)
    luma = planes[:, :size].astype(np.float64)
    expected = 10 * math.log10(255**2 / ((luma[9] - luma[8]) ** 2).mean())
    assert found.psnr_db[9] == pytest.approx(expected, abs=1e-3)
    assert [n for n, value in enumerate(found.psnr_db) if value < math.inf] == [9]
    assert found.report["freezes"]["total_seconds"] == pytest.approx(0.1)
    assert 0 < found.report["jerkiness"] < 1
    assert result.worst([found], 1, 10) == [9]


@needs_ffmpeg
def test_damaged_bytes_are_decoded_and_seen(clips: dict[str, Path], tmp_path: Path) -> None:
    codec = "h263p"
    file = received_without(clips[codec], set(), tmp_path)
    content = bytearray(file.read_bytes())
    frames = about.frames(about.read(file), file, len(content))
    assert frames is not None
    for frame in frames[3:6]:
        middle = frame.offset_bytes + frame.length_bytes * 2 // 3
        content[middle] ^= 0x55
        content[middle + 1] ^= 0x55
    file.write_bytes(content)
    _, (report,), _ = run(
        clips[codec], [file], out=None, fps=None, playout_ns=None, file_format="png", clip=False
    )
    assert 5 < report["psnr_y_db"] < 60
    assert report["frames_decoded"] >= 15
    assert 10 <= report["frames_identical"] < 20


@needs_ffmpeg
def test_what_nobody_can_decode_is_grey(clips: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "noise.h264"
    file.write_bytes(np.random.default_rng(2).bytes(3000))
    text, (report,), _ = run(
        clips["h264"], [file], out=None, fps=None, playout_ns=None, file_format="png", clip=False
    )
    assert (report["frames_decoded"], report["frames_frozen"]) == (0, 20)
    assert report["psnr_y_db"] < 20
    assert "nothing could be decoded: " in text


@needs_ffmpeg
def test_files_of_a_comparison(clips: dict[str, Path], tmp_path: Path) -> None:
    files = [received_without(clips["h264"], lost, tmp_path) for lost in ({5}, {5, 6, 14})]
    out = tmp_path / "out"
    text, reports, written = run(
        clips["h264"], files, out=out, fps=None, playout_ns=10**9, file_format="svg", clip=True
    )
    names = ["frames-1.csv", "frames-2.csv", "quality.svg", "worst-frames.svg", "clip.mp4"]
    assert [path.name for path in written] == names
    assert all(path.stat().st_size > 500 for path in written)
    rows = (out / "frames-2.csv").read_text().splitlines()
    assert rows[0].startswith("frame,time_s,psnr_y_db,ssim_y,vmaf,frozen,damaged_packets")
    first = rows[1].split(",")
    assert [*first[:4], *first[5:]] == ["0", "0", "inf", "1.000000", "0", "0"]
    assert [row.split(",")[5] for row in rows[1:]] == [str(int(n in {5, 6, 14})) for n in range(20)]
    assert f"{files[1]} against {clips['h264']}" in text
    assert "frames aligned by RTP time; a missing frame shows the last picture" in text
    assert reports[1]["frames_late"] == 0
    found = ffmpeg.probe(out / "clip.mp4")
    # Three pictures beside each other, each twice as large.
    assert (found["width"], found["height"]) == (3 * 2 * 176, 2 * 144)
    drawing = (out / "quality.svg").read_text()
    assert "PSNR of brightness (dB)" in drawing
    assert files[0].name in drawing
    json.dumps(reports, allow_nan=False)


def damaged_notes() -> list[Any]:
    frame = dict.fromkeys(about.Frame._fields, 0)
    return [
        b"{",
        b"[]",
        b'{"frames_per_second": "x"}',
        b'{"frames_per_second": -1}',
        json.dumps({"frames": [frame | {"length_bytes": 10**9}]}).encode(),
        json.dumps({"frames": [frame | {"offset_bytes": -1}]}).encode(),
        json.dumps({"frames": [1]}).encode(),
    ]


@pytest.mark.parametrize("content", damaged_notes())
def test_damaged_notes_are_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.h264"
    about.beside(file).write_bytes(content)
    with pytest.raises(VideoError, match=r"x\.h264\.json (is damaged|does not fit)"):
        read_all(file)


def read_all(file: Path) -> None:
    notes = about.read(file)
    about.frames_per_second(notes, file)
    about.frames(notes, file, 100)
