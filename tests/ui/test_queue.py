# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments in the queue of the page: the time that is left, and what cannot start."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airpath.ui import queue
from airpath.ui.queue import Entry, Queue
from airpath.ui.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_time_left_does_not_count_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 s until the first runs are complete, then one a second: 36 more take 36 s."""
    entry = Entry(1, "file.toml", "results", "running")
    monkeypatch.setattr(queue, "_planned", lambda _out: 50)
    left = []
    for now_s, done in ((110, 10), (120, 12), (121, 13), (122, 14)):
        monkeypatch.setattr(time, "monotonic", lambda now_s=now_s: float(now_s))
        monkeypatch.setattr(queue, "_done", lambda _out, done=done: done)
        left.append(entry.about(Workspace(tmp_path))["left_s"])
    assert left == [None, None, 37.0, 36.0]


def test_an_entry_that_waits_says_for_what(tmp_path: Path) -> None:
    waiting = Queue(Workspace(tmp_path))
    waiting.entries = {
        1: Entry(1, "one.toml", "results/one", "waiting"),
        2: Entry(2, "two.toml", "results/two", "failed", message="no such key"),
    }
    waiting.turn.take("the pilot of three.toml runs")
    told = [entry["message"] for entry in waiting.listed()]
    assert told == ["It waits: the pilot of three.toml runs.", "no such key"]


def test_an_experiment_that_cannot_start_leaves_the_turn_to_the_next(tmp_path: Path) -> None:
    """A file that has become a link out of the workspace is refused, and the queue goes on."""
    (tmp_path / "out.toml").symlink_to("/etc/hostname")
    (tmp_path / "results").mkdir()
    waiting = Queue(Workspace(tmp_path))
    waiting.entries = {1: Entry(1, "out.toml", "results/one")}
    waiting.turn.freed = lambda: None
    waiting._next()
    assert waiting.entries[1].state == "failed"
    assert waiting.entries[1].message
    assert waiting.turn.take("another") == ""
