# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""VMAF, and the choice of the ffmpeg that measures it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from airpath.video import ffmpeg, quality
from airpath.video.comparison import run
from airpath.video.errors import OptionError, VideoError
from videos import make_clip, needs_ffmpeg, received_without

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WIDTH, HEIGHT, COUNT = 176, 144, 6


@functools.cache
def able_program() -> str | None:
    """Return an ffmpeg with libvmaf: of the variable, of the PATH, or of imageio-ffmpeg."""
    candidates = [os.environ.get(ffmpeg.VARIABLE), shutil.which("ffmpeg")]
    if importlib.util.find_spec("imageio_ffmpeg"):
        candidates.append(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    for candidate in candidates:
        if candidate and shutil.which(candidate):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(ffmpeg.VARIABLE, candidate)
                if quality.has_vmaf():
                    return candidate
    return None


def measured(noise: float, folder: Path) -> list[float]:
    """Return the VMAF of moving waves that are seen with noise."""
    draw = np.random.default_rng(5)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    colours = np.full(WIDTH * HEIGHT // 2, 128)
    sent: list[NDArray[np.float64]] = []
    seen: list[NDArray[np.float64]] = []
    for number in range(COUNT):
        luma = 120 + 60 * np.sin((columns + 3 * number) / 9) * np.cos(rows / 7)
        for planes, added in ((sent, 0), (seen, draw.normal(0, noise, luma.shape))):
            planes.append(np.concatenate([(luma + added).clip(0, 255).ravel(), colours]))
    for name, planes in (("sent", sent), ("seen", seen)):
        (folder / name).write_bytes(np.array(planes).astype(np.uint8).tobytes())
    places = (folder / "sent", folder / "seen")
    found = quality.measure(*places, WIDTH, HEIGHT, folder, vmaf=True)
    assert len(found) == COUNT
    scores = [frame.vmaf for frame in found if frame.vmaf is not None]
    assert quality.overall(found)["vmaf"] == pytest.approx(sum(scores) / COUNT)
    return scores


def test_vmaf_falls_with_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = able_program()
    if program is None:
        pytest.skip(f"no ffmpeg with libvmaf is here; {ffmpeg.VARIABLE} names one")
    monkeypatch.setenv(ffmpeg.VARIABLE, program)
    equal, some, much = (measured(noise, tmp_path) for noise in (0, 20, 40))
    assert len(equal) == len(some) == len(much) == COUNT
    # The model says some 97 of equal pictures without motion before them, and 100 at most.
    assert min(equal) > 95
    assert all(a > b > c for a, b, c in zip(equal, some, much, strict=True))
    assert max(much) < 80


@needs_ffmpeg
def test_such_a_program_does_the_whole_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = able_program()
    if program is None:
        pytest.skip(f"no ffmpeg with libvmaf is here; {ffmpeg.VARIABLE} names one")
    monkeypatch.setenv(ffmpeg.VARIABLE, program)
    clip = tmp_path / "clip.h263"
    make_clip(clip, "h263p")
    files = [received_without(clip, lost, tmp_path) for lost in (set[int](), {4, 5, 6})]
    _, reports, _ = run(
        clip, files, out=tmp_path, fps=None, playout_ns=None, file_format="png", clip=True
    )
    assert [one["frames_decoded"] for one in reports] == [20, 17]
    assert reports[0]["vmaf"] > 95
    assert reports[0]["vmaf"] > reports[1]["vmaf"]


@needs_ffmpeg
def test_scores_reach_text_table_and_picture(clips: dict[str, Path], tmp_path: Path) -> None:
    """A program stands in for libvmaf, which writes known scores in its form."""
    program = tmp_path / "ffmpeg-with-vmaf"
    real = shutil.which("ffmpeg")
    program.write_text(f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
if "-filters" in words:
    sys.exit(print(" .. libvmaf           VV->V      Calculate the VMAF"))
if any("libvmaf" in word for word in words):
    frames = [{{"metrics": {{"vmaf": 90.0 + n / 4}}}} for n in range(20)]
    with open("vmaf.log", "w") as log:
        json.dump({{"frames": frames}}, log)
words = [word.replace("libvmaf=log_path=vmaf.log:log_fmt=json", "psnr") for word in words]
os.execv({real!r}, [{real!r}, *words])
""")
    program.chmod(0o755)
    file = received_without(clips["h264"], {5}, tmp_path)
    out = tmp_path / "out"
    with ffmpeg.chosen(program):
        text, (report,), _ = run(
            clips["h264"], [file], out=out, fps=None, playout_ns=None, file_format="svg", clip=False
        )
    assert report["vmaf"] == pytest.approx(90 + 19 / 8)
    assert "VMAF 92.4" in text
    rows = (out / "frames.csv").read_text().splitlines()
    assert [row.split(",")[4] for row in rows[1:]] == [f"{90 + n / 4:.4f}" for n in range(20)]
    assert "VMAF 92.4" in (out / "quality.svg").read_text()
    assert not quality.has_vmaf() or able_program(), "the choice ends with the block"


def test_a_chosen_ffmpeg_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for path in (here / "ffmpeg", here / "ffprobe", there / "ffmpeg-7"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh")
        path.chmod(0o755)
    monkeypatch.delenv(ffmpeg.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.chdir(there)
    assert ffmpeg.find() == str(here / "ffmpeg")
    monkeypatch.setenv(ffmpeg.VARIABLE, "ffmpeg-7")
    # A path that holds in every folder, and the ffprobe of the PATH, as none is beside it.
    assert ffmpeg.find() == str(there / "ffmpeg-7")
    assert ffmpeg.find("ffprobe") == str(here / "ffprobe")
    with ffmpeg.chosen(here / "ffmpeg"):
        assert ffmpeg.find() == str(here / "ffmpeg")
    monkeypatch.setenv(ffmpeg.VARIABLE, "nothing")
    with pytest.raises(VideoError, match=r"AIRPATH_FFMPEG nothing: there is no such program"):
        ffmpeg.find("ffprobe")
    with ffmpeg.chosen(there), pytest.raises(OptionError, match=r"--ffmpeg .*/there: there is no"):
        ffmpeg.find()
