# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Damaged files: each reader answers, or refuses by an error of its own that names the file."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from airpath.app import run as run_app
from airpath.arrow import ArrowLogError, read_arrow_log
from airpath.capture import CaptureError, read_capture
from airpath.experiment.catalogue import DATABASE, Filter, open_catalogue, rebuild
from airpath.experiment.folder import FolderError, Results, open_results
from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.jsontext import parse_json
from airpath.run import RunError, load_run
from airpath.status import DAMAGED
from readers import READERS, SLOW, Reader, damaged, sample_of
from synthetic import write_run

INPUTS = Path(__file__).parent / "damaged"
"""Files over which readers failed once."""


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.name.replace(" ", "-"))
def test_whatever_a_file_holds_its_reader_answers(reader: Reader) -> None:
    generator = random.Random(f"damage {reader.name}")
    with sample_of(reader) as sample:
        assert not sample.try_with(sample.content)
        for _ in range(6 if reader.name in SLOW else 150):
            content = damaged(sample.content, generator)
            assert not (failure := sample.try_with(content)), (failure, content[:2000])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("common-fields-is-a-number.sqlog", "common_fields is 9223372036854775808, no object"),
        ("vantage-point-is-a-number.sqlog", r"vantage_point is 1e\+308, no object"),
        ("time-1e308.qlog", r"the time of event 1, 1e\+308 ms, cannot be"),
        ("time-1e309.qlog", "the number 1e309 is too great"),
        ("events-is-a-number.qlog", "does not fit into 64 bits"),
    ],
)
def test_a_damaged_qlog_is_named_and_the_rest_is_shown(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", size=2_560)
    shutil.copy(INPUTS / name, tmp_path / "run")
    assert run_app(["analyse", str(tmp_path / "run"), "--metrics", "all"]) == DAMAGED
    told = capsys.readouterr()
    assert "packets_offered" in told.out
    line = next(line for line in told.err.splitlines() if name in line)
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(line)


def test_a_capture_with_impossible_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="a packet at byte 320 has a time that cannot be"):
        read_capture(INPUTS / "times-beyond-63-bits.pcapng")
    write_run(tmp_path, size=2_560)
    path = tmp_path / "client.pcapng"
    content = path.read_bytes()
    nano, absurd = (struct.pack("<HHB", 9, 1, exponent) for exponent in (9, 100))
    assert nano in content
    path.write_bytes(content.replace(nano, absurd))
    with pytest.raises(CaptureError, match=r"at byte \d+ counts 10\^100 ticks a second"):
        read_capture(path)


