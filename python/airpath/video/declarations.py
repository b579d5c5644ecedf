# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands about video, declared as all of Python's commands are."""

from __future__ import annotations

from airpath.declaration import IMAGES, Argument, Declaration, Option
from airpath.video.choices import CODEC_NAMES, PACES, SCENES, SIZES, TRANSPORTS, WAYS

_JSON = Option("--json", (), "Print the report as JSON", key="as_json")
_TRANSPORT = Option(
    "--transport",
    ("TRANSPORT",),
    "Transport protocol; the same at both ends",
    default="udp",
    choices=TRANSPORTS,
)
_WAY = Option(
    "--udp-lite-sockets",
    ("WAY",),
    "UDP-Lite of the kernel, or by Airpath over raw IP sockets (needs root); auto takes the "
    "kernel's, if it has UDP-Lite",
    key="way",
    default="auto",
    choices=WAYS,
)
_FPS = Option(
    "--fps",
    ("N",),
    "Frames per second [default: from FILE.json, or from the file itself]",
    type="number",
)
_FFMPEG = Option(
    "--ffmpeg",
    ("FILE",),
    "The ffmpeg to use [default: the variable AIRPATH_FFMPEG, or the one on the PATH]",
    type="path",
)
_NEEDS_FFMPEG = "Needs ffmpeg (Debian: apt install ffmpeg)."

