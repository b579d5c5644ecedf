# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Plans that the page asks for: one pilot at a time, which ends with its time, page or server."""

from __future__ import annotations

import http.client
import json
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from airpath.ui import plans, queue
from airpath.ui.errors import UiError
from airpath.ui.plans import Plans
from airpath.ui.workspace import Workspace
from live.harness import await_true
from processes import has_ended
from ui.served import PATIENCE_S, Served

LONG = """name = "long"
seed = 1

[networks.link]
profile = "lte-good"

[workloads.flood]
virtual = ["cbr rate=10Mbit/s size=200B duration=100h"]

[[sets]]
name = "model"
clock = "virtual"
network = "link"
workload = "flood"
repetitions = 1
"""
STUBBORN = "trap '' TERM; sleep 600 & echo $! > started; mv started child; wait"
"""A command that ignores SIGTERM, as does what it starts."""


def pilots(folder: Path) -> list[int]:
    """Return the processes that try cells of experiments in a workspace."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"--pilot" in words and any(str(folder).encode() in word for word in words):
                found.append(int(path.parent.name))
    return found


@pytest.fixture
def stubborn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plans:
    """Return plans of a workspace, each of which takes ten minutes and ignores SIGTERM."""
    monkeypatch.setattr(plans, "COMMAND", ("sh", "-c", STUBBORN))
    monkeypatch.setattr(plans, "END_S", 0.1)
    return Plans(Workspace(tmp_path))


def test_a_pilot_that_takes_too_long_ends_with_all_that_it_started(
    stubborn: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "PILOT_PATIENCE_S", 3)
    with pytest.raises(UiError, match=r"0\.05 min .* `airpath plan --pilot long\.toml`"):
        stubborn.pilot("long.toml")
    child = int((tmp_path / "child").read_text())
    await_true(lambda: has_ended(child), seconds=PATIENCE_S)


def test_one_pilot_at_a_time_which_ends_with_the_plans(stubborn: Plans, tmp_path: Path) -> None:
    told: list[UiError] = []

    def tried() -> None:
        try:
            stubborn.pilot("long.toml")
        except UiError as error:
            told.append(error)

    first = threading.Thread(target=tried)
    first.start()
    await_true((tmp_path / "child").exists, seconds=PATIENCE_S)
    with pytest.raises(UiError, match="are being tried") as second:
        stubborn.pilot("long.toml")
    assert second.value.status == 409
    stubborn.close()
    first.join(PATIENCE_S)
    child = int((tmp_path / "child").read_text())
    await_true(lambda: has_ended(child), seconds=PATIENCE_S)
    assert [(one.status, "ended with the page's server" in str(one)) for one in told] == [
        (503, True)
    ]
    with pytest.raises(UiError, match="ended with the page's server"):
        stubborn.plan("long.toml")


def test_a_pilot_ends_with_the_server(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)

    def tried(page: Served) -> None:
        with suppress(OSError, http.client.HTTPException):  # of a server that ends
            page.ask("/api/plan/pilot", {"name": "long.toml"})

    with Served(tmp_path) as page:
        first = threading.Thread(target=tried, args=(page,))
        first.start()
        await_true(lambda: bool(pilots(tmp_path)), seconds=PATIENCE_S)
        assert page.ask("/api/plan/pilot", {"name": "long.toml"}).status == 409
        page.process.send_signal(signal.SIGINT)
        page.process.wait(PATIENCE_S)
        first.join(PATIENCE_S)
    await_true(lambda: not pilots(tmp_path), seconds=PATIENCE_S)


def ask_pilot(page: Served, asking: http.client.HTTPConnection) -> None:
    """Ask for a pilot, and do not wait for it."""
    body = json.dumps({"name": "long.toml"})
    asking.request("POST", "/api/plan/pilot", body, {"Authorization": f"Bearer {page.token}"})


def test_a_pilot_ends_with_the_page_that_asked(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    with Served(tmp_path) as page:
        asking = http.client.HTTPConnection("127.0.0.1", page.port)
        ask_pilot(page, asking)
        await_true(lambda: bool(pilots(tmp_path)), seconds=PATIENCE_S)
        asking.close()
        await_true(lambda: not pilots(tmp_path), seconds=PATIENCE_S)
        assert page.process.poll() is None


def test_a_pilot_and_the_queue_take_turns(tmp_path: Path) -> None:
    """An experiment waits for a pilot, with words; a pilot beside an experiment is refused."""
    (tmp_path / "long.toml").write_text(LONG)
    queued = {"file": "long.toml", "out": "results/long"}
    with Served(tmp_path) as page:
        asking = http.client.HTTPConnection("127.0.0.1", page.port)
        ask_pilot(page, asking)
        await_true(lambda: bool(pilots(tmp_path)), seconds=PATIENCE_S)
        assert page.ask("/api/queue", queued).json["state"] == "waiting"
        (listed,) = page.ask("/api/queue").json["queue"]
        assert listed["state"] == "waiting"
        assert listed["message"].startswith("It waits: cells of long.toml are being tried")
        asking.close()
        page.until("/api/queue", lambda found: found["queue"][0]["state"] == "running")
        refused = page.ask("/api/plan/pilot", {"name": "long.toml"})
        assert refused.status == 409
        assert "the experiment long.toml runs" in refused.json["error"]
        page.ask("/api/queue/1/pause", {})
        page.until("/api/queue", lambda found: found["queue"][0]["state"] == "paused")


@pytest.mark.parametrize(
    ("replications", "planned"),
    [
        ("[3, 5]", 12),
        ("[1, Infinity]", 0),
        ("[1, 1e400]", 0),
        ("[" * 100_000, 0),
        ("[3, -5]", 0),
        ("[3]", 0),
        ('[3, "5"]', 0),
        ("null", 0),
    ],
)
def test_the_number_of_a_bad_plan_is_unknown(
    replications: str, planned: int, tmp_path: Path
) -> None:
    for name in ("bad", "good"):
        (tmp_path / "results" / name).mkdir(parents=True)
        text = json.dumps({"cells": [{"replications": [7, 7]}, {"replications": "HERE"}]})
        text = text.replace('"HERE"', replications if name == "bad" else "[1, 2]")
        (tmp_path / "results" / name / "plan.json").write_text(text)
    entries = {
        number: queue.Entry(number, "any.toml", f"results/{name}", "paused")
        for number, name in enumerate(("bad", "good"), 1)
    }
    listed = queue.Queue(Workspace(tmp_path), entries).listed()
    assert [one["planned"] for one in listed] == [planned, 9]
