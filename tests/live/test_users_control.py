# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""States and parameters of the users of a running cell, changed from outside."""

from __future__ import annotations

import json
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from airpath import control
from airpath.run import load_run
from live.test_users import CELL

if TYPE_CHECKING:
    from live.harness import Airpath, Result, Way


class Cell:
    """A run of alice and bob that goes on until it is ended."""

    def __init__(self, airpath: Airpath, way: Way) -> None:
        """Start it and wait until both have begun."""
        self.airpath, self.way, self.out = airpath, way, airpath.path("run")
        cell = airpath.file("cell.toml", CELL)
        self.process = airpath.start(
            "exec", "--port", way.port, "--quiet", "--scenario", cell, "--out", self.out,
            "--log", "events", "--client", "bob=echo go; exec ping -q -i 0.05 server",
            "--", "sh", "-c", "echo go; exec sleep 100", user=way.user,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert [self.process.stdout.readline() for _ in range(2)] == ["go\n", "go\n"]

    def command(self, *words: object) -> Result:
        """Run a command of the run's owner."""
        return self.airpath.run(*words, user=self.way.user)

    def answer(self, *words: object) -> dict[str, Any]:
        """Run one that must work, and return the answer."""
        return self.command(*words, "--json").check().document()


def test_users_are_controlled_one_by_one_and_together(airpath: Airpath, port_way: Way) -> None:
    cell = Cell(airpath, port_way)
    both = {"alice": "initial", "bob": "initial"}
    answers = [
        cell.answer("set", "radio.link.propagation=20 ms"),
        cell.answer(
            "set", "alice.radio.downlink.propagation=80 ms", "radio.uplink.propagation=5 ms"
        ),
    ]
    assert [(answer["state"], answer["user_states"]) for answer in answers] == [
        ("initial", both)
    ] * 2
    answers += [cell.answer("state", name) for name in ("far", "bob.initial", "bob.far")]
    assert [answer["state"] for answer in answers[2:]] == [None, "initial", None]
    assert answers[-1]["user_states"] == {**both, "bob": "far"}
    answers.append(cell.answer("set", cell.out, "bob.radio.downlink.propagation=7 ms"))
    listed = cell.command("runs").check().out.split("\t")
    assert listed[2] == "alice: initial; bob: far"
    assert listed[4].startswith("alice: sh -c echo go; exec sleep 100; bob: /bin/sh -c")
    (about,) = (json.loads(line) for line in cell.command("runs", "--json").out.splitlines())
    assert [(user["name"], user["states"]) for user in about["users"]] == [
        ("alice", ["initial"]),
        ("bob", ["initial", "far"]),
    ]
    for words, parts in {
        ("set", "carol.radio.link.propagation=1 ms"): (
            "no user or hop `carol`",
            "alice.…",
            "radio.…",
        ),
        ("set", "bob.rdio.link.propagation=1 ms"): ("no hop `rdio`", "bob.radio.link.propagation"),
        ("set", "radio.link.propagation=1"): ("alice.radio.link.propagation", "unit"),
        ("set", "media.cell.downlink=1 Mbit/s"): ("stays as it is during a run",),
        ("state", "alice.far"): ("no state `alice.far`", "initial"),
        ("state", "dark"): ("initial, far (of bob)",),
        ("state", "carol.far"): ("no user `carol`; the users are alice, bob",),
    }.items():
        refused = cell.command(*words).check(2)
        assert all(part in refused.err for part in parts), refused.err
    cell.process.send_signal(signal.SIGINT)
    cell.process.communicate(timeout=60)
    run = load_run(cell.out)
    changes = run.events.filter(run.events["kind"].is_in(["parameter_set", "state_changed"]))
    changed = {
        answer["time_ns"]: set(changes.filter(changes["time_ns"] == answer["time_ns"])["user"])
        for answer in answers
    }
    assert list(changed.values()) == [{"alice", "bob"}] * 2 + [{"bob"}] * 4
    assert [title for _, title in run.state_changes()] == ["bob: far", "bob: initial", "bob: far"]
    assert "identical" in airpath.run("replay", cell.out, user=port_way.user).check().out


def test_python_controls_users(
    airpath: Airpath, port_way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    if port_way.user.prefix:
        pytest.skip("the run belongs to another user")
    monkeypatch.setenv("TMPDIR", str(airpath.temporary))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    cell = Cell(airpath, port_way)
    with control.connect() as run:
        assert run.set({"bob.radio.link.propagation": "6 ms"}).state == "initial"
        effect = run.state("bob.far")
        assert (effect.state, effect.user_states["bob"]) == (None, "far")
        assert run.get("alice.radio.link.propagation") == "10 ms"
        assert run.get("radio.downlink.propagation") == {"alice": "10 ms", "bob": "6 ms"}
        assert run.get("radio.uplink.propagation") == {"alice": "10 ms", "bob": "90 ms"}
        users = {user.name: (user.state, user.command[0]) for user in run.describe().users}
        assert users == {"alice": ("initial", "sh"), "bob": ("far", "/bin/sh")}
    cell.process.send_signal(signal.SIGINT)
    cell.process.communicate(timeout=60)
