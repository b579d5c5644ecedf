# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""States that last, blackouts under real programs, and changes from outside of a live run."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from airpath import control
from airpath.run import load_run
from live import harness
from live.harness import Airpath, User, Way, await_true, end_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.run import Run

MS = 1_000_000
USAGE = 2

HANDOVER = """
[[hops]]
name = "radio"
[hops.link]
rate = "2 Mbit/s"
propagation = "10 ms"

[[hops]]
name = "backhaul"
[hops.link]
propagation = "5 ms"

[[states]]
name = "handover"
at = "2 s"
duration = "250 ms"
next = "new-cell"
set = { "radio.link.blackout" = "HOW" }

[[states]]
name = "new-cell"
set = { "radio.link.rate" = "1 Mbit/s", "backhaul.link.propagation" = "20 ms" }
"""
BEGIN, END = 2000 * MS, 2250 * MS
"""Late enough for both programs to have started and to be sending, also on a loaded machine."""


def transfer(airpath: Airpath, way: Way, how: str) -> Run:
    """Send 700 kB through a handover; the two ends check every byte."""
    out, report = airpath.path("run"), airpath.path("report")
    scenario = airpath.file("handover.toml", HANDOVER.replace("HOW", how))
    server = airpath.server("tcp-server", 4, 9000, report)
    client = airpath.program("tcp-client", 4, 9000, 700_000, 1000)
    arguments = ("--scenario", scenario, "--out", out, "--log", "events", "--server", server)
    airpath.exec(way, *arguments, "--", *client).check()
    airpath.run("replay", out, user=way.user).check()
    return load_run(out)


def uplink(run: Run, kind: str) -> pl.DataFrame:
    """Return the events of a kind in the uplink."""
    return run.events.filter((pl.col("kind") == kind) & (pl.col("direction") == "uplink"))


def test_stored_packets_arrive_in_order_after_a_handover(airpath: Airpath, way: Way) -> None:
    run = transfer(airpath, way, "store")
    changes = run.events.filter(pl.col("kind") == "state_changed")
    assert changes["time_ns"].to_list() == [BEGIN, END]
    assert changes["state"].to_list() == ["handover", "new-cell"]
    assert run.events.filter(pl.col("cause") == "blackout").height == 0
    delivered = uplink(run, "delivered")
    assert delivered["pdu"].is_sorted()
    # What is on the backhaul when it begins arrives; then nothing, until it is over.
    dark = delivered.filter(pl.col("time_ns").is_between(BEGIN + 5 * MS, END, closed="right"))
    assert dark.height == 0
    # What propagated over the radio comes out of it at the very end, in order, and was sent before.
    passed = uplink(run, "passed").filter(pl.col("time_ns") == END)
    assert passed.height > 0
    sent = uplink(run, "frame_sent").filter(pl.col("hop") == "radio")
    sent_before = sent.filter(pl.col("time_ns") <= BEGIN)["pdu"].to_list()
    assert passed["pdu"].to_list() == sent_before[-passed.height :]
    # No frame starts in the dark.
    started = uplink(run, "frame_started").filter(pl.col("hop") == "radio")
    assert started.filter(pl.col("time_ns").is_between(BEGIN, END, closed="none")).height == 0


def test_dropped_packets_do_not_arrive(airpath: Airpath, way: Way) -> None:
    run = transfer(airpath, way, "drop")
    dropped = uplink(run, "dropped").filter(pl.col("cause") == "blackout")
    assert dropped.height > 0
    assert not set(dropped["pdu"]) & set(uplink(run, "delivered")["pdu"])
    between = dropped["time_ns"]
    assert between.min() == BEGIN
    # The last is one that came, or whose transmission would have ended, within it.
    assert dropped["time_ns"].to_list()[-1] <= END


