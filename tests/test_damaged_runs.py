# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sets of runs with damaged files: each is named, the rest is shown, the exit status tells."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from airpath.analysis import find, frame, together
from airpath.app import run as run_app
from airpath.run import RunError, load_run
from airpath.status import DAMAGED
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

METRICS = ["transfer_time", "packets_lost"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder with two good runs, and one of each kind of damage."""
    folder = tmp_path / "set"
    for number in range(6):
        write_run(folder / str(number), size=10_240, seed=number)
    for name in ("1/events.arrow", "2/client.pcapng", "3/run.json"):
        path = folder / name
        content = path.read_bytes()
        path.write_bytes(content[: 2 * len(content) // 3 // 4 * 4 - 2])
    manifest = json.loads((folder / "4" / "run.json").read_text())
    (folder / "4" / "run.json").write_text(json.dumps(manifest | {"format_version": 2}))
    return folder


def assert_named(folder: Path, lines: str) -> None:
    for words in (
        f"{folder}/1: events.arrow is torn: its last",
        f"{folder}/2: client.pcapng is torn or damaged: its last",
        f"{folder}/3: run.json is unreadable",
        f"{folder}/4/run.json has format 2",
    ):
        assert words in lines, words
    assert "use the version of Airpath that recorded it; the run was left out" in lines


def test_analyse_names_them_and_shows_the_rest(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["analyse", str(runs), "--metrics", ",".join(METRICS)]
    assert run_app(command) == DAMAGED
    told = capsys.readouterr()
    assert "set: 2 replications" in told.out
    assert_named(runs, told.err)
    for name in ("1", "2", "3"):
        assert f"set: {name} is damaged, and left out" in told.err
    assert run_app([*command, "--json"]) == DAMAGED
    assert_named(runs, "\n".join(json.loads(capsys.readouterr().out)["damage"]))
    # By itself a run is shown as far as it goes.
    assert run_app(["analyse", str(runs / "1"), "--metrics", "packets_offered"]) == DAMAGED
    assert "packets_offered" in capsys.readouterr().out
    # Where nothing can be read, nothing is shown.
    assert run_app(["analyse", str(runs / "4")]) == 1


def test_plot_names_them_and_draws_the_rest(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["plot", str(runs), "--format", "svg", "--out", str(runs / "p")]) == DAMAGED
    told = capsys.readouterr()
    assert told.out
    assert_named(runs, told.err)
    alone = ["plot", str(runs / "1"), "--format", "svg", "--only", "time-sequence"]
    assert run_app(alone) == DAMAGED
    assert "events.arrow is torn" in capsys.readouterr().err


def test_report_names_them_and_shows_the_rest(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(["report", str(runs), "--pictures", "0"]) == DAMAGED
    assert_named(runs, capsys.readouterr().err)
    page = (runs / "report.html").read_text()
    assert "events.arrow is torn" in page
    assert "has format 2" in page


def test_a_log_that_is_none_costs_its_run_only(runs: Path) -> None:
    (runs / "0" / "events.arrow").write_text("no Arrow")
    (runs / "5" / "events.arrow").unlink()
    (runs / "5" / "events.arrow").mkdir()
    problems: list[str] = []
    table = frame(find([runs]), METRICS, problems=problems)
    assert set(table["run"]) == {"1", "2", "3"}
    assert any("0/events.arrow: neither an Arrow file" in problem for problem in problems)
    assert any("5/events.arrow" in problem and "left out" in problem for problem in problems)
    with pytest.raises(RunError, match=r"0/events\.arrow"):
        frame(find([runs]), METRICS)


def test_the_missing_end_of_a_killed_run_is_no_damage(tmp_path: Path) -> None:
    write_run(tmp_path, size=25_600, stream=True)
    (tmp_path / "run.json").unlink()
    for name in ("events.arrow", "client.pcapng"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-30])
    run = load_run(tmp_path)
    assert run.events.height > 0
    assert set(run.captures) == {"client", "server"}
    assert any("torn" in note for note in run.notes)
    assert not run.damage


def test_processes_tell_the_same(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST_RUNS", 2)
    notes: dict[int, list[str]] = {}
    problems: dict[int, list[str]] = {}
    told: list[int] = []
    tables = [
        frame(
            find([runs]),
            METRICS,
            jobs=jobs,
            progress=lambda number, _: told.append(number),
            notes=notes.setdefault(jobs, []),
            problems=problems.setdefault(jobs, []),
        )
        for jobs in (1, 3)
    ]
    assert tables[0].equals(tables[1])
    assert notes[1] == notes[3]
    assert problems[1] == problems[3]
    assert told == [*range(6), *range(6)]


def test_a_process_that_dies_is_an_error_that_names_its_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "MOST_RUNS", 1)
    begin = subprocess.Popen
    code = f"import os, sys; os.read(0, 1); os._exit({os.EX_SOFTWARE})"
    monkeypatch.setattr(
        "airpath.workers.subprocess.Popen",
        lambda command, **rest: begin([command[0], "-c", code], **rest),
    )
    with pytest.raises(RunError, match=rf"set/\d: .* ended with status {os.EX_SOFTWARE}"):
        frame(find([runs]), METRICS, jobs=2)


def test_files_that_were_recorded_and_are_gone_are_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("run.json", "events.arrow"):
        folder = tmp_path / name
        write_run(folder, size=2560)
        (folder / name).unlink()
        words = ["plot", str(folder), "--format", "svg", "--only", "time-sequence"]
        assert run_app(words) == DAMAGED
        assert f"{name} is missing, although the run " in capsys.readouterr().err


def test_a_user_whose_name_no_file_can_have_costs_its_run_only(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs / "0" / "run.json"
    users = [{"name": "a" * 400}, {"name": "bob"}]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"users": users}))
    assert run_app(["analyse", str(runs), "--metrics", ",".join(METRICS)]) == DAMAGED
    told = capsys.readouterr()
    assert "transfer_time" in told.out
    assert "-client.pcapng: File name too long" in told.err
    assert "File name too long; the run was left out" in told.err
