# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results of experiments: listed, filtered, tagged, removed, compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airpath.experiment.listing import _chosen
from airpath.experiment.quantities import alike
from airpath.experiment.rows import difference_table
from experiments import airpath, journal, run_folders


def test_a_run_does_all_and_its_results_are_listed(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    done = airpath("run", small, "--out", root, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("10 succeeded")
    assert len(run_folders(root)) == 10
    assert all((root / "runs" / one / "run.json").is_file() for one in run_folders(root))
    seeds = {e["replication"]: e["seed"] for e in journal(root) if e["set"] == "queues"}
    assert seeds == {1: 5, 2: 6, 3: 7}
    listed = airpath("results", root, "--json")
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert len(rows) == 10
    assert all(row["verdict"] == "trusted" and row["metrics"]["elapsed"] > 0 for row in rows)
    # Compared by hand from the rows: pairs of the same seed.
    by_cell: dict[str, list[float]] = {}
    for row in rows:
        by_cell.setdefault(row["cell"], []).append(row["metrics"]["elapsed"])
    first, second = by_cell["limit=4packets"], by_cell["limit=8packets"]
    compared = airpath(
        *("results", root, "--json", "--metric", "elapsed"),
        *("--compare", "queues/limit=4packets", "queues/limit=8packets"),
    )
    found = json.loads(compared.stdout)["metrics"][0]
    difference = sum(b - a for a, b in zip(first, second, strict=True)) / 3
    assert found["difference"] == pytest.approx(difference)
    assert found["pairs"] == 3


def test_a_comparison_is_shown_in_units_for_people() -> None:
    goodput = {
        "metric": "goodput/downlink",
        "first": 2_976_000.0,
        "second": 2_000_000.0,
        "difference": -976_000.0,
        "half_width": 10_000.0,
        "pairs": 5,
    }
    once = {
        "metric": "elapsed",
        "first": 0.806,
        "second": 0.7,
        "difference": -0.106,
        "half_width": None,
        "pairs": 1,
    }
    assert difference_table({"first": "a", "second": "b", "metrics": [goodput, once]}) == [
        ["metric", "a", "b", "difference ± 95 %", "pairs"],
        ["goodput/downlink (Mbit/s)", "2.976", "2", "-0.976 ± 0.01", "5"],
        ["elapsed (ms)", "806", "700", "-106", "1"],
    ]


def test_results_are_filtered_tagged_removed_and_run_again(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    assert airpath("run", small, "--out", root).returncode == 0
    some = ("results", root, "--set", "queues", "--where", "replication <= 2")
    assert airpath(*some, "--add-tag", "early").returncode == 0
    rebuilt = airpath("results", root, "--rebuild", "--tag", "early", "--json")
    assert len(rebuilt.stdout.splitlines()) == 4
    assert airpath(*some, "--remove").returncode == 2, "must not delete unasked"
    assert len(run_folders(root)) == 10
    assert airpath(*some, "--remove", "--yes").returncode == 0
    assert len(run_folders(root)) == 6
    unknown = airpath("results", root, "--where", "elapsd < 2")
    assert unknown.returncode == 2
    assert "did you mean `elapsed`" in unknown.stderr
    for words, said in (
        (("--set", "queue"), "no run of a set `queue`; did you mean `queues`"),
        (("--cell", "limit"), "no run of a cell `limit`; "),
        (("--where", "limit = 4 packets"), "did you mean `network.radio.link.queue.limit`"),
    ):
        refused = airpath("results", root, *words)
        assert refused.returncode == 2
        assert said in refused.stderr
    again = airpath("run", small, "--out", root, "--resume")
    assert again.returncode == 0, again.stderr
    assert len(run_folders(root)) == 10


def test_a_usual_metric_with_many_values_is_left_out_and_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = {f"goodput/tcp-{n}/downlink": float(n) for n in range(1, 6)}
    assert _chosen([{"metrics": {"elapsed": 1.0, **values}}], []) == ["elapsed"]
    assert "`goodput` has 5 values, not shown: name one with --metric" in capsys.readouterr().err
    del values["goodput/tcp-5/downlink"]
    assert _chosen([{"metrics": dict(values)}], []) == list(values)


def test_cells_whose_runs_are_all_the_same_are_told() -> None:
    one, other = {"elapsed": 1.5, "goodput": 2.0}, {"elapsed": 1.25, "goodput": 2.0}
    assert alike([one, dict(one)]).startswith("all 2 runs are identical: ")
    nothing: dict[str, float] = {}
    for different in ([one, other], [one], [nothing, nothing]):
        assert alike(different) == ""
