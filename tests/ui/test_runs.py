# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs that the page starts, follows, controls and ends; and the queue of experiments."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airpath.run import load_run
from airpath.ui.feed import Feed
from live.harness import await_true
from processes import has_ended
from ui.served import PATIENCE_S, Served, started


def ended(page: Served, name: str) -> dict[str, Any]:
    """Wait for the end of a run."""
    found: dict[str, Any] = page.until(
        f"/api/started/{name}/console", lambda one: not one["running"]
    )
    return found


def test_a_run_is_followed_and_its_curves_are_those_of_its_log(served: Served, link: str) -> None:
    run = started(served, "followed", link)
    changed = served.ask(
        f"/api/runs/{run['run']}/command", {"set": {"radio.link.propagation": "30 ms"}}
    )
    assert changed.status == 200, changed.body
    got = served.ask(f"/api/runs/{run['run']}/command", {"get": ["radio.uplink.propagation"]})
    assert got.json["values"] == {"radio.uplink.propagation": "30 ms"}
    lines = [
        json.loads(line) for line in served.ask(f"/api/runs/{run['run']}/follow").body.splitlines()
    ]
    assert lines[-1] == {"ended": True, "killed": False}
    about = ended(served, "followed")
    assert about["exit_status"] == 0, about["text"]
    assert "40 packets transmitted" in about["text"]
    events = load_run(served.folder / "results/followed").events
    wanted = Feed().add(events, last=True)
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for line in lines:
        for name, (times, values) in line.get("curves", {}).items():
            known = curves.setdefault(name, ([], []))
            known[0].extend(times)
            known[1].extend(values)
    for name, points in wanted["curves"].items():
        assert curves[name][0] == pytest.approx(points[0]), name
        assert curves[name][1] == pytest.approx(points[1]), name
    marks = [mark["kind"] for line in lines for mark in line.get("marks", [])]
    assert "parameter_set" in marks
    past = {one["name"] for one in served.ask("/api/past").json}
    assert "results/followed" in past


def test_refusals_of_a_run_are_passed_on(served: Served, link: str) -> None:
    run = started(served, "refusing", link, "sleep 60")
    address = f"/api/runs/{run['run']}/command"
    for body, words in (
        ({"set": {"radio.link.rat": "1 Mbit/s"}}, "rate"),
        ({"set": {"radio.link.rate": "fast"}}, "rate"),
        ({"state": "tunnel"}, "initial"),
    ):
        answer = served.ask(address, body)
        assert answer.status == 422, answer.body
        assert words in answer.json["error"]
    assert served.ask(address, {}).status == 400
    served.ask("/api/started/refusing/stop", {})
    about = ended(served, "refusing")
    assert about["exit_status"] != 0
    assert load_run(served.folder / "results/refusing").events.height >= 0
    assert served.ask(address, {"state": "initial"}).status == 410
    assert served.ask("/api/started/nothing/stop", {}).status == 404


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "../x"}, "no name for a run"),
        ({"name": ""}, "no name for a run"),
        ({"client": " "}, "needs a command"),
        ({"clock": "sundial"}, "clock"),
        ({"toml": 5}, "toml"),
    ],
)
def test_a_run_that_cannot_be_started_says_why(
    served: Served, link: str, change: dict[str, Any], words: str
) -> None:
    answer = served.ask("/api/runs", {"toml": link, "name": "bad", "client": "true"} | change)
    assert answer.status == 400
    assert words in answer.json["error"]


def test_a_scenario_with_mistakes_ends_with_their_words(served: Served, link: str) -> None:
    body = {"toml": link.replace("Mbit", "Mbot"), "name": "mistaken", "client": "true"}
    assert served.ask("/api/runs", body).status == 200
    about = ended(served, "mistaken")
    assert about["exit_status"] == 2
    assert "Mbot" in about["text"]


