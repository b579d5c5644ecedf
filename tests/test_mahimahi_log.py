# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""airpath log --mahimahi, read by rules of its own that are those of Mahimahi's graph scripts.

mm-throughput-graph and mm-delay-graph skip lines that begin with #, but for one line "# base
timestamp:", which must come before all events; an event is "time type bytes [delay]" in whole
numbers; times less delays are not negative; there are an event and a departure, and capacity and
duration are not 0.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from airpath.engine import find_engine

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Log:
    """Lines of a log, by type of event."""

    head: list[str] = field(default_factory=list)
    arrivals: list[tuple[int, int]] = field(default_factory=list)
    capacity: list[tuple[int, int]] = field(default_factory=list)
    departures: list[tuple[int, int, int]] = field(default_factory=list)
    drops: list[tuple[int, int, int]] = field(default_factory=list)


def read(text: str) -> Log:
    log = Log()
    base = None
    last = 0
    for line in text.splitlines():
        if match := re.match(r"^# base timestamp: (\d+)", line):
            assert base is None, "base timestamp multiply defined"
            base = int(match[1])
            continue
        if line.startswith("#"):
            log.head.append(line)
            continue
        time, kind, *numbers = line.split()
        assert base is not None, "logfile is missing base timestamp"
        assert time.isdigit()
        assert numbers
        assert all(number.isdigit() for number in numbers)
        at = int(time) - base
        assert at >= last, "events are in order"
        last = at
        values = [int(number) for number in numbers]
        match kind:
            case "+":
                (size,) = values
                log.arrivals.append((at, size))
            case "#":
                (size,) = values
                log.capacity.append((at, size))
            case "-":
                size, delay = values
                assert at - delay >= 0
                log.departures.append((at, size, delay))
            case "d":
                packets, size = values
                log.drops.append((at, packets, size))
            case _:
                raise AssertionError(line)
    assert log.departures, "Must have at least one departure event"
    times = [event[0] for event in [*log.arrivals, *log.capacity, *log.departures]]
    assert max(times) > min(times), "the scripts divide by the duration"
    assert sum(size for _, size in log.capacity) > 0, "and by the capacity"
    return log


def engine(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def run(folder: Path, *link: object, workload: str, duration: str = "1 s") -> None:
    options = ["--workload", workload, "--duration", duration, "--seed", "7", "--quiet"]
    result = engine("sim", *link, *options, "--out", folder)
    assert result.returncode == 0, result.stderr


def log_of(folder: Path, *options: object) -> Log:
    result = engine("log", folder, "--mahimahi", *options)
    assert result.returncode == 0, result.stderr
    return read(result.stdout)


UDP = "cbr rate='2 Mbit/s' size=1500 from=client"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "up.trace"
    file.write_text("10\n20\n20\n50\n")
    return file


def test_a_link_of_opportunities_is_logged_as_by_mm_link(tmp_path: Path, trace: Path) -> None:
    folder = tmp_path / "run"
    run(folder, "--rate", f"mahimahi:{trace}", "--queue", "3 packets", workload=UDP)
    log = log_of(folder, "--direction", "uplink")
    assert log.head[0].startswith("# mahimahi mm-link (Uplink) [")
    assert any(line.startswith("# command line: airpath cbr ") for line in log.head)
    assert "# queue: droptail [3 packets]" in log.head
    assert any(re.fullmatch(r"# init timestamp: \d+", line) for line in log.head)
    # Four opportunities in 50 ms, at these times of every round, used or not.
    assert {size for _, size in log.capacity} == {1500}
    last = log.capacity[-1][0]
    expected = [start + ms for start in range(0, last + 50, 50) for ms in (10, 20, 20, 50)]
    assert [at for at, _ in log.capacity] == [at for at in expected if at <= last]
    # Packets of 1500 bytes leave at opportunities only, never more than there are.
    granted, used = Counter(at for at, _ in log.capacity), Counter(at for at, *_ in log.departures)
    assert all(used[at] <= granted[at] for at in used)
    # Nothing is lost from sight.
    missing = len(log.arrivals) - len(log.departures) - sum(count for _, count, _ in log.drops)
    assert 0 <= missing <= 4
    assert log.drops
    assert {size for _, size in log.arrivals} == {1500}
    # First in, first out: delays are those of the packets that came in that order.
    dropped = Counter(at for at, *_ in log.drops)
    kept = [at for at, _ in log.arrivals if not dropped[at]]
    assert [at - delay for at, _, delay in log.departures][:10] == kept[:10]


def test_drops_may_be_left_out(tmp_path: Path, trace: Path) -> None:
    folder = tmp_path / "run"
    run(folder, "--rate", f"mahimahi:{trace}", "--queue", "3 packets", workload=UDP)
    whole = log_of(folder, "--direction", "uplink")
    without = log_of(folder, "--direction", "uplink", "--without-drops")
    assert not without.drops
    assert without.departures == whole.departures


def test_the_header_of_tun_is_counted_if_the_link_does(tmp_path: Path, trace: Path) -> None:
    folder = tmp_path / "run"
    rate = f'radio.uplink.rate={{ type = "mahimahi", file = "{trace}", accounting = "tun" }}'
    run(folder, "--set", rate, workload=UDP)
    log = log_of(folder, "--direction", "uplink")
    assert {size for _, size in log.capacity} == {1504}
    assert {size for _, size, _ in log.departures} == {1504}


def test_a_constant_rate_grants_a_packet_whenever_one_could_be_sent(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder, "--rate", "1 Mbit/s", workload=UDP)
    log = log_of(folder, "--direction", "uplink")
    assert [at for at, _ in log.capacity[:4]] == [12, 24, 36, 48]
    # Saturated: what leaves is what there is.
    rate = 8 * sum(size for _, size, _ in log.departures) / (log.departures[-1][0] / 1000)
    assert rate == pytest.approx(1e6, rel=0.03)


def test_links_without_a_limit_and_with_frames_are_logged(tmp_path: Path) -> None:
    run(tmp_path / "free", "--delay", "20 ms", workload=UDP)
    free = log_of(tmp_path / "free", "--direction", "uplink")
    assert len(free.capacity) == len(free.departures)
    # Propagation is behind mm-link.
    assert {delay for *_, delay in free.departures} == {0}
    run(
        tmp_path / "frames",
        "--profile",
        "umts-384",
        workload="cbr rate='100 kbit/s' size=500 from=client",
    )
    frames = log_of(tmp_path / "frames", "--direction", "uplink")
    assert len(frames.departures) <= len(frames.arrivals)
    assert {size for _, size, _ in frames.departures} == {500}


def test_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder, "--rate", "1 Mbit/s", workload=UDP)
    result = engine("log", folder, "--mahimahi")
    assert result.returncode == 2
    assert "--direction uplink" in result.stderr
    result = engine("log", folder, "--mahimahi", "--direction", "uplink", "--hop", "wire")
    assert result.returncode == 2
    assert "no hop `wire`" in result.stderr


def test_a_run_over_a_trace_is_replayed_from_anywhere(trace: Path, tmp_path: Path) -> None:
    command = [str(find_engine()), "sim", "--rate", f"mahimahi:{trace.name}", "--workload", UDP]
    options = ["--duration", "1 s", "--seed", "7", "--quiet", "--out", "run"]
    subprocess.run([*command, *options], cwd=trace.parent, check=True, timeout=60)
    result = engine("replay", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert log_of(tmp_path / "run", "--direction", "uplink").departures
