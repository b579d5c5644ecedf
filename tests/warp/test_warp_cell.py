# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The study of a shared cell in virtual time, with three of its users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sharing
from airpath.engine import find_engine
from warp.conftest import WARP_PATIENCE_S

if TYPE_CHECKING:
    from warp.conftest import Warp

STUDY = Path(__file__).resolve().parent.parent.parent / "studies/cell-sharing"
START = "import sys; from airpath.cli import main; sys.exit(main())"
USERS = ["cubic-1", "call", "bbr-10"]


def reduced(folder: Path) -> Path:
    """Write the study with three users, 5 s and one replication in warp."""
    head, *paths = (STUDY / "scenario.toml").read_text().split("\n[[paths]]\n")
    kept = [path for path in paths if path.split('"')[1] in USERS]
    assert len(kept) == len(USERS)
    (folder / "scenario.toml").write_text("\n[[paths]]\n".join([head, *kept]))
    text, cut, _ = (STUDY / "experiment.toml").read_text().partition("[[sets]]")
    assert cut
    sets = (
        'name = "warp"\nclock = "warp"\nnetwork = ["max-ci"]\nworkload = "mix"\nrepetitions = 1\n'
    )
    file = folder / "experiment.toml"
    file.write_text(text.replace('"20 s"', '"5 s"') + cut + "\n" + sets)
    return file


def test_users_of_a_cell_share_it(
    warp: Warp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            START,
            "run",
            str(reduced(tmp_path)),
            "--out",
            str(tmp_path / "out"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=WARP_PATIENCE_S,
        env={**os.environ, **warp.environment, "AIRPATH_ENGINE": find_engine()},
    )
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "out/runs/warp").glob("*/0001")
    about = json.loads((run / "replication.json").read_text())
    assert (about["status"], about["verdict"]) == ("succeeded", "trusted")
    metrics = about["metrics"]
    assert 1 / 3 < metrics["jain_fairness_users/downlink"] < 1
    found = sharing.read(run)
    assert list(found.users) == USERS
    # The near user has the cell under max_ci, and the far one what is left over.
    near, far = found.users["bbr-10"], found.users["cubic-1"]
    assert near.throughput_bps > 3 * far.throughput_bps
    assert far.delays_s[0] > near.delays_s[0] > 0.010
    assert 0 < found.users["call"].throughput_bps < 430_000
    kinds = {
        name: json.loads((run / f"programs/{name}.stdout").read_text())["end"]
        for name in ("download-cubic-1", "download-by-bbr-bbr-10")
    }
    assert [end["sender_tcp_congestion"] for end in kinds.values()] == ["cubic", "bbr"]
    sharing.main([str(tmp_path / "out"), "--picture", str(tmp_path / "sharing.png")])
    assert "| `max_ci` | warp | 1 | 1 |" in capsys.readouterr().out
    assert (tmp_path / "sharing.png").stat().st_size > 10_000
