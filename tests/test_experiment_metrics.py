"""Figures of replications, and stopping rules over them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from airpath.analysis.statistics import mean_with_half_width
from airpath.experiment.metrics import of_programs
from airpath.experiment.statistics import checkpoints
from experiments import SMALL, airpath, journal, written


def test_curls_lines_become_figures(tmp_path: Path) -> None:
    line = '{"time_total": 0.5, "size_download": 1000}'
    (tmp_path / "page.stdout").write_text(f"{line}\n{line}\n")
    record = {"name": "page", "service": False, "elapsed_ns": 10**9, "end_ns": 2 * 10**9}
    found = of_programs([record], tmp_path)
    assert found["page.transfers"] == 2
    assert found["page.transfer_time"] == 0.5
    assert found["page.bytes"] == 2000
    assert found["elapsed"] == 2.0
    with contextlib.suppress(OSError):
        (tmp_path / "page.stdout").unlink()
    assert "page.transfers" not in of_programs([record], tmp_path)


def test_an_interval_is_the_textbooks() -> None:
    found = mean_with_half_width([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.half_width == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, abs=1e-4)
    assert mean_with_half_width([1.0]).half_width == float("inf")
    assert checkpoints(4, 10) == [4, 5, 7, 9, 10]


def test_a_stopping_rule_ends_at_the_same_count_however_many_run_beside(tmp_path: Path) -> None:
    rule = 'until = { metric = "elapsed", half_width = "20 %", least = 3, most = 40 }'
    text = SMALL.replace("repetitions = 3", rule)
    counts = []
    for jobs in ("1", "3"):
        root = tmp_path / jobs
        done = airpath(
            "run", written(tmp_path, text), "--only", "queues", "--out", root, "--jobs", jobs
        )
        assert done.returncode == 0, done.stderr
        by_cell: dict[str, list[float]] = {}
        for entry in sorted(journal(root), key=lambda e: e["replication"]):
            by_cell.setdefault(entry["cell"], []).append(entry["metrics"]["elapsed"])
        for values in by_cell.values():
            assert len(values) in checkpoints(3, 40)
            assert mean_with_half_width(values).relative <= 0.2
            earlier = [n for n in checkpoints(3, 40) if n < len(values)]
            assert all(mean_with_half_width(values[:n]).relative > 0.2 for n in earlier)
        counts.append({cell: len(values) for cell, values in by_cell.items()})
    assert counts[0] == counts[1]