VIDEO = (
    Declaration(
        "video make",
        "Make a test video of moving shapes, a counter and noise, the same each time",
        "airpath.video.commands:make",
        (
            "airpath video make --codec h263p --frames 300 --rate '9600 bit/s' --out clip.h263",
            "airpath video make --size cif --fps 25 --rate '500 kbit/s' --out clip.h264",
        ),
        (),
        (
            Option(
                "--out",
                ("FILE",),
                "The video, a bare bitstream; notes about it go to FILE.json [default: clip with "
                "the suffix of the codec]",
                type="path",
            ),
            Option(
                "--codec",
                ("CODEC",),
                "Codec [default: the one of FILE's suffix, or h264]",
                choices=CODEC_NAMES,
            ),
            Option("--frames", ("N",), "Number of frames", type="whole", default=100),
            Option(
                "--size",
                ("SIZE",),
                f"Size of pictures: {', '.join(SIZES)}, or WIDTHxHEIGHT",
                default="qcif",
            ),
            Option("--fps", ("N",), "Frames per second", type="number", default=10),
            Option(
                "--rate",
                ("RATE",),
                "Rate that the encoder aims at; it cannot reach very low ones",
                default="64 kbit/s",
            ),
            Option("--scene", ("SCENE",), "Pictures", default="shapes", choices=SCENES),
            Option(
                "--key-frame-interval",
                ("N",),
                "Frames from one that needs no other to the next",
                type="whole",
                default=50,
            ),
            Option(
                "--slice-bytes",
                ("N",),
                "Begin a new slice (H.263: group of blocks) after so many bytes, at which a "
                "decoder finds its place again; h263p and h264 only; 0: one slice a frame",
                type="whole",
                default=0,
            ),
            _FFMPEG,
            _JSON,
        ),
        _NEEDS_FFMPEG,
    ),
    Declaration(
        "video send",
        "Send a video file as RTP packets over UDP or UDP-Lite, at the pace of its frames",
        "airpath.video.commands:send",
        (
            "airpath video send clip.h264 --to server:5004",
            "airpath video send clip.h263 --to server:5004 --transport udp-lite --coverage 22 "
            "--log sent.csv",
        ),
        (Argument("FILE", "The video: a bare bitstream, or any file that ffmpeg reads", "file"),),
        (
            Option("--to", ("HOST:PORT",), "The receiver", default="server:5004"),
            Option(
                "--ipv4",
                (),
                "Send over IPv4 [default: the first address of HOST in the system's order, which "
                "behind a link is that of IPv6]",
            ),
            _TRANSPORT,
            Option(
                "--coverage",
                ("BYTES",),
                "With udp-lite: bytes under the checksum, counted from the UDP-Lite header (8 "
                "bytes) on; 0 for the whole packet [default: the headers of UDP-Lite, RTP and the "
                "payload format, 21 to 23 bytes]",
                type="whole",
            ),
            Option(
                "--packet-bytes",
                ("N",),
                "Longest RTP packet, with its header of 12 bytes",
                type="whole",
                default=500,
            ),
            Option(
                "--pace",
                ("PACE",),
                "frame sends the packets of a frame together at its time, spread one after the "
                "other until the next frame, none everything at once",
                default="frame",
                choices=PACES,
            ),
            _FPS,
            Option(
                "--log",
                ("FILE",),
                "Log of packets as CSV: sequence number, RTP time, frame, length, time, CRC",
                type="path",
            ),
            _WAY,
            _FFMPEG,
            _JSON,
        ),
        f"{_NEEDS_FFMPEG} Exit status: 0 if everything was sent, 1 if not, 2 if an option is "
        "wrong, 130 after a signal.",
    ),
    Declaration(
        "video receive",
        "Receive a video, and write its bitstream with the damage that it has",
        "airpath.video.commands:receive",
        (
            "airpath video receive --out received.h264",
            "airpath video receive --listen :5004 --transport udp-lite --out received.h263 "
            "--sent sent.csv --json",
        ),
        (),
        (
            Option(
                "--listen",
                ("HOST:PORT",),
                "Address and port; without HOST every address behind a link, 127.0.0.1 elsewhere",
                default=":5004",
            ),
            Option(
                "--out",
                ("FILE",),
                "The bitstream as received; frames and figures go to FILE.json",
                type="path",
                default="received.video",
            ),
            _TRANSPORT,
            Option(
                "--coverage",
                ("BYTES",),
                "With udp-lite: drop packets of which fewer bytes are under the checksum",
                type="whole",
                default=0,
            ),
            Option(
                "--reorder-delay",
                ("TIME",),
                "Time for which a packet waits for one before it",
                default="200 ms",
            ),
            Option("--wait", ("TIME",), "End if no packet arrives for so long", default="60 s"),
            Option("--silence", ("TIME",), "End after so long without a packet", default="10 s"),
            Option("--duration", ("TIME",), "End so long after the first packet"),
            Option(
                "--sent",
                ("FILE",),
                "The sender's log, read at the end: gives delays and the number of damaged packets",
                type="path",
            ),
            _WAY,
            _JSON,
        ),
        "Ends when the sender says that it has ended (RTCP BYE), or after --silence. Exit status: "
        "0 if packets of a video arrived, 1 if not, 2 if an option is wrong.",
    ),
    Declaration(
        "video compare",
        "Measure the quality of received videos, frame by frame",
        "airpath.video.commands:compare",
        (
            "airpath video compare clip.h264 received.h264 --out quality",
            "airpath video compare clip.h263 udp.h263 udp-lite.h263 --playout-delay '1 s' --json",
        ),
        (
            Argument("REFERENCE", "The video that was sent", "reference"),
            Argument(
                "RECEIVED",
                "Bitstreams of airpath video receive, whose frames are aligned by RTP time, or "
                "damaged ones of any other source, aligned by content",
                "received",
                several=True,
            ),
        ),
        (
            Option(
                "--out",
                ("DIR",),
                "Write quality by frame as CSV, its picture, the worst frames side by side, and a "
                "short clip to this directory",
                type="path",
            ),
            Option(
                "--playout-delay",
                ("TIME",),
                "The player begins so long after the first frame; frames that come too late are "
                "missing [default: it waits for every frame]",
            ),
            _FPS,
            Option(
                "--format",
                ("FORMAT",),
                "Format of pictures",
                key="file_format",
                default="png",
                choices=IMAGES,
            ),
            Option("--no-clip", (), "Write no clip"),
            _FFMPEG,
            _JSON,
        ),
        f"{_NEEDS_FFMPEG} VMAF is measured if ffmpeg has libvmaf, which Debian's has not; "
        "--ffmpeg takes one that has it.",
        "plots",
    ),
)
"""The commands, in the order of their help."""
