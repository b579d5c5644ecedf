# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The example of docs/testing.md: tests of a client behind two links, in virtual time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from live.harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = ROOT / "examples" / "retrying-client"


def test_the_client_passes_on_wifi_and_gives_up_on_the_train(tmp_path: Path, kernel: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("__pycache__"))
    options = ("-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider", "--airpath-keep")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *options, "--airpath-results=results", "."],
        cwd=tmp_path / "example",
        capture_output=True,
        text=True,
        env={**os.environ, "AIRPATH_WARP_KERNEL": str(kernel)},
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    lines = re.findall(r"^(PASSED|FAILED) \S*::(\S+)", done.stdout, re.MULTILINE)
    told = {name: word for word, name in lines}
    assert told == {
        "test_the_page_arrives[wifi]": "PASSED",
        "test_the_page_arrives[train]": "FAILED",
        "test_a_patient_client_arrives_behind_the_tunnel": "PASSED",
    }, done.stdout
    assert "exit status 1: gave up after 3 attempts" in done.stdout
    assert re.search(r"^dropped uplink \d+ blackout, downlink \d+ blackout$", done.stdout, re.M)
    assert re.search(r"^verdict trusted$", done.stdout, re.MULTILINE)
    results = tmp_path / "example" / "results"
    assert len([path for path in results.iterdir() if path.is_dir()]) == 3
