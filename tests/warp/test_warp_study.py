# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The case study runs in virtual time as it does live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.engine import find_engine
from airpath.report.beside import SCHEMA
from seawind_case import compare
from seawind_files import RECORDED, one_cell
from warp.conftest import WARP_PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from warp.conftest import Warp

START = "import sys; from airpath.cli import main; sys.exit(main())"
CELL = "clean-acks,reno"


def test_a_transfer_of_the_case_study(
    warp: Warp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = one_cell(tmp_path, "warp", *CELL.split(","), repetitions=1)
    runs = []
    for name in ("first", "again"):
        done = subprocess.run(
            [sys.executable, "-c", START, "run", str(file), "--out", str(tmp_path / name)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=WARP_PATIENCE_S,
            env={**os.environ, **warp.environment, "AIRPATH_ENGINE": find_engine()},
        )
        assert done.returncode == 0, done.stderr
        # A cell by itself bears no names of network and workload.
        runs.append(tmp_path / name / "runs/warp/all/0001")
    about = json.loads((runs[0] / "replication.json").read_text())
    assert (about["status"], about["verdict"]) == ("succeeded", "trusted")
    metrics = about["metrics"]
    assert metrics["received_bytes/tcp-1/downlink"] == 102_400
    found = metrics["transfer_time/tcp-1/downlink"]
    recorded = pl.read_csv(RECORDED, schema=SCHEMA).filter(pl.col("metric") == "transfer_time")
    (live,) = recorded.filter(pl.col("set") == f"live/{CELL}").rows(named=True)
    assert 0.9 * live["p10"] < found < 1.1 * live["p90"]
    # The comparison of live and warp finds nothing between two runs of one seed.
    assert compare.main([str(run) for run in runs]) == 0
    assert capsys.readouterr().out.startswith("all ")
