# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Unattended runs: folders, locks, resuming after anything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airpath.experiment.folder import FolderError, Results
from airpath.experiment.jobs import Jobs
from airpath.experiment.replicate import Outcome, Task
from experiments import LIVE, SMALL, START, airpath, journal, run_folders, runner_of, written


def test_a_folder_with_results_is_not_run_into_unasked(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    assert airpath("run", small, "--out", root, "--only", "sizes").returncode == 0
    refused = airpath("run", small, "--out", root)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    small.write_text(SMALL.replace("gprs-cs2-3+1", "gprs-cs1-3+1"))
    changed = airpath("run", small, "--out", root, "--resume")
    assert changed.returncode == 2
    assert "sizes/bytes=10000,mtu=1400" in changed.stderr
    plan = json.loads((root / "plan.json").read_text())
    (root / "plan.json").write_text(json.dumps({**plan, "format_version": 99}))
    newer = airpath("run", small, "--out", root, "--resume")
    assert newer.returncode == 2
    assert "format 99" in newer.stderr


def test_two_runs_cannot_work_in_one_folder(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    root.mkdir()
    first = Results(root)
    first.lock()
    refused = airpath("run", small, "--out", root)
    assert refused.returncode == 2
    assert f"in use by another airpath run (process {os.getpid()})" in refused.stderr
    first.close()
    assert airpath("run", small, "--out", root).returncode == 0


LONG = SMALL.replace("repetitions = 3", "repetitions = 20").replace("20000", "200000")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_after_being_broken_off_nothing_is_lost_and_nothing_is_run_twice(
    tmp_path: Path, number: signal.Signals
) -> None:
    file, root = written(tmp_path, LONG), tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", START, "run", str(file), "--out", str(root), "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if (root / "journal").exists() and len((root / "journal").read_text().splitlines()) >= 6:
            break
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number), said
    before = {
        (e["set"], e["cell"], e["replication"]): e["unix_s"]
        for line in (root / "journal").read_text().splitlines(keepends=True)
        if line.endswith("\n")
        for e in [json.loads(line)]
    }
    assert 6 <= len(before) < 44
    # What a crash may leave besides: a torn line, folders that are not in the journal.
    with (root / "journal").open("a") as file_:
        file_.write('{"kind": "done", "set": "que')
    (root / "runs/queues/limit=4packets/0020.part").mkdir(parents=True, exist_ok=True)
    orphan = root / "runs/queues/limit=8packets/0020"
    orphan.mkdir(parents=True, exist_ok=True)
    (orphan / "run.json").write_text("{}")
    resumed = airpath("run", file, "--out", root, "--resume", "--jobs", "2")
    assert resumed.returncode == 0, resumed.stderr
    entries = journal(root)
    keys = [(e["set"], e["cell"], e["replication"]) for e in entries if e["kind"] == "done"]
    assert len(keys) == len(set(keys)) == 44
    kept = {(e["set"], e["cell"], e["replication"]): e["unix_s"] for e in entries}
    assert before.items() <= kept.items()
    folders = run_folders(root)
    assert folders == {f"{s}/{c}/{n:04}" for s, c, n in keys}
    assert (orphan / "replication.json").is_file()


def test_a_full_disk_stops_before_anything_is_written(tmp_path: Path) -> None:
    def carry_out(_task: Task) -> Outcome:
        pytest.fail("nothing may run")

    text = LIVE.replace("reruns = 1", 'keep_free = "1000000 TB"')
    runner, results = runner_of(tmp_path, text, carry_out, Jobs.of("2"), [])
    report = runner.run()
    results.close()
    assert "disk space" in report.stopped
    assert "--resume" in report.stopped


def test_a_damaged_journal_is_told_with_its_line(tmp_path: Path) -> None:
    gone = '{"kind": "removed", "set": "a", "cell": "b", "replication": 1}\n'
    (tmp_path / "journal").write_text(f"{gone}nonsense\n{gone}")
    with pytest.raises(FolderError, match="journal:2"):
        Results(tmp_path).read()


def test_a_folder_whose_name_is_not_utf_8_is_refused(small: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"half-\xff")
    refused = airpath("run", small, "--out", tmp_path / name)
    assert refused.returncode == 2
    assert f"{tmp_path}/half-\\xff: the name of this folder is not UTF-8" in refused.stderr
    assert "name another --out" in refused.stderr
    assert not (tmp_path / name).exists()
    (tmp_path / name).mkdir()
    file = shutil.copy(small, tmp_path / name / "small.toml")
    refused = airpath("run", file, "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert "half-\\xff: the name of this folder is not UTF-8; move the" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_a_relative_folder_of_results_is_the_users_and_not_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of-the-file").mkdir()
    file = written(tmp_path / "of-the-file", SMALL)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = airpath("run", file, "--only", "sizes", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    manifests = list(Path("out").glob("runs/sizes/*/*/run.json"))
    assert len(manifests) == 4
    # A run whose record was damaged is run again; a deleted index is built anew.
    record = manifests[0].with_name("replication.json")
    record.write_text("{")
    Path("out/catalogue.sqlite").unlink()
    listed = airpath("results", "out", "--runs", "--json")
    assert len(listed.stdout.splitlines()) == 3, listed.stderr
    assert "1 runs of the journal" in airpath("results", "out", "--rebuild").stderr
    again = airpath("run", file, "--only", "sizes", "--out", "out", "--resume")
    assert again.returncode == 0, again.stderr
    assert json.loads(record.read_text())["status"] == "succeeded"
