# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath sim --quiet``: silent where all went well, and never about what failed."""

from __future__ import annotations

import subprocess

from airpath.engine import find_engine


def simulate(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), "sim", "--quiet", "--profile", "edge", "--seed", "1", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_quiet_says_which_workload_was_not_done() -> None:
    late = simulate("--workload", "tcp bytes=10MB", "--duration", "500 ms")
    assert late.returncode == 1
    assert late.stderr.startswith("airpath: tcp-1: incomplete at the end of the run")


def test_quiet_says_nothing_where_all_was_done() -> None:
    done = simulate("--workload", "tcp bytes=10kB")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
