# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Words that the commands about video take for their options; nothing heavy is imported here."""

from __future__ import annotations

from airpath.video.codecs import CODECS

CODEC_NAMES = tuple(CODECS)

SIZES = {
    "sqcif": (128, 96),
    "qcif": (176, 144),
    "cif": (352, 288),
    "vga": (640, 480),
    "hd720": (1280, 720),
}
"""Width and height of pictures by name."""

SCENES = ("shapes", "testsrc2", "mandelbrot")
"""Sources of pictures: one of this project's, and two of ffmpeg's."""

TRANSPORTS = ("udp", "udp-lite")

WAYS = ("auto", "kernel", "raw")
"""Ways to UDP-Lite."""

PACES = ("frame", "spread", "none")
