# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Templates of experiments, each really run over a link: its figures beside the link's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from airpath.experiment.model import Workload
from airpath.experiment.programs import missing_programs, programs, unfit
from airpath.experiment.templates.ends.interactive import pauses
from airpath.experiment.templates.ends.site import make

if TYPE_CHECKING:
    from pathlib import Path

START = "import sys; from airpath.cli import main; sys.exit(main())"
PATIENCE_S = 120

LINK = """\
name = "one"
reruns = 0
log = "counters"
[networks.link]
link = { rate = "2 Mbit/s", delay = "20 ms" }
[networks.lossy]
link = { rate = "2 Mbit/s", delay = "20 ms", loss = "10%" }
[networks.narrow]
link = { rate = "2 Mbit/s", delay = "20 ms", queue = "10 packets" }
[networks.slow]
link = { rate = "150 kbit/s", delay = "20 ms", queue = "1 MB" }
"""


def run(folder: Path, template: str, keys: str, network: str = "link") -> dict[str, float]:
    """Run a template called `x` once; return the metrics of its replication."""
    text = f"""\
{LINK}
[[workloads.work.programs]]
template = "{template}"
name = "x"
{keys}
[[sets]]
name = "set"
network = "{network}"
workload = "work"
repetitions = 1
"""
    (folder / "experiment.toml").write_text(text)
    words = ["run", str(folder / "experiment.toml"), "--out", str(folder / "out"), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", START, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads((of_run(folder) / "replication.json").read_text())
    metrics: dict[str, float] = record["metrics"]
    return {name.removesuffix("/x"): value for name, value in metrics.items()}


def of_run(folder: Path) -> Path:
    return folder / "out/runs/set/all/0001"


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if not shutil.which(program)]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


# iperf3.


@needs("iperf3")
@pytest.mark.parametrize("sender", ["client", "server"])
def test_iperf3_fills_the_link_from_either_end(tmp_path: Path, sender: str) -> None:
    keys = f'bytes = "300 kB"\nsender = "{sender}"\ncongestion_control = "reno"'
    metrics = run(tmp_path, "iperf3", keys)
    # 1448 of 1500 bytes are payload; the first round trips do not fill the link.
    assert 1.2e6 < metrics["program_goodput"] < 2e6 * 1448 / 1500 * 1.01
    assert metrics["program_retransmissions"] == 0
    way = "uplink" if sender == "client" else "downlink"
    # iperf3 ends once its socket has taken all; the last bytes may still be before the link then.
    assert metrics[f"counted_bytes_delivered/{way}"] > 0.7 * 300_000
    report = json.loads((of_run(tmp_path) / "programs/x.stdout").read_text())
    assert report["end"]["sender_tcp_congestion"] == "reno"


@needs("iperf3")
def test_iperf3_counts_retransmissions(tmp_path: Path) -> None:
    metrics = run(tmp_path, "iperf3", 'bytes = "150 kB"', "lossy")
    assert metrics["program_retransmissions"] > 0
    assert metrics["counted_packets_dropped/downlink"] > 0


@needs("iperf3")
def test_iperf3_sends_datagrams_at_a_rate(tmp_path: Path) -> None:
    # Its first datagram must not be lost: it is not repeated.
    keys = 'time = "2 s"\nudp_rate = "4 Mbit/s"\nlength = 1000'
    metrics = run(tmp_path, "iperf3", keys, "narrow")
    # Twice what the link carries, of 1048 bytes each with the headers.
    assert 0.35 < metrics["program_loss_ratio"] < 0.65
    assert 1.2e6 < metrics["program_goodput"] < 2e6
    assert metrics["counted_packets_dropped/downlink"] > 300
    assert metrics["program_jitter"] >= 0


@needs("iperf3")
def test_iperf3_that_reaches_nobody_fails() -> None:
    workload = Workload.model_validate({"programs": [{"template": "iperf3", "port": 1}]})
    client = programs(workload)[1].command
    words = [word.replace(" server ", " 127.0.0.1 ") for word in client]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "unable to connect" in done.stderr


# Checks before anything runs.


