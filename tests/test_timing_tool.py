# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""airpath timing: what is measured, what is written, what is refused, and what is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from airpath.engine import find_engine
from processes import children, has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SHORT = ("--requests", "5", "--distribution", "uniform:0ms..2ms")


@pytest.fixture(scope="module", autouse=True)
def sleep_study() -> Iterator[Path]:
    """Have the study built, and the engine find it.

    By a test of the study's own: so cargo builds what `cargo test --workspace` builds, and nothing
    anew after that.
    """
    command = ["cargo", "test", "--quiet", "--locked", "--workspace", "--test", "command"]
    built = subprocess.run(
        [*command, "--no-run", "--message-format", "json"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    artifacts = [json.loads(line) for line in built.stdout.splitlines()]
    (program,) = [
        artifact["executable"]
        for artifact in artifacts
        if artifact.get("executable") and artifact["target"]["name"] == "airpath-sleep-study"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRPATH_SLEEP_STUDY", program)
        yield Path(program)


def timing(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), "timing", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def report(*arguments: object) -> dict[str, Any]:
    result = timing(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_every_method_is_measured_or_says_why_not() -> None:
    found = report(*SHORT, "--methods", "all", "--techniques", "all", "--timer-slack", "1ns")
    listed = [json.loads(line) for line in timing("methods", "--json").stdout.splitlines()]
    assert {series["method"] for series in found["series"]} == {one["name"] for one in listed}
    assert len(found["series"]) == 4 * len(listed)
    at_least = {one["name"] for one in listed if one["at_least"]}
    for series in found["series"]:
        if series["measured"] is None:
            assert len(series["unavailable"]) > 10
            continue
        measured = series["measured"]
        assert measured["requests"] == 5
        assert measured["absolute_error_ms"].keys() == {"mean", "variance"}  # 5 are too few
        if series["technique"] == "plain" and series["method"] in at_least:
            assert measured["error_ns"]["min"] >= 0, series["method"]
    assert found["asked"]["distribution"] == "uniform:0ms..2ms"
    assert found["recommendation"]
    assert found["interrupted"] is False


def test_files_agree_with_the_report(tmp_path: Path) -> None:
    out = tmp_path / "timing"
    result = timing(*SHORT, "--methods", "select,busy", "--memory", "unlocked", "--out", out)
    assert result.returncode == 0, result.stderr
    assert {file.name for file in out.iterdir()} == {"timing.json", "samples.arrow"}
    written = json.loads((out / "timing.json").read_text())
    samples = pl.read_ipc(out / "samples.arrow")
    assert samples.columns == ["series", "request", "requested_ns", "actual_ns"]
    requests = [list(part["requested_ns"]) for _, part in samples.group_by("series")]
    assert all(part == requests[0] for part in requests), "every series has the same requests"
    for index, series in enumerate(written["series"]):
        part = samples.filter(pl.col("series") == index)
        drift_ns = int(part["actual_ns"].sum()) - int(part["requested_ns"].sum())
        assert series["measured"]["drift_ns"] == drift_ns
        assert series["measured"]["requested_total_ns"] == part["requested_ns"].sum()
    again = timing(*SHORT, "--methods", "select", "--out", out)
    assert again.returncode == 1
    assert "is not empty" in again.stderr


def test_people_get_the_table_of_the_paper_and_advice() -> None:
    result = timing(*SHORT, "--methods", "select,rtc,busy,early_spin")
    assert result.returncode == 0, result.stderr
    for text in (
        "standard select()  1999",
        "14.50",
        "slack variable",
        "38.56",
        "this kernel ticks at",
        "On this machine\n- ",
        "- Keeps time best",
        "The live loop sleeps",
    ):
        assert text in result.stdout
    assert max(len(line) for line in result.stdout.split("On this machine")[0].splitlines()) < 250


def test_line_rates() -> None:
    found = report(*SHORT, "--quick", "--methods", "select", "--line-rates", "200kbit/s,1Mbit/s")
    rates = found["line_rates"]
    assert [rate["requested_bits_per_second"] for rate in rates] == [2e5, 1e6] * 2
    for rate in rates:
        assert rate["packet_bytes"] == 100
        if rate["technique"] == "plain":
            assert 0 < rate["actual_bits_per_second"] <= rate["requested_bits_per_second"]


@pytest.mark.alone
@pytest.mark.parametrize("load", ["cpu", "disk", "network"])
def test_loads_and_jobs(load: str) -> None:
    found = report(*SHORT, "--methods", "select,busy", "--load", load, "--jobs", "3")
    assert found["asked"]["load"] == load
    assert all(series["measured"] for series in found["series"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--methods", "selec"), "did you mean `select`?"),
        (("--techniques", "slak"), "did you mean `slack`?"),
        (("--distribution", "uniform:5ms"), "no `..`"),
        (("--load", "dsk"), "did you mean `disk`?"),
        (("--policy", "fif"), "did you mean `fifo`?"),
        (("--timer-slack", "2ns"), "--timer-slack must be default, 1ns or both"),
        (("--memory", "some"), "--memory must be unlocked, locked or both"),
        (("--line-rates", "1bit/s"), "not between 100 bit/s and 1 Gbit/s"),
        (("--margin", "5us", "--methods", "select"), "--margin needs early_spin"),
        (("methods", "--quick"), "unexpected argument"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], told: str) -> None:
    result = timing(*words)
    assert result.returncode == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_what_the_kernel_refuses_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give up the right to real-time scheduling for certain")
    out = tmp_path / "never"
    drop = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    engine = [str(find_engine()), "timing", *SHORT, "--policy", "fifo", "--out", str(out)]
    result = subprocess.run(
        [*drop, *engine], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 1
    assert "the kernel refuses SCHED_FIFO" in result.stderr
    assert "--policy other" in result.stderr
    assert not out.exists()


def test_wake_latency_is_held_or_its_refusal_says_what_to_do(tmp_path: Path) -> None:
    out = tmp_path / "held"
    words = (*SHORT, "--methods", "select", "--wake-latency", "hold", "--out", out)
    result = timing(*words)
    if result.returncode == 0:
        assert "policy other, wake latency held, seed 1" in result.stdout
        assert "holds the wake latency where it may, as here." in result.stdout
        assert json.loads((out / "timing.json").read_text())["asked"]["wake_latency"] == "hold"
    else:
        assert result.returncode == 1
        assert "/dev/cpu_dma_latency" in result.stderr
        assert "--wake-latency leave" in result.stderr
        assert not out.exists()
    assert report(*SHORT, "--methods", "select")["asked"]["wake_latency"] == "leave"


def wait_until_it_sleeps(pid: int) -> None:
    """Wait until the thread of the first series does."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            status = (thread / "status").read_text()
            if "Name:\tairpath-series" in status and "State:\tS" in status:
                return
        time.sleep(0.02)
    pytest.fail("the series does not begin")


def test_a_second_interrupt_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "never"
    words = ("--distribution", "constant:10s", "--methods", "select", "--requests", "2")
    process = subprocess.Popen(
        [str(find_engine()), "timing", *words, "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "about" in process.stderr.readline()
    assert "[1/" in process.stderr.readline()
    wait_until_it_sleeps(process.pid)
    process.send_signal(signal.SIGINT)
    assert "press Ctrl-C again to stop immediately" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not out.exists()


@pytest.mark.alone
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_what_ends_early_leaves_nothing(sent: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "early"
    words = ("--distribution", "constant:10ms", "--methods", "select", "--load", "cpu")
    process = subprocess.Popen(
        [str(find_engine()), "timing", *words, "--requests", "10000", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    # The announcement, and the beginning of the first series.
    assert "about" in process.stderr.readline()
    assert "[1/" in process.stderr.readline()
    loads = children(process.pid)
    assert loads
    time.sleep(1)
    process.send_signal(sent)
    output, _ = process.communicate(timeout=60)
    end = time.monotonic() + 30
    while not all(has_ended(pid) for pid in loads) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(has_ended(pid) for pid in loads)
    if sent == signal.SIGINT:
        assert process.returncode == 130
        written = json.loads((out / "timing.json").read_text())
        assert written["interrupted"] is True
        assert 2 <= written["series"][0]["measured"]["requests"] < 10_000
        assert "On this machine" in output


def test_without_the_study_the_engine_says_how_to_build_it(tmp_path: Path) -> None:
    engine = tmp_path / "airpath-engine"
    shutil.copy(find_engine(), engine)
    without = {name: value for name, value in os.environ.items() if name != "AIRPATH_SLEEP_STUDY"}
    for words in (("--quick",), (), ("methods", "--json")):
        result = subprocess.run(
            [str(engine), "timing", *words],
            capture_output=True, text=True, timeout=60, env=without, check=False,
        )  # fmt: skip
        assert (result.returncode, result.stdout) == (123, "")
        assert "cargo build --release -p airpath-sleep-study" in result.stderr
        assert len(result.stderr.splitlines()) == 1
    host = subprocess.run(
        [str(engine), "timing", "host"], capture_output=True, timeout=60, env=without, check=False
    )
    assert host.returncode == 0, "what the engine does itself needs no study"


def test_the_study_beside_the_engine_is_found(tmp_path: Path, sleep_study: Path) -> None:
    engine = tmp_path / "airpath-engine"
    shutil.copy(find_engine(), engine)
    shutil.copy(sleep_study, tmp_path / "airpath-sleep-study")
    without = {name: value for name, value in os.environ.items() if name != "AIRPATH_SLEEP_STUDY"}
    result = subprocess.run(
        [str(engine), "timing", "methods"],
        capture_output=True, text=True, timeout=60, env=without, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "early_spin" in result.stdout


def test_a_word_that_is_no_command_is_told_by_the_engine() -> None:
    result = timing("calibrat")
    assert result.returncode == 2
    assert "did you mean `calibrate`?" in result.stderr
    helped = timing("--help")
    assert helped.returncode == 0
    assert "cargo build --release -p airpath-sleep-study" in helped.stdout
    of_the_study = timing("methods", "--help")
    assert "List the sleep methods" in of_the_study.stdout