class Live:
    """A run over a plain link that goes on until it is ended."""

    def __init__(self, airpath: Airpath, user: User, name: str = "run", **options: object) -> None:
        """Start it and wait until it can be controlled."""
        self.airpath, self.user, self.out = airpath, user, airpath.path(name)
        scenario = airpath.file(
            "plain.toml", HANDOVER.replace('at = "2 s"', "").replace("HOW", "store")
        )
        self.process = airpath.start(
            "exec", "--port", "packet", "--quiet", "--scenario", scenario, "--out", self.out,
            "--log", "events", "--", "ping", "-q", "-i", "0.02", "server", user=user, **options,
        )  # fmt: skip
        told = self.command("runs")

        def is_listed() -> bool:
            nonlocal told
            told = self.command("runs")
            return str(self.out) in told.out

        await_true(is_listed, lambda: f"{self.out} is not among the runs: {told}; {airpath.tree()}")

    def command(self, *words: object) -> harness.Result:
        """Run a command of the run's owner."""
        return self.airpath.run(*words, user=self.user)

    def answer(self, *words: object) -> dict[str, Any]:
        """Run one that must work, and return the answer."""
        answer = json.loads(self.command(*words, "--json").check().out)
        assert isinstance(answer, dict)
        return answer

    def end(self) -> Run:
        """End the run as its user would, and read what it left."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=60)
        # ping says 1 where nothing has come back yet, and ends by the signal before it listens.
        assert self.process.returncode in (0, 1, 128 + signal.SIGINT), err
        return load_run(self.out)


def test_changes_from_outside_take_effect_at_once_and_replay(airpath: Airpath, user: User) -> None:
    live = Live(airpath, user)
    answers = [
        live.answer("set", "radio.link.rate=512 kbit/s", "radio.uplink.propagation='12 ms'"),
        live.answer("state", live.out, "new-cell"),
        live.answer("set", "run", "radio.link.rate=64 kbit/s"),
        live.answer("state", "1", "handover"),
        live.answer("state", "initial"),
        live.answer("set", "1", "radio.link.errors={ type = 'bernoulli', probability = 0.2 }"),
    ]
    run = live.end()
    changes = run.events.filter(pl.col("kind").is_in(["state_changed", "parameter_set"]))
    times = [answer["time_ns"] for answer in answers]
    assert set(times) <= set(changes["time_ns"].to_list())
    assert changes["kind"].to_list().count("parameter_set") == 3
    # By the engine's own stamps. One may meet a moment in which the machine was ahead; not most.
    late = sorted(answer["time_ns"] - answer["received_ns"] for answer in answers)
    assert late[0] >= 0
    assert late[len(late) // 2] <= MS, late
    result = live.command("replay", live.out).check()
    assert "identical" in result.out


def test_python_controls_a_run(airpath: Airpath, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(airpath, harness.users()[0])
    monkeypatch.setenv("TMPDIR", str(airpath.temporary))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert [run.folder for run in control.runs()] == [live.out]
    with control.connect(live.out) as run:
        about = run.describe()
        assert (about.states, about.state) == (("initial", "handover", "new-cell"), "initial")
        effect = run.set(
            {"radio.downlink.rate": "64 kbit/s", "radio.link.queue": {"type": "head_drop"}}
        )
        assert effect.time_ns >= effect.received_ns
        assert run.get("radio.downlink.rate") == "64 kbit/s"
        assert run.get("radio.link.rate") == {"uplink": "2 Mbit/s", "downlink": "64 kbit/s"}
        assert run.state("new-cell").state == "new-cell"
        assert run.get("radio.downlink.rate") == "1 Mbit/s"
        refusals: list[tuple[Callable[[], object], str, str]] = [
            (lambda: run.set({"radio.link.rat": "1 Mbit/s"}), "parameter", "radio.link.rate"),
            (lambda: run.set({"radio.link.rate": True}), "parameter", "rate"),
            (lambda: run.set({}), "request", "parameter"),
            (lambda: run.state("nowhere"), "state", "new-cell"),
            (lambda: run.get("radio.link.rat"), "parameter", "rate"),
        ]
        for call, kind, part in refusals:
            with pytest.raises(control.ControlError, match=part) as refused:
                call()
            assert refused.value.kind == kind
        live.end()
        with pytest.raises(control.ControlError):
            run.describe()
    with pytest.raises(control.ControlError, match="none"):
        control.connect()


def test_two_runs_are_told_apart(airpath: Airpath, user: User) -> None:
    one, two = Live(airpath, user, "one"), Live(airpath, user, "two")
    unclear = one.command("set", "radio.link.rate=64 kbit/s").check(USAGE)
    assert "several" in unclear.err
    assert str(one.out) in unclear.err
    assert one.answer("state", "two", "new-cell")["state"] == "new-cell"
    states = [json.loads(line)["state"] for line in one.command("runs", "--json").out.splitlines()]
    assert states == ["initial", "new-cell"]
    one.end()
    assert two.answer("set", "radio.link.rate=64 kbit/s")["state"] == "new-cell"
    missing = two.command("state", "one", "initial").check(USAGE)
    assert "`one`" in missing.err
    two.end()
    gone = two.command("state", "initial").check(USAGE)
    assert "no active runs" in gone.err


def test_only_the_owner_may_control_a_run(airpath: Airpath) -> None:
    users = harness.users()
    live = Live(airpath, users[0])
    (folder,) = airpath.temporary.iterdir()
    (path,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if len(users) > 1:
        other = airpath.run("set", "radio.link.rate=1 bit/s", user=users[1]).check(USAGE)
        assert "no active runs" in other.err
        # Even with the doors open.
        folder.chmod(0o755)
        path.chmod(0o666)
        script = (
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
            "print(s.makefile().readline())"
        )
        relative = os.path.relpath(path, airpath.work)
        words = [*users[1].prefix, airpath.python, "-c", script, relative]
        said = subprocess.run(words, capture_output=True, text=True, cwd=airpath.work, check=True)
        assert json.loads(said.stdout)["error"]["kind"] == "owner"
        folder.chmod(0o700)
    live.end()


def test_what_a_killed_run_leaves_is_removed(airpath: Airpath, user: User) -> None:
    live = Live(airpath, user)
    end_process(live.process)
    airpath.wait_until_gone()
    assert list(airpath.temporary.glob("*/1.sock"))
    assert "no active runs" in live.command("runs").check().err
    assert list(airpath.temporary.iterdir()) == []