@pytest.mark.parametrize(("clock", "right"), [("live", True), ("warp", False)])
def test_iperf3_with_datagrams_is_refused_in_warp(clock: str, right: bool) -> None:
    template = {"template": "iperf3", "udp_rate": "1 Mbit/s"}
    said = unfit(Workload.model_validate({"programs": [template]}), clock)
    assert (not said) == right
    assert all('template = "send"' in line for line in said)


def test_a_program_within_a_template_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    workload = Workload.model_validate({"programs": [{"template": "ffmpeg"}]})
    said = "\n".join(missing_programs(workload, tmp_path))
    assert "needs `ffmpeg`, which is not there: install it (Debian: apt-get install" in said
    assert "template `ffmpeg` needs `ffprobe`" in said


# ping.


@needs("ping")
def test_ping_tells_the_round_trip(tmp_path: Path) -> None:
    metrics = run(tmp_path, "ping", 'count = 10\ninterval = "20 ms"')
    assert metrics["program_echo_requests"] == metrics["program_echo_replies"] == 10
    assert metrics["program_loss_ratio"] == 0
    # Twice 20 ms, and 104 bytes at 2 Mbit/s twice.
    assert (
        0.0405
        < metrics["program_echo_time_min"]
        <= metrics["program_echo_time_median"]
        <= metrics["program_echo_time_p99"]
    )
    assert metrics["program_echo_time_median"] < 0.060


@needs("ping")
def test_ping_counts_what_is_lost_and_does_not_fail(tmp_path: Path) -> None:
    metrics = run(tmp_path, "ping", 'count = 40\ninterval = "10 ms"', "lossy")
    assert 0 < metrics["program_loss_ratio"] < 0.6
    assert metrics["program_echo_replies"] == round(40 * (1 - metrics["program_loss_ratio"]))
    assert (
        metrics["counted_packets_dropped/uplink"] + metrics["counted_packets_dropped/downlink"]
        >= 40 - metrics["program_echo_replies"]
    )


# ffmpeg.

VIDEO = 'time = "2 s"\n'


@needs("ffmpeg", "ffprobe")
@pytest.mark.parametrize("transport", ["udp", "rtp", "tcp"])
def test_ffmpeg_streams_every_picture_over_a_good_link(tmp_path: Path, transport: str) -> None:
    metrics = run(tmp_path, "ffmpeg", f'{VIDEO}transport = "{transport}"')
    assert metrics["program_frames_sent"] == metrics["program_frames_intact"] == 30
    assert (
        metrics["program_frames_damaged"]
        == metrics["program_frames_lost"]
        == metrics["program_frozen_time"]
        == 0
    )
    assert (of_run(tmp_path) / "programs/x/received.ts").stat().st_size == metrics["program_bytes"]
    assert metrics["counted_bytes_delivered/downlink"] > metrics["program_bytes"] > 30_000
    assert metrics.get("datagrams_lost", 0) == 0


@needs("ffmpeg", "ffprobe")
def test_ffmpeg_counts_lost_and_damaged_pictures(tmp_path: Path) -> None:
    metrics = run(tmp_path, "ffmpeg", f'{VIDEO}transport = "rtp"', "lossy")
    assert metrics["program_datagrams_lost"] > 0
    received = metrics["program_frames_intact"] + metrics["program_frames_damaged"]
    assert received == metrics["program_frames_received"]
    assert received + metrics["program_frames_lost"] == metrics["program_frames_sent"] == 30
    assert metrics["program_frames_intact"] < 30
    assert metrics["program_frozen_time"] == pytest.approx(metrics["program_frames_lost"] / 15)


@needs("ffmpeg", "ffprobe")
def test_ffmpeg_waits_for_pictures_where_the_link_is_too_slow(tmp_path: Path) -> None:
    keys = f'{VIDEO}transport = "tcp"\nbuffer = "100 ms"'
    metrics = run(tmp_path, "ffmpeg", keys, "slow")
    assert metrics["program_frames_intact"] == 30
    assert metrics["program_rebufferings"] > 0
    # Some 60 kB at 150 kbit/s take 3.2 s and more: a second longer than they play.
    assert 0.5 < metrics["program_rebuffering_time"] < 10


# curl.


