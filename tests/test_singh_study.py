# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The studies of Singh 2000 by real programs, in a small form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import figure12
import pings
import video_bearers
from videos import needs_ffmpeg

if TYPE_CHECKING:
    from pathlib import Path


def test_figures_of_ping_are_read() -> None:
    text = "4 packets transmitted, 3 received, 25% packet loss\nrtt min/avg/max/mdev = 1.5/2/3/0 ms"
    assert pings.read(text) == pings.Pings(2, 1.5, 3, 0.25)
    with pytest.raises(ValueError, match="no figures"):
        pings.read("ping: unknown host")


def test_a_table_has_a_row_for_each_cell() -> None:
    def report(transport: str, lost: int) -> dict[str, Any]:
        about = {"clock": "warp", "network": "rlp-good", "transport": transport}
        times = {"delay_ns": {"mean": 5e8}, "jitter_ns": {"mean": 2e6}, "throughput_bps": 5000}
        return {**about, **times, "packets_lost": lost, "packets_sent": 100}

    lines = video_bearers.table([report("udp", 1), report("udp", 1), report("udp-lite", 0)])
    row = "| warp | rlp-good | udp | 2 | 0.500 ± 0.000 | 2.000 ± 0.000 | 1.000 ± 0.000 | "
    assert lines[2] == row + "5.000 ± 0.000 |"
    assert len(lines) == 4


@needs_ffmpeg
def test_udp_lite_drops_less_of_a_video(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure12.main(["--seeds", "2", "--frames", "10", "--out", str(tmp_path)])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    dropped = [float(cell.split(" ±")[0]) for cell in rows[2][1:3]]
    assert dropped[0] >= dropped[1]
    assert {file.name for file in tmp_path.iterdir()} == {
        "figure12-quality.png",
        "worst-frames.png",
    }
