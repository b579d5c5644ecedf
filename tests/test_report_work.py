# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Work that a page takes, counted: seconds depend on what else the machine does."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

from airpath import run, workers
from airpath.analysis import intervals
from airpath.analysis.together import size_bytes
from airpath.report import values, write_report
from airpath.report.material import load_material
from airpath.report.opener import Opener
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work")
    for name in ("one", "other"):
        for seed in range(1, RUNS + 1):
            size = 2560 * seed if name == "one" else 3840 * seed
            write_run(root / name / f"replication-{seed:04}", seed=seed, size=size)
    return root


def counting(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, counted: Counter[str]) -> None:
    """Count the calls of a function."""
    kept = getattr(owner, name)

    def counts(*arguments: Any, **options: Any) -> Any:
        counted[name] += 1
        return kept(*arguments, **options)

    monkeypatch.setattr(owner, name, counts)


def test_runs_are_measured_once_and_pictures_are_laid_out_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: Counter[str] = Counter()
    counting(monkeypatch, values, "measure_together", done)
    counting(monkeypatch, ConstrainedLayoutEngine, "execute", done)
    page = write_report(load_material([folder], None, 1), lambda what: None)
    pictures = page.count('<figure class="picture"')
    assert pictures > 8
    # All are alike, and one batch.
    assert done["measure_together"] == 1
    # One of the pictures of a run raises its panels above their legends, for which it lays out.
    assert pictures <= done["execute"] <= pictures + 2


def test_captures_of_few_small_runs_are_read_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: Counter[str] = Counter()
    counting(monkeypatch, run, "read_capture", done)
    counting(monkeypatch, run, "read_arrow_log", done)
    page = write_report(load_material([folder / "one"], None, RUNS), lambda what: None)
    assert page.count('<figure class="picture"') > RUNS
    assert done == {"read_capture": 2 * RUNS, "read_arrow_log": RUNS}


def test_large_runs_are_not_kept_and_no_run_goes_to_another_process(folder: Path) -> None:
    (first, other, *_) = sorted((folder / "one").iterdir())
    opener = Opener(size_bytes(first) + size_bytes(other) - 1)
    assert opener.open(first) is opener.open(first)
    assert opener.open(other) is not opener.open(other)
    elsewhere = pickle.loads(pickle.dumps(opener))
    assert elsewhere.open(first) is not elsewhere.open(first)


def test_resamples_are_drawn_once_for_all_sets_of_a_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: Counter[str] = Counter()
    intervals._kept_resamples.cache_clear()
    counting(monkeypatch, intervals, "_resamples", done)
    for place in range(20):
        intervals.median_interval(np.arange(10.0) ** (1 + place / 10))
    assert done["_resamples"] == 1


def test_few_small_runs_start_no_process(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = sorted(folder.glob("*/*"))
    assert workers.least_runs(folders) == workers.LEAST_SMALL
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    assert workers.processes_for(2 * workers.LEAST_SMALL - 1, workers.LEAST_SMALL) == 1
    assert workers.processes_for(2 * workers.LEAST_SMALL, workers.LEAST_SMALL) == 2
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "events.arrow").write_bytes(bytes(workers.SMALL_BYTES + 1))
    assert workers.least_runs([tmp_path / "large"]) == workers.LEAST_EACH
