# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Test cases of RFC 8867: their files are right, and media are seen by the analysis."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.patches import Rectangle, StepPatch

from airpath.analysis import find, frame
from airpath.analysis.fairness_metrics import arrivals, overlap, pauses
from airpath.analysis.traffic import Traffic
from airpath.engine import find_engine
from airpath.experiment.load import load
from airpath.experiment.plan import make_plan
from airpath.plots import fairness
from airpath.plots.style import Span
from airpath.run import load_run
from experiments import airpath

if TYPE_CHECKING:
    from airpath.run import Run

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
    assert all(index > 0.98 for index in table.filter(metric="jain_fairness_overlap")["value"])


def test_a_pause_is_no_time_in_which_all_send(tmp_path: Path) -> None:
    """Goodput while all send is counted without the pause; before it, one flow is missing."""
    _simulate(
        tmp_path / "run",
        "adaptive-media name=pausing duration='12 s' pause='4 s' resume='8 s'",
        "adaptive-media name=steady duration='10 s' start='2 s'",
    )
    traffic = Traffic(load_run(tmp_path / "run"))
    competing = arrivals(traffic)
    spans = overlap(competing, pauses(traffic))
    assert spans["direction"].to_list() == ["downlink"] * 2
    times = [time / 1e9 for row in spans.select("begin_ns", "end_ns").rows() for time in row]
    # A frame takes 40 ms to arrive; before the pause the last one began by 1/30 s earlier.
    assert times == pytest.approx([2.02, 4.0, 8.02, 12.0], abs=0.06)
    expected = {}
    for flow, label in traffic.flows.select("flow", "label").rows():
        of_flow = competing.filter(flow=flow, direction="downlink").select("time_ns", "bits").rows()
        inside = [
            bits
            for time, bits in of_flow
            if any(begin < time <= end for _, begin, end in spans.rows())
        ]
        length_s = sum(end - begin for _, begin, end in spans.rows()) / 1e9
        expected[label] = sum(inside) / length_s
    found = frame(find([tmp_path / "run"]), ["goodput_overlap", "jain_fairness_overlap"])
    goodputs = dict(found.filter(metric="goodput_overlap").select("flow", "value").rows())
    assert goodputs == pytest.approx(expected)
    first, second = expected.values()
    index = (first + second) ** 2 / (2 * (first**2 + second**2))
    assert found.filter(metric="jain_fairness_overlap")["value"].item() == pytest.approx(index)
    (picture,) = fairness.draw(load_run(tmp_path / "run"), Span())
    rates, shaded = picture.figure.get_axes()
    lines = [patch for patch in rates.patches if isinstance(patch, StepPatch)]
    of_pausing = next(line for line in lines if line.get_label() == "pausing")
    values, edges, _ = of_pausing.get_data()
    paused = (edges[:-1] > 4.2) & (edges[1:] < 7.9)
    assert np.isnan(values[paused]).all(), "a flow that pauses has no rate, rather than one of 0"
    bands = [patch for patch in shaded.patches if isinstance(patch, Rectangle)]
    bounds = [edge for band in bands for edge in (band.get_x(), band.get_x() + band.get_width())]
    assert bounds == pytest.approx(times)


def test_a_blackout_is_no_pause(tmp_path: Path) -> None:
    _simulate(
        tmp_path / "run",
        "adaptive-media name=media duration='6 s'",
        "adaptive-media name=pausing duration='6 s' pause='1 s' resume='1.5 s'",
        options=("--blackout", "3 s, 2 s"),
    )
    (pause,) = _spans(load_run(tmp_path / "run"))
    assert [time / 1e9 for time in pause] == pytest.approx([1.0, 1.52], abs=0.06)


def test_pauses_of_runs_measured_together_are_those_of_each(tmp_path: Path) -> None:
    runs = []
    for number, pause in enumerate(("2 s", "3 s")):
        folder = tmp_path / str(number)
        paused = f"adaptive-media name=pausing duration='6 s' pause='{pause}' resume='4 s'"
        _simulate(folder, paused, "adaptive-media name=steady duration='6 s'")
        runs.append(load_run(folder))
    together = pauses(Traffic(*runs)).sort("run").select("begin_ns", "end_ns").rows()
    assert together == [row for run in runs for row in _spans(run)]


def _spans(run: Run) -> list[tuple[int, int]]:
    return pauses(Traffic(run)).select("begin_ns", "end_ns").rows()


def _simulate(folder: Path, *workloads: str, options: tuple[str, ...] = ()) -> None:
    words = [word for workload in workloads for word in ("--workload", workload)]
    link = ("--rate", "3 Mbit/s", "--delay", "20 ms", *options)
    command = [str(find_engine()), "sim", "--quiet", "--seed", "1", "--out", str(folder)]
    subprocess.run([*command, *link, *words], check=True, capture_output=True, timeout=60)


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
