# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Test cases of RFC 8867: their files are right, and media are seen by the analysis."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from airpath.analysis import find, frame
from airpath.analysis.traffic import Traffic
from airpath.engine import find_engine
from airpath.experiment.load import load
from airpath.experiment.plan import make_plan
from airpath.run import load_run
from experiments import airpath

EXAMPLES = Path(__file__).parent.parent / "examples" / "rfc8867"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_the_experiments_are_right(file: Path) -> None:
    planned = make_plan(load(file), [])
    assert all(one.cell.clock == "virtual" for one in planned.cells)
    assert file.name in (EXAMPLES / "README.md").read_text()


def test_a_pause_is_filled_by_others_and_frames_are_metrics(tmp_path: Path) -> None:
    text = (EXAMPLES / "5.8-pause-resume.toml").read_text()
    (tmp_path / "pause.toml").write_text(text.replace("repetitions = 10", "repetitions = 3"))
    done = airpath("run", tmp_path / "pause.toml", "--out", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    table = frame(
        find([tmp_path / "results"]),
        ["program_frames_on_time_ratio", "program_frames_sent", "jain_fairness_overlap"],
    )
    on_time = table.filter(metric="program_frames_on_time_ratio")
    assert set(on_time["flow"]) == {"first", "second", "third"}
    assert all(ratio >= 0.99 for ratio in on_time["value"])
    sent = table.filter(metric="program_frames_sent")
    # 30 frames a second for 120 s with a pause of 20 s, 100 s and 80 s.
    assert set(sent.filter(flow="first")["value"]) == {3000.0}
    assert set(sent.filter(flow="second")["value"]) == {3000.0}
    assert set(sent.filter(flow="third")["value"]) == {2400.0}
    assert all(index > 0.95 for index in table.filter(metric="jain_fairness_overlap")["value"])


def test_flows_bear_the_names_of_their_workloads(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(str(find_engine()), "sim", "--quiet", "--seed", "1", "--rate", "20 Mbit/s"),
            *("--out", str(tmp_path / "run")),
            *("--workload", "media bitrate=500kbit/s duration='5 s' name=film"),
            *("--workload", "cbr rate=500kbit/s size=500 duration='5 s' name=voice"),
            *("--workload", "cbr rate=200kbit/s size=500 duration='5 s'"),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    traffic = Traffic(load_run(tmp_path / "run"))
    assert sorted(traffic.flows["label"]) == ["cbr-3", "film", "voice"]
    table = frame(find([tmp_path / "run"]), ["goodput_overlap", "program_loss_ratio"])
    shared = dict(table.filter(metric="goodput_overlap").select("flow", "value").iter_rows())
    # All three share the overlap: payload of voice is 472 of 500 bytes.
    assert shared["voice"] == pytest.approx(500e3 * 472 / 500, rel=0.02)
    lost = dict(table.filter(metric="program_loss_ratio").select("flow", "value").iter_rows())
    assert lost == {"film": 0.0, "voice": 0.0, "cbr-3": 0.0}


def test_a_workload_of_an_unknown_user_is_told_before_the_run(tmp_path: Path) -> None:
    text = (EXAMPLES / "5.5-round-trip-fairness.toml").read_text()
    (tmp_path / "wrong.toml").write_text(text.replace("user=delay-25", "user=delay-26"))
    done = airpath("check", tmp_path / "wrong.toml")
    assert done.returncode != 0
    assert "there is no user `delay-26`; did you mean `delay-25`?" in done.stderr
