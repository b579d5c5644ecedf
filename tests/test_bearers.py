# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Bearers of a user in a cell: simulated by the engine, logged, and read by analysis."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from statistics import median

import polars as pl
import pytest

import airpath
from airpath.engine import find_engine
from airpath.plots import queue
from airpath.plots.style import Span
from airpath.run import Run, load_run

CELL = Path(__file__).parent.parent / "examples" / "cell-bearers.toml"
CALL = "cbr user=alice from=server size=200 interval='20 ms' packets=100"
DOWNLOADS = ("tcp user=alice from=server", "tcp user=bob from=server")
ONE_BEARER = ("--set", "alice.radio.link.bearers=[{ name = 'all' }]")


def engine(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def simulate(out: Path, *words: str) -> Run:
    """Run the call beside both downloads for 3 s."""
    load = [word for workload in (CALL, *DOWNLOADS) for word in ("--workload", workload)]
    place: list[str | Path] = ["--scenario", CELL, "--out", out]
    done = engine("sim", *place, "--seed", "5", "--duration", "3 s", *words, *load)
    assert (out / "run.json").exists(), done.stderr
    (out.parent / f"{out.name}.txt").write_text(done.stdout + done.stderr)
    return load_run(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bearers")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """Return a run in which the call has a bearer of its own."""
    return simulate(folder / "two")


def delays_of_call(run: Run) -> list[float]:
    """Return the one-way delays of packets of 200 bytes, in milliseconds."""
    path = run.events.filter((pl.col("hop") == "path") & (pl.col("bits") == 1600))
    offered = path.filter(pl.col("kind") == "offered").select("pdu", offered_ns="time_ns")
    left = path.filter(pl.col("kind") == "delivered").join(offered, on="pdu")
    return left.select((pl.col("time_ns") - pl.col("offered_ns")) / 1e6).to_series().to_list()


def test_a_call_does_not_wait_behind_the_download_of_its_user(run: Run, folder: Path) -> None:
    with_bearer = delays_of_call(run)
    without = delays_of_call(simulate(folder / "one", *ONE_BEARER))
    assert len(with_bearer) > 90
    # The download fills the queue of 200 packets, and the call waits in it.
    assert median(with_bearer) < 30
    assert median(without) > 3 * median(with_bearer)


def test_events_name_their_bearer(run: Run) -> None:
    bearer, user, hop = (pl.col(name).cast(pl.String) for name in ("bearer", "user", "hop"))
    places = run.events.select(user, hop, bearer).unique().sort("user", "hop", "bearer").rows()
    assert places == [
        ("alice", "internet", ""),
        ("alice", "path", ""),
        ("alice", "radio", "rest"),
        ("alice", "radio", "voice"),
        ("bob", "internet", ""),
        ("bob", "path", ""),
        ("bob", "radio", ""),
    ]
    queued = run.events.filter((pl.col("kind") == "enqueued") & (bearer == "voice"))
    assert set(queued["bits"]) == {1600}


def test_files_and_summary_count_by_bearer(run: Run, folder: Path) -> None:
    users = run.manifest["users"]
    assert [user.get("bearers") for user in users] == [[["voice", "rest"], []], None]
    counted = {
        (row["bearer"], row["direction"]): row["kinds"]["enqueued"]["count"]
        for row in run.results["counters"]
        if row["hop"] == "radio" and row.get("bearer") and "enqueued" in row["kinds"]
    }
    assert counted["voice", "downlink"] == 100
    assert ("voice", "uplink") not in counted
    summary = (folder / "two.txt").read_text()
    (line,) = [line for line in summary.splitlines() if line.startswith("alice.radio.voice")]
    assert "downlink 100 packets queued, none dropped" in line


def test_the_log_shows_one_bearer(folder: Path, run: Run) -> None:
    shown = engine("log", run.directory, "--bearer", "voice", "--json")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {(row["user"], row["hop"], row["bearer"]) for row in rows} == {
        ("alice", "radio", "voice")
    }
    head = engine("log", run.directory, "--to", "10 ms").stdout.splitlines()[0]
    assert head.split()[:5] == ["time/s", "user", "hop", "bearer", "direction"]
    wrong = engine("log", run.directory, "--bearer", "vice")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "there is no bearer `vice`, did you mean `voice`?; there are voice, rest" in wrong.stderr


def test_a_replay_is_identical(run: Run) -> None:
    again = engine("replay", run.directory)
    assert (again.returncode, again.stdout[:9]) == (0, "identical"), again.stderr


def test_each_bearer_has_a_queue_in_metrics_and_pictures(run: Run) -> None:
    measured = airpath.frame(run, "queue_packets_max")
    down = measured.filter(pl.col("direction") == "downlink").select("hop", "value")
    longest = dict(down.iter_rows())
    assert {"alice.radio.voice", "alice.radio.rest", "bob.radio"} <= set(longest)
    assert longest["alice.radio.voice"] < 20 < longest["alice.radio.rest"]
    of_alice = run.of_user("alice")
    names = of_alice.events.filter(pl.col("stage") == "queue").select(of_alice.queue_name())
    assert set(names["hop"]) == {"radio.voice", "radio.rest", "internet"}
    pictures = queue.draw(of_alice, Span())
    legends = [axis.get_legend() for axis in pictures[0].figure.axes]
    headings = {legend.get_title().get_text() for legend in legends if legend is not None}
    # The call never waits in its queue, and a queue that was not used has no panel.
    shown = {heading.split(",")[0] for heading in headings}
    assert "radio.rest" in shown
    assert shown <= {"radio.voice", "radio.rest", "internet"}


def test_a_check_names_bearers_and_those_that_a_scheduler_does_not_know() -> None:
    checked = engine("check", CELL)
    assert "downlink of alice.radio.voice, alice.radio.rest, bob.radio" in checked.stdout
    scheduler = "media.cell.scheduler.weights={ 'alice.voices' = 4 }"
    wrong = engine("sim", "--scenario", CELL, "--set", scheduler, "--workload", "tcp bytes=1kB")
    assert wrong.returncode == 2
    assert "names `alice.voices`, which is not in the cell; did you mean `alice.voice`?" in (
        wrong.stderr
    )
