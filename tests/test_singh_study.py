# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The studies of Singh 2000 by real programs, in a small form."""

from __future__ import annotations

import json
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

import figure12
import pings
import video_bearers
from airpath.engine import find_engine
from videos import needs_ffmpeg

if TYPE_CHECKING:
    from pathlib import Path


def test_figures_of_ping_are_read() -> None:
    text = "4 packets transmitted, 3 received, 25% packet loss\nrtt min/avg/max/mdev = 1.5/2/3/0 ms"
    assert pings.read(text) == pings.Pings(2, 1.5, 3, 0.25, "unknown")
    assert pings.read(f"{text}\nverdict    suspect\n").verdict == "suspect"
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


def test_live_runs_stand_beside_those_by_warp_of_the_same_seed() -> None:
    def report(clock: str, seed: int, delay_ns: float, frames: dict[str, int]) -> dict[str, Any]:
        about = {"clock": clock, "network": "rlp-bad", "transport": "udp", "seed": seed}
        times = {"delay_ns": {"mean": delay_ns}, "jitter_ns": {"mean": 2e6}}
        counts: dict[str, Any] = {"throughput_bps": 5000, "packets_lost": 1, "packets_sent": 6}
        counts |= {"begins_ns": 3e9, "block_wait_ns": 5e6}
        return {**about, **times, **counts, "queue": "8 kB", "packets_of_frames": frames}

    warp = report("warp", 1, 5e8, {"0": 2, "1": 1, "2": 2})
    # A frame with a packet less, one that is missing, and one that only this run has.
    live = report("live", 1, 6e8, {"0": 1, "1": 1, "3": 1})
    other = [report("warp", 3, 5e8, {}), report("live", 3, 6e8, {})]
    lines = video_bearers.pairs([warp, live, report("live", 2, 5e8, {}), *other])
    about = "| rlp-bad, queue 8 kB | udp |"
    figures = "0.600, 0.500 | 2.000, 2.000 | 16.667, 16.667 | 5.000, 5.000 "
    figures += "| 3.000, 3.000 | 5.000, 5.000"
    assert lines[2] == f"{about} 1 | {figures} | 4 of 6 |"
    assert lines[3] == f"{about} 3 | {figures} | 0 of 6 |"
    none = "0.000 ± 0.000"
    assert lines[4:] == [f"{about} live less warp | 0.100 ± 0.000 |{f' {none} |' * 5} |"]
    assert video_bearers.pairs([warp]) == []


def test_rlp_loses_nothing_with_the_buffers_of_the_thesis() -> None:
    file = tomllib.loads((video_bearers.FOLDER / "rlp-buffers.toml").read_text())
    (video,) = file["workloads"]["video"]["virtual"]
    (small,) = file["workloads"]["packets-of-126-bytes"]["virtual"]

    def uplink(name: str, workload: str) -> Any:
        """Return what a run by these buffers told of the uplink."""
        network = file["networks"][name]
        command = [find_engine(), "sim", "--profile", network["profile"], "--seed", "1", "--json"]
        for key, value in network["set"].items():
            text = value if value.startswith("{") else json.dumps(value)
            command += ["--set", f"{key}={text}"]
        command += ["--workload", workload]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return json.loads(said.stdout)["uplink"]

    few, enough = "modem-4-queue-7", "modem-window-queue-8192-bytes"
    lossy, whole = uplink(few, video), uplink(enough, video)
    assert lossy["offered_packets"] == whole["offered_packets"] == whole["delivered_packets"]
    assert 0.9 < lossy["delivered_packets"] / lossy["offered_packets"] < 0.98
    # Four packets in a round trip are less than the video has; with a window of RLP there is room.
    rate = "delivered_bit_per_s"
    assert uplink(few, small)[rate] < whole[rate] < 0.8 * uplink(enough, small)[rate]


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