def test_files_that_a_scenario_names_are_found_beside_it(served: Served, link: str) -> None:
    folder = served.folder / "links"
    folder.mkdir()
    (folder / "walk.csv").write_text("time,rate\n0 s,1 Mbit/s\n2 s,3 Mbit/s\n")
    rate = 'rate = { type = "trace", file = "walk.csv" }'
    toml = link.replace('rate = "5 Mbit/s"', rate)
    body = {"toml": toml, "file": "links/walk.toml"}
    assert served.ask("/api/scenario/check", body).json["valid"]
    assert not served.ask("/api/scenario/check", {"toml": toml}).json["valid"]
    run = served.ask("/api/runs", body | {"name": "walked", "client": "true"}).json
    assert ended(served, run["name"])["exit_status"] == 0
    assert load_run(served.folder / "results/walked").manifest["status"] == "finished"
    await_true(lambda: [one.name for one in folder.iterdir()] == ["walk.csv"])
    elsewhere = body | {"name": "elsewhere", "client": "true", "file": "../walk.toml"}
    assert served.ask("/api/runs", elsewhere).status == 403
    assert not (served.folder / "results/elsewhere.toml").exists()
    shutil.rmtree(folder)


def test_two_runs_of_one_name_get_two_folders(served: Served, link: str) -> None:
    names = [
        served.ask("/api/runs", {"toml": link, "name": "twice", "client": "true"}).json["name"]
        for _ in range(2)
    ]
    assert names == ["twice", "twice-2"]
    for name in names:
        assert ended(served, name)["exit_status"] == 0


def test_a_run_goes_on_when_the_server_is_killed(tmp_path: Path, link: str) -> None:
    with Served(tmp_path) as page:
        started(page, "orphan", link, "ping -c 30 -i 0.1 server")
        page.process.kill()
        page.process.wait()
    manifest = tmp_path / "results/orphan/run.json"
    end = time.monotonic() + PATIENCE_S
    while not manifest.exists() or json.loads(manifest.read_text()).get("status") != "finished":
        assert time.monotonic() < end
        time.sleep(0.1)
    run = load_run(tmp_path / "results/orphan")
    assert run.results["duration_ns"] > 2_000_000_000
    assert "30 packets transmitted" in (tmp_path / "results/orphan-console.txt").read_text()


def test_runs_end_with_the_server_and_keep_what_they_recorded(tmp_path: Path, link: str) -> None:
    with Served(tmp_path) as page:
        run = started(page, "ending", link, "ping -i 0.1 server")
        pid = next(one["pid"] for one in page.ask("/api/runs").json["started"])

        def follow() -> None:
            with suppress(OSError, http.client.HTTPException):  # of a server that ends
                page.ask(f"/api/runs/{run['run']}/follow")

        # A browser that follows must not hold the end up.
        follower = threading.Thread(target=follow)
        follower.start()
        time.sleep(1)
        page.process.send_signal(signal.SIGINT)
        page.process.wait(PATIENCE_S)
        follower.join(PATIENCE_S)
    await_true(lambda: has_ended(pid), seconds=PATIENCE_S)
    assert load_run(tmp_path / "results/ending").events.height > 0


EXPERIMENT = """name = "queued"
seed = 1

[networks.link]
profile = "lte-good"
link = { loss = "1%" }

[workloads.download]
virtual = ["tcp bytes=20kB from=server cc=cubic"]

[[sets]]
name = "model"
clock = "virtual"
network = "link"
workload = "download"
repetitions = 3
"""


def test_an_experiment_waits_runs_and_is_looked_at(served: Served) -> None:
    (served.folder / "queued.toml").write_text(EXPERIMENT)
    plan = served.ask("/api/plan?name=queued.toml").json
    assert [cell["replications"] for cell in plan["cells"]] == [[3, 3]]
    body = {"file": "queued.toml", "out": "results/queued"}
    number = served.ask("/api/queue", body).json["number"]
    listed = served.until(
        "/api/queue",
        lambda found: all(one["state"] in ("finished", "failed") for one in found["queue"]),
    )
    mine = next(one for one in listed["queue"] if one["number"] == number)
    assert (mine["state"], mine["done"]) == ("finished", 3)
    assert served.ask(f"/api/queue/{number}/pause", {}).status == 400
    assert served.ask("/api/queue", body | {"out": "../elsewhere"}).status == 400
    assert served.ask("/api/queue", body | {"file": "nothing.toml"}).status == 404
    assert served.ask(f"/api/queue/{number}", method="DELETE").status == 200
    assert number not in [one["number"] for one in served.ask("/api/queue").json["queue"]]


def test_an_experiment_with_mistakes_names_them(served: Served) -> None:
    (served.folder / "wrong.toml").write_text(EXPERIMENT.replace("lte-good", "lte-gud"))
    answer = served.ask("/api/plan?name=wrong.toml")
    assert answer.status == 400
    assert "lte-gud" in answer.json["error"]
