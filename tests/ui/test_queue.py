# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments in the queue of the page: the time that is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airpath.ui import queue
from airpath.ui.queue import Entry
from airpath.ui.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_time_left_does_not_count_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 s until the first runs are complete, then one a second: 36 more take 36 s."""
    entry = Entry(1, "file.toml", "results", "running", begun_s=100.0, done_before=10)
    monkeypatch.setattr(queue, "_planned", lambda _out: 50)
    left = []
    for now_s, done in ((110, 10), (120, 12), (121, 13), (122, 14)):
        monkeypatch.setattr(time, "monotonic", lambda now_s=now_s: float(now_s))
        monkeypatch.setattr(queue, "_done", lambda _out, done=done: done)
        left.append(entry.about(Workspace(tmp_path))["left_s"])
    assert left == [None, 380.0, 37.0, 36.0]
