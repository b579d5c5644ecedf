# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""CONTRIBUTING's recipes for Python, tried with toys in a scratch copy of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airpath.engine import find_engine

ROOT = Path(__file__).parent.parent

CLI = "import sys; from airpath.cli import main; sys.exit(main())"

PICTURE = '''
"""A toy: one point for each packet that entered the link."""

from airpath.plots.style import Picture, panels


def draw(run, span):
    offered = run.path_events("offered")
    with panels(run, span, "Toy") as (figure, (axes,)):
        axes.plot(range(offered.height), range(offered.height), ".")
    return [Picture("toy", figure)]
'''


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package."""
    shutil.copytree(ROOT / "python/airpath", tmp_path / "scratch/airpath")
    return tmp_path / "scratch"


def python(copy: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(copy), "AIRPATH_ENGINE": str(find_engine())},
        cwd=copy, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_picture_is_one_file_and_one_entry(copy: Path, tmp_path: Path) -> None:
    plots = copy / "airpath/plots"
    (plots / "toy.py").write_text(PICTURE)
    kinds = (plots / "kinds.py").read_text()
    assert kinds.count("RUN = {\n") == 1
    (plots / "kinds.py").write_text(kinds.replace("RUN = {\n", 'RUN = {\n    "toy": "toy",\n'))
    run = tmp_path / "run"
    workload = "tcp bytes=20kB from=server"
    done = subprocess.run(
        [find_engine(), "sim", "--rate", "1 Mbit/s", "--seed", "1", "--workload", workload,
         "--out", str(run), "--quiet"],
        check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    drawn = python(copy, "-c", CLI, "plot", run, "--only", "toy", "--out", tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")


def test_a_cause_of_drops_is_known_everywhere_by_its_facts(copy: Path) -> None:
    # What `airpath facts` prints once the engine has the entry.
    file = copy / "airpath/facts.json"
    facts = json.loads(file.read_text())
    like = next(cause for cause in facts["causes"] if cause["class"] == "error")
    facts["causes"].append({**like, "name": "toy", "text": "a toy", "shape": "circle"})
    file.write_text(json.dumps(facts))
    told = python(
        copy,
        "-c",
        "from airpath.analysis.link_metrics import DROPS; "
        "from airpath.plots.style import drop_styles; "
        "print('toy' in DROPS['drops_error'][1], drop_styles(['toy'])['toy'].text)",
    )
    assert told.stdout.split("\n")[0] == "True a toy", told.stderr
