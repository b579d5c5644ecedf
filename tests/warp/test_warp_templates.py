# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Templates of experiments in virtual time: one after the other over one link, in one run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from warp.conftest import WARP_PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

START = "import sys; from airpath.cli import main; sys.exit(main())"

ONE_AFTER_THE_OTHER = """\
name = "templates"
clock = "warp"
log = "counters"
[networks.link]
link = { rate = "2 Mbit/s", delay = "20 ms" }
[workloads.all]
congestion_control = "reno"
time_limit = "5 min"
[[workloads.all.programs]]
template = "interactive"
name = "shell"
count = 10
request = 36
response = 36
think = "30 ms"
port = 5301
[[sets]]
name = "set"
network = "link"
workload = "all"
repetitions = 1
"""

OTHERS = {
    "ping": """\
template = "ping"
name = "ping"
start = "1 s"
count = 5
interval = "100 ms"
""",
    "curl": """\
template = "curl"
name = "pages"
start = "2 s"
size = "10 kB"
pages = 2
parts = 2
part_size = "10 kB"
""",
    "iperf3": """\
template = "iperf3"
name = "bulk"
start = "4 s"
bytes = "200 kB"
""",
    "ffmpeg": """\
template = "ffmpeg"
name = "video"
start = "7 s"
time = "1 s"
""",
}
"""By the program that must be there."""


@pytest.fixture(scope="module")
def metrics(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Return the figures of all templates whose programs are installed."""
    folder = tmp_path_factory.mktemp("templates")
    more = "".join(
        f"[[workloads.all.programs]]\n{text}" for name, text in OTHERS.items() if shutil.which(name)
    )
    text = ONE_AFTER_THE_OTHER.replace("[[sets]]", f"{more}[[sets]]")
    (folder / "experiment.toml").write_text(text)
    words = ["run", str(folder / "experiment.toml"), "--out", str(folder / "out"), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", START, *words],
        env={**os.environ, "AIRPATH_WARP_KERNEL": str(kernel)},
        capture_output=True,
        text=True,
        timeout=2 * WARP_PATIENCE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(
        (folder / "out/runs/set/all/0001/replication.json").read_text()
    )
    found: dict[str, float] = record["metrics"]
    return found


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


def test_interactive(metrics: dict[str, float]) -> None:
    # Twice 20 ms and twice 88 bytes at 2 Mbit/s, or 104 with IPv6 and time stamps.
    assert metrics["program_response_time_median/shell"] == pytest.approx(0.0408, abs=0.0005)
    assert metrics["program_elapsed/shell"] == pytest.approx(
        0.04 + 10 * 0.0408 + 9 * 0.03, abs=0.05
    )


@needs("ping")
def test_ping(metrics: dict[str, float]) -> None:
    assert metrics["program_echo_replies/ping"] == 5
    assert metrics["program_echo_time_median/ping"] == pytest.approx(0.0408, abs=0.0005)


@needs("curl")
def test_curl(metrics: dict[str, float]) -> None:
    assert (metrics["program_pages/pages"], metrics["program_transfers/pages"]) == (2, 6)
    assert metrics["program_first_byte_time/pages"] == pytest.approx(0.082, abs=0.003)
    assert 4 * 0.04 + 30_000 * 8 / 2e6 < metrics["program_page_load_time/pages"] < 0.6


@needs("iperf3")
def test_iperf3(metrics: dict[str, float]) -> None:
    assert 1.2e6 < metrics["program_goodput/bulk"] < 2e6 * 1448 / 1500 * 1.01
    assert metrics["program_retransmissions/bulk"] == 0


@needs("ffmpeg")
def test_ffmpeg(metrics: dict[str, float]) -> None:
    assert metrics["program_frames_sent/video"] == metrics["program_frames_intact/video"] == 15
    assert metrics["program_rebufferings/video"] == 0