@pytest.mark.parametrize(
    "name",
    ["buffer-beyond-its-body", "batch-beyond-the-file", "claims-3-GB", "claims-17-GB"],
)
def test_a_log_that_claims_more_than_it_holds_costs_no_memory(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.arrow"
    shutil.copy(INPUTS / f"{name}.arrow", path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = str(path)
    try:  # what is damaged may be values alone
        assert read_arrow_log(path).frame.height < path.stat().st_size
    except ArrowLogError as error:
        said = str(error)
    assert str(path) in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    assert "panicked" not in capfd.readouterr().err


def test_values_that_no_column_holds_are_refused_by_name(tmp_path: Path) -> None:
    write_run(tmp_path, size=2_560)
    shutil.copy(INPUTS / "bits-beyond-63.arrow", tmp_path / "events.arrow")
    # Columns are converted side by side: any of those that do not fit may be named.
    columns = "bits|queue_bytes|emitted_ns"
    with pytest.raises(RunError, match=rf"events\.arrow: damaged: .*'({columns})'"):
        _ = load_run(tmp_path).events


def test_an_experiment_nested_too_deep_is_refused_with_its_line() -> None:
    path = INPUTS / "nested-1000-deep.toml"
    with pytest.raises(ExperimentError, match=r"toml:\d+: nested deeper than 64 levels"):
        load(path)


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    write_run(tmp_path, size=2_560)
    for name in ("run.json", "events.arrow", "client.pcapng"):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        with pytest.raises(RunError, match=rf"{name}: is no ordinary file"):
            _read_all(tmp_path)
        (tmp_path / name).unlink()
        write_run(tmp_path, size=2_560)


def _read_all(folder: Path) -> None:
    run = load_run(folder)
    _ = run.events, run.captures


def test_what_does_not_fit_in_run_json_is_left_out_and_named(tmp_path: Path) -> None:
    write_run(tmp_path, size=2_560)
    manifest = json.loads((tmp_path / "run.json").read_text())
    manifest["results"]["counters"] = 5
    manifest["seed"] = [1]
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    run = load_run(tmp_path)
    assert "run.json: results.counters is 5, not a list; it was left out" in run.damage
    assert "run.json: seed is [1], not a whole number; it was left out" in run.damage
    assert run.verdict == "trusted"


@pytest.mark.parametrize(
    ("hosts", "wrong"),
    [
        ([{"hops": ["radio"]}], "hosts[0] has no name that can be read"),
        ([5], "hosts[0] is 5, not an object"),
        ("x", "hosts is 'x', not a list"),
        (None, ""),
        ([{"name": "lab", "hops": ["radio", 5]}], "hosts[0].hops[1] is 5, not text"),
        ([{"name": "lab", "clock": {"offset_ns": 5}}], "hosts[0].clock has no bound_ns"),
        (
            [{"name": "lab", "network_delay": {"to_host": {"p50_ns": 5}}}],
            "hosts[0].network_delay has no from_host",
        ),
    ],
)
def test_hosts_that_do_not_fit_are_named_and_the_rest_is_shown(
    hosts: object, wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, size=2_560, two_hops=True)
    manifest = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(manifest | {"hosts": hosts}))
    status = DAMAGED if wrong else 0
    for command in (
        ["report", str(tmp_path), "--pictures", "0"],
        ["plot", str(tmp_path), "--format", "svg", "--only", "hops", "--out", str(tmp_path / "p")],
    ):
        assert run_app(command) == status
        told = capsys.readouterr().err
        assert "contradict" not in told
        assert not wrong or f"run.json: {wrong}" in told
    assert list((tmp_path / "p").glob("hops*.svg"))


@pytest.mark.parametrize(
    "text", ["NaN", "1e999", "18446744073709551616", "[" * 1000, "[" * 70 + "]" * 70, '"\\ud800"']
)
def test_json_beyond_bounds_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
    assert parse_json("[1.5, 18446744073709551615]") == [1.5, 2**64 - 1]


def results_folder(folder: Path) -> Results:
    folder.mkdir()
    next(one for one in READERS if one.name == "journal").make(folder)
    return open_results(folder)


def listed(results: Results, told: list[str]) -> list[str]:
    with open_catalogue(results, told.append) as catalogue:
        return [row["path"] for row in catalogue.select(Filter())]


BOTH = ["runs/a/b/0001", "runs/a/b/0002"]


@pytest.mark.parametrize("how", ["half-made", "nonsense", "page", "emptied", "other version"])
def test_a_catalogue_that_cannot_be_used_is_built_anew(how: str, tmp_path: Path) -> None:
    results = results_folder(tmp_path / "out")
    path = results.root / DATABASE
    if how == "half-made":  # as the first statement of several leaves it
        path.unlink()
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE runs (path TEXT PRIMARY KEY)")
        database.close()
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "other version":
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 1")
        database.close()
    elif how == "page":
        shutil.copy(INPUTS / "damaged-page.sqlite", path)
    else:
        path.write_text("nonsense")
    told: list[str] = []
    assert listed(results, told) == BOTH
    assert len(told) == 1
    assert str(path) in told[0]
    assert "built anew from the runs' folders" in told[0]
    assert listed(results, told) == BOTH
    assert len(told) == 1, "it was kept"


def test_a_damaged_catalogue_is_read_around_while_somebody_works_in_the_folder(
    tmp_path: Path,
) -> None:
    results = results_folder(tmp_path / "out")
    holder = Results(results.root)
    holder.lock()
    (results.root / DATABASE).write_text("nonsense")
    told: list[str] = []
    assert listed(results, told) == BOTH
    assert "read from the runs' folders for now" in told[0]
    assert (results.root / DATABASE).read_text() == "nonsense"
    holder.close()


def test_a_run_without_a_record_is_named_and_the_rest_is_listed(tmp_path: Path) -> None:
    results = results_folder(tmp_path / "out")
    (results.root / "runs/a/b/0001/replication.json").write_text('{"set_name": "a"}')
    problems: list[str] = []
    assert rebuild(results.root, problems) == 1
    assert "runs/a/b/0001/replication.json: it has no cell that can be read" in problems[0]


def test_a_damaged_journal_is_mended_from_the_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = results_folder(tmp_path / "out")
    before = results.journal.read_bytes()
    first, second = before.splitlines(keepends=True)
    results.journal.write_bytes(first[:40] + b"\xff" + first[41:] + second)
    with pytest.raises(FolderError, match=r"journal:1: .* --rebuild"):
        open_results(results.root)
    assert run_app(["results", str(results.root), "--rebuild"]) == 0
    said = capsys.readouterr().err
    assert "journal:1: no entry of a journal" in said
    assert "2 replications, 1 of them from the runs' folders" in said
    assert set(open_results(results.root).done) == {("a", "b", 1), ("a", "b", 2)}
    assert (results.root / "journal.damaged").is_file()
    # Commands of experiments are asked for more than once in a process, in notebooks too.
    assert run_app(["results", str(results.root)]) == 0


def test_a_line_of_the_journal_that_finds_no_room_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_folder(tmp_path / "out")
    before = results.journal.read_bytes()
    write = os.write
    calls = []

    def full(handle: int, content: bytes) -> int:
        calls.append(len(content))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(handle, bytes(content)[:20])  # a disk that is about to be full takes a part

    monkeypatch.setattr("os.write", full)
    with pytest.raises(OSError, match="the journal is whole: it ends with the 2") as caught:
        results.write("removed", set="a", cell="b", replication=1)
    assert caught.value.filename == str(results.journal)
    monkeypatch.undo()
    assert len(calls) == 2
    assert results.journal.read_bytes() == before
    # What a killed writer began does not run into the next line.
    with results.journal.open("ab") as file:
        file.write(b'{"kind": "do')
    results.write("removed", set="a", cell="b", replication=1)
    assert set(open_results(results.root).done) == {("a", "b", 2)}
