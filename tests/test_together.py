# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs measured together have the values that each has by itself."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import qlog_of_aioquic
from airpath.analysis import find, frame
from airpath.analysis.metric import choose
from airpath.analysis.table import measure, measure_together
from airpath.analysis.together import MOST_BYTES, MOST_RUNS, batches
from airpath.analysis.traffic import UnlikeError
from airpath.engine import find_engine
from airpath.run import load_run
from synthetic import write_run

CELL = Path(__file__).parent.parent / "examples" / "cell-wired.toml"
HOP = ("--rate", "2 Mbit/s", "--delay", "20 ms", "--loss", "2%", "--queue", "20 packets")
SIMULATED = {
    "flows": (
        *(*HOP, "--reorder", "2% 30 ms", "--duplicate", "2%"),
        *("--workload", "tcp bytes=60kB from=server", "--workload", "tcp bytes=50kB from=server"),
        *("--workload", "tcp bytes=40kB from=client cc=reno"),
        *("--workload", "cbr rate=100kbit/s size=200B duration=2s"),
    ),
    "users": ("--scenario", str(CELL), "--loss", "3%", "--workload", "tcp bytes=20kB"),
    "events": (*HOP, "--log", "events", "--workload", "tcp bytes=20kB"),
    "counters": (*HOP, "--log", "counters", "--workload", "tcp bytes=20kB"),
}
"""Options of ``airpath sim`` by the kind of runs."""

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Return runs by their kind."""
    root = tmp_path_factory.mktemp("together")
    found: dict[str, list[Path]] = {}
    for kind, options in SIMULATED.items():
        for seed in SEEDS:
            folder = root / kind / str(seed)
            subprocess.run(
                [
                    *(str(find_engine()), "sim", "--quiet", "--seed", str(seed)),
                    *("--out", str(folder), *options),
                ],
                check=True,
                capture_output=True,
                timeout=120,
            )
            found.setdefault(kind, []).append(folder)
    for seed in SEEDS:
        folder = root / "quic" / str(seed)
        folder.parent.mkdir(exist_ok=True)
        write_run(folder, seed=seed, size=25_600, two_hops=True, stamped=True)
        qlog_of_aioquic.write(folder)
        found.setdefault("quic", []).append(folder)
    # The captures tell all that there is.
    for folder in found["flows"]:
        copy = root / "captures" / folder.name
        shutil.copytree(folder, copy)
        (copy / "events.arrow").unlink()
        found.setdefault("captures", []).append(copy)
    return found


def assert_same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Fail unless tables have the same rows; sums of many numbers may round otherwise."""
    assert found.drop("value").equals(expected.drop("value"))
    pairs = zip(found["value"], expected["value"], strict=True)
    wrong = [pair for pair in pairs if not math.isclose(*pair, rel_tol=1e-14)]
    assert not wrong, wrong


@pytest.mark.parametrize("kind", [*SIMULATED, "quic", "captures"])
def test_values_are_those_of_each_run_alone(kind: str, folders: dict[str, list[Path]]) -> None:
    metrics = choose(["all"])
    together = measure_together([load_run(folder) for folder in folders[kind]], metrics)
    for folder, found in zip(folders[kind], together, strict=True):
        expected = measure(load_run(folder), metrics)
        assert expected.height > 10
        assert_same(found, expected)


def test_runs_of_different_logs_are_refused_together(folders: dict[str, list[Path]]) -> None:
    runs = [load_run(folders[kind][0]) for kind in ("flows", "events")]
    with pytest.raises(UnlikeError):
        measure_together(runs, choose(["all"]))
    runs = [load_run(folders[kind][0]) for kind in ("flows", "counters")]
    with pytest.raises(UnlikeError):
        measure_together(runs, choose(["drops"]))


def test_a_damaged_run_changes_nothing_of_the_others(
    folders: dict[str, list[Path]], tmp_path: Path
) -> None:
    for folder in folders["flows"]:
        shutil.copytree(folder, tmp_path / "set" / f"good-{folder.name}")
        shutil.copytree(folder, tmp_path / "set" / f"torn-{folder.name}")
    events = tmp_path / "set" / "torn-1" / "events.arrow"
    os.truncate(events, events.stat().st_size // 2)
    capture = tmp_path / "set" / "torn-2" / "client.pcapng"
    os.truncate(capture, capture.stat().st_size // 2)
    (tmp_path / "set" / "torn-3" / "events.arrow").write_bytes(b"nothing of the kind")
    notes: list[str] = []
    problems: list[str] = []
    found = frame(find([tmp_path]), ["all"], notes=notes, problems=problems)
    alone_notes: list[str] = []
    alone_problems: list[str] = []
    expected = pl.concat(
        frame([one], ["all"], notes=alone_notes, problems=alone_problems)
        for one in find([tmp_path])
    )
    assert_same(found, expected)
    assert (notes, problems) == (alone_notes, alone_problems)
    assert len(problems) == 3, problems
    assert set(found["run"]) == {"good-1", "good-2", "good-3", "torn-1", "torn-2"}


def test_batches_are_bounded_in_number_and_in_size(tmp_path: Path) -> None:
    def written(name: str, size: int) -> Path:
        (tmp_path / name).mkdir()
        with (tmp_path / name / "events.arrow").open("wb") as file:
            file.truncate(size)
        return tmp_path / name

    small = [written(f"small-{number}", 1000) for number in range(MOST_RUNS + 1)]
    assert [len(batch) for batch in batches(small)] == [MOST_RUNS, 1]
    large = written("large", MOST_BYTES + 1)
    half = [written(f"half-{number}", MOST_BYTES // 2) for number in range(3)]
    assert batches([small[0], large, small[1], *half]) == [[0], [1], [2, 3], [4, 5]]
    assert batches([tmp_path / "missing"]) == [[0]]
    assert batches([]) == []