@needs("curl")
def test_curl_times_pages_and_their_first_bytes(tmp_path: Path) -> None:
    keys = 'size = "10 kB"\npages = 3\nparts = 4\npart_size = "10 kB"\nconnections = 2'
    metrics = run(tmp_path, "curl", keys)
    assert metrics["program_pages"] == 3
    assert metrics["program_transfers"] == 3 * 5
    assert metrics["program_bytes"] == 3 * 50_000
    # A round trip for the connection and one for the first byte.
    assert 0.080 < metrics["program_first_byte_time"] < 0.5
    # Connection, page, connection, parts in two turns; and 50 kB at 2 Mbit/s take 200 ms.
    assert (
        5 * 0.040 + 0.2 < metrics["program_page_load_time"] <= metrics["program_page_load_time_max"]
    )
    assert metrics["elapsed"] >= 3 * metrics["program_page_load_time"]


@needs("curl")
def test_curl_fetches_a_file_at_the_rate_of_the_link(tmp_path: Path) -> None:
    metrics = run(tmp_path, "curl", 'size = "300 kB"')
    assert (metrics["program_transfers"], metrics["program_pages"], metrics["program_bytes"]) == (
        1,
        1,
        300_000,
    )
    assert 1e6 < metrics["program_goodput"] < 2e6
    assert metrics["program_page_load_time"] >= metrics["program_transfer_time"] > 1.2


# browser.


@needs("chromium", "nginx", "openssl")
def test_browser_tells_when_a_page_is_painted_and_loaded(tmp_path: Path) -> None:
    keys = 'http = "2"\nsize = "20 kB"\nobjects = 6\nobject_size = "10 kB"'
    metrics = run(tmp_path, "browser", keys)
    assert (metrics["program_pages"], metrics["program_transfers"]) == (1, 7)
    assert 80_000 < metrics["program_bytes"] < 85_000
    # Connection, TLS and request: three round trips.
    assert metrics["program_first_byte_time"] > 3 * 0.040
    # One more for the style sheet, and 30 kB at 2 Mbit/s.
    assert metrics["program_first_contentful_paint"] > 4 * 0.040 + 0.12
    first, largest = (metrics[f"program_{one}_contentful_paint"] for one in ("first", "largest"))
    assert first <= largest < 60
    # 80 kB at 2 Mbit/s.
    assert metrics["program_page_load_time"] > 4 * 0.040 + 0.32
    left = [path.name for path in (of_run(tmp_path) / "programs").rglob("*-*") if path.is_dir()]
    assert not left


@pytest.mark.parametrize("objects", [0, 1, 4])
def test_the_page_of_a_browser_has_the_lengths_asked_for(tmp_path: Path, objects: int) -> None:
    make(tmp_path / "pages", 5000, objects, 3000)
    lengths = {path.name: path.stat().st_size for path in (tmp_path / "pages").iterdir()}
    assert lengths.pop("index.html") == 5000
    assert len(lengths) == objects
    assert set(lengths.values()) <= {3000}


def test_the_browser_is_refused_in_warp() -> None:
    workload = Workload.model_validate({"programs": [{"template": "browser"}]})
    assert not unfit(workload, "live")
    assert "take the clock live" in "".join(unfit(workload, "warp"))


# interactive.


def test_interactive_tells_how_long_echoes_take(tmp_path: Path) -> None:
    keys = 'count = 20\nrequest = 36\nresponse = 36\nthink = "20 ms"\nthink_times = "exponential"'
    metrics = run(tmp_path, "interactive", keys)
    # Twice 20 ms, and 2 times 88 bytes or more at 2 Mbit/s.
    assert (
        0.0405
        < metrics["program_response_time_min"]
        <= metrics["program_response_time_median"]
        < 0.070
    )
    assert metrics["program_response_time_median"] <= metrics["program_response_time_p99"]
    assert metrics["elapsed"] > 20 * 0.040 + 0.1


def test_think_times_are_those_of_the_seed() -> None:
    drawn = pauses(1000, 0.2, "exponential", 7)
    assert drawn == pauses(1000, 0.2, "exponential", 7)
    assert drawn != pauses(1000, 0.2, "exponential", 8)
    assert sum(drawn) / 1000 == pytest.approx(0.2, rel=0.15)
    assert pauses(3, 0.2, "fixed", 7) == [0.2] * 3
