# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Video over links that damage packets: UDP loses them, UDP-Lite hands them on."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.video.comparison import run
from airpath.video.transport import kernel_has_udplite
from live.harness import Airpath, Way, users
from videos import needs_ffmpeg

if TYPE_CHECKING:
    from collections.abc import Sequence

START = "import sys; from airpath.cli import main; sys.exit(main())"
ERRORS = (
    'radio.uplink.errors={ type = "pattern", burst = 1, every = 5, per = "packet", '
    'effect = "corrupt", headers = "spared", flips = 2 }'
)
"""Damages packets 0, 5, 10, … of the uplink behind their transport headers."""


def video(*words: object) -> list[str]:
    return [sys.executable, "-c", START, "video", *map(str, words)]


def transfer(
    airpath: Airpath, way: Way, clip: Path, name: str, options: Sequence[str]
) -> dict[str, Any]:
    """Send a clip over a link that damages; return the receiver's report."""
    out, log = airpath.path(f"{name}.h264"), airpath.path(f"{name}.csv")
    server = video("receive", "--out", out, "--sent", log, "--silence", "5 s", *options)
    client = video("send", clip, "--packet-bytes", 200, "--fps", 50, "--log", log, *options)
    link = ("--rate", "4 Mbit/s", "--delay", "5 ms", "--seed", 3, "--set", ERRORS)
    words = (*link, "--server-grace", "10 s", "--server-timeout", "60 s")
    result = airpath.exec(way, *words, "--server", shlex.join(server), "--", *client).check()
    # The receiver reads whatever its sockets get: nothing is lost there.
    assert "lost in sockets" not in result.err
    report = json.loads(Path(f"{out}.json").read_text())
    assert isinstance(report, dict)
    return {**report, "log": len(log.read_text().splitlines()) - 1, "out": out}


@needs_ffmpeg
@pytest.mark.skipif(os.geteuid() != 0, reason="commands of an ordinary user may not read the clip")
def test_udp_lite_delivers_what_udp_loses(airpath: Airpath, clips: dict[str, Path]) -> None:
    way, clip = Way(users()[0], "packet"), clips["h264"]
    udp = transfer(airpath, way, clip, "udp", ["--transport", "udp"])
    sent, hit = udp["packets_sent"], -(-udp["packets_sent"] // 5)
    assert udp["log"] == sent > 30
    assert (udp["packets_received"], udp["packets_lost"]) == (sent - hit, hit)
    assert udp["packets_damaged"] == 0
    # The goodbyes are packets, too.
    assert hit <= udp["packets_refused"] <= hit + 1
    ways = ["raw", "kernel"] if kernel_has_udplite() else ["raw"]
    reports = []
    for each in ways:
        options = ["--transport", "udp-lite", "--udp-lite-sockets", each]
        lite = transfer(airpath, way, clip, each, options)
        assert each in lite["transport"]
        assert lite["packets_sent"] == sent
        assert lite["packets_lost"] + lite["packets_damaged"] == hit
        assert lite["packets_refused"] >= lite["packets_lost"]
        # Two bits in 200 bytes: most lie behind the 14 bytes of RTP and its payload format.
        assert lite["packets_damaged"] > 0.6 * hit
        reports.append(lite)
    if len(reports) == 2:
        raw, kernel = reports
        assert raw["out"].read_bytes() == kernel["out"].read_bytes()
        assert raw["packets_damaged"] == kernel["packets_damaged"]
    assert 5e6 < udp["delay_ns"]["median"] < 5e9
    files = [udp["out"], reports[0]["out"]]
    _, (of_udp, of_lite), _ = run(
        clip, files, out=None, fps=50, playout_ns=None, file_format="png", clip=False
    )
    assert of_lite["frames_decoded"] >= of_udp["frames_decoded"]
    assert of_lite["psnr_y_db"] is not None
    assert 5 < of_lite["psnr_y_db"] < 60
