# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The whole of ``airpath video compare``: results, and the files that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.files import make_folder
from airpath.video import pictures
from airpath.video.compare import compare
from airpath.video.errors import OptionError
from airpath.video.result import summary, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def run(
    reference_file: Path,
    received: Sequence[Path],
    *,
    out: Path | None,
    fps: float | None,
    playout_ns: int | None,
    file_format: str,
    clip: bool,
) -> tuple[str, list[dict[str, Any]], list[Path]]:
    """Compare videos; return the text, the reports, and the files that were written.

    Args:
        reference_file: the video that was sent.
        received: received bitstreams.
        out: folder for tables, pictures and clip; None for none.
        fps: the frame rate, where the user says it.
        playout_ns: delay of a player after the first frame; None for one that waits.
        file_format: of pictures.
        clip: whether to write the clip.

    Raises:
        VideoError: a file is no video, or ffmpeg fails.
        OSError: a file cannot be read or written.

    """
    if out is not None:
        if len(received) > pictures.MOST_VIDEOS:
            message = (
                f"{len(received)} videos are too many for a picture: {pictures.MOST_VIDEOS} at "
                f"most; leave --out out, or name fewer"
            )
            raise OptionError(message)
        make_folder(out)
    with interrupt.temporary_folder("airpath-") as folder:
        reference, results = compare(
            reference_file, received, folder, fps=fps, playout_ns=playout_ns
        )
        files = []
        if out is not None:
            for number, result in enumerate(results):
                suffix = f"-{number + 1}" if len(results) > 1 else ""
                files.append(out / f"frames{suffix}.csv")
                write_table(result, files[-1])
            files += pictures.write(reference, results, out, file_format, clip=clip)
        return summary(reference_file, results), [one.report for one in results], files
