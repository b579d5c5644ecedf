# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Several links that share nothing, in one engine."""

from __future__ import annotations

import json
import signal
import tempfile
from typing import TYPE_CHECKING

import pytest

from airpath import control
from airpath.arrow import read_arrow_log
from airpath.experiment.folder import FolderError, open_results
from airpath.run import load_run
from airpath.ui.live import active
from live.harness import Result, await_true

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, Way

LINKS = """
[[media]]
name = "cell"
type = "continuous"
uplink = "10 Mbit/s"
downlink = "10 Mbit/s"
[[paths]]
name = "alice"
[[paths.hops]]
name = "radio"
link = { rate = "2 Mbit/s", propagation = "10 ms" }
[[paths.states]]
name = "far"
set."radio.link.propagation" = "60 ms"
[[paths]]
name = "bob"
[[paths.hops]]
name = "radio"
link = { medium = "cell", propagation = "20 ms" }
[[paths]]
name = "carol"
[[paths.hops]]
name = "radio"
link = { propagation = "30 ms", errors = { type = "bernoulli", probability = 0.3 } }
[[paths]]
name = "dave"
[[paths.hops]]
name = "radio"
link = { medium = "cell", propagation = "40 ms" }
"""
NAMES = ("alice", "cell", "carol")
"""Links in the order of their first users; bob and dave share one."""
PING = "ping -q -c 5 -i 0.05 -W 1 server >&2; exit 0"


def _commands(out: Path) -> int:
    """Return the number of commands in the input log of a run."""
    return int(read_arrow_log(out / "input.arrow").frame["command"].drop_nulls().len())


def test_each_link_is_a_run_of_its_own(airpath: Airpath, port_way: Way) -> None:
    links, out = airpath.file("links.toml", LINKS), airpath.path("run")
    line = f'echo "$AIRPATH_USER $AIRPATH_USER_INDEX of $AIRPATH_USERS"; {PING}'
    result = airpath.exec(
        port_way, "--scenario", links, "--seed", 5, "--out", out, "--loops", 2,
        "--client", "bob=kill -SEGV $$", "--", "sh", "-c", line,
    )  # fmt: skip
    # The crash of one is told, and felt by none.
    assert result.status == 128 + signal.SIGSEGV
    assert sorted(result.out.splitlines()) == ["alice 0 of 4", "carol 3 of 4", "dave 2 of 4"]
    assert sorted(path.name for path in out.iterdir()) == sorted(NAMES)
    told = {link["link"]: link for link in result.summary()["links"]}
    assert {name: link["exit_status"] for name, link in told.items()} == {
        "alice": 0, "cell": 128 + signal.SIGSEGV, "carol": 0,
    }  # fmt: skip
    killed = {
        name: [reason["code"] for reason in link["verdict"]["reasons"]].count("client_killed")
        for name, link in told.items()
    }
    assert killed == {"alice": 0, "cell": 1, "carol": 0}
    assert told["alice"]["uplink"]["delivered_packets"] == 5
    assert told["alice"]["uplink"]["delay"]["p50_ns"] // 1_000_000 == 10
    assert told["cell"]["uplink"]["delivered_packets"] == 5
    assert len({link["seed"] for link in told.values()}) == len(NAMES)
    for name in NAMES:
        assert load_run(out / name).manifest["settings"]["link"] == name
        airpath.run("replay", out / name).check()
    assert "holds the runs of several links" in airpath.run("replay", out).err
    one = out / "alice"
    with pytest.raises(FolderError, match=f"holds 3 runs, such as {one}: airpath report {out} "):
        open_results(out)
    with pytest.raises(FolderError, match=f"holds one run: airpath report {one} shows it"):
        open_results(one)


def test_a_link_alone_draws_the_same(airpath: Airpath, any_way: Way) -> None:
    links, out = airpath.file("links.toml", LINKS), airpath.path("run")
    airpath.exec(
        any_way, "--scenario", links, "--seed", 5, "--out", out, "--", "sh", "-c", PING
    ).check()
    seed = load_run(out / "carol").manifest["seed"]
    alone = LINKS[
        LINKS.index('[[paths]]\nname = "carol"') : LINKS.index('[[paths]]\nname = "dave"')
    ]
    single = airpath.path("single")
    airpath.exec(
        any_way, "--scenario", airpath.file("carol.toml", alone), "--seed", seed, "--out", single,
        "--", "sh", "-c", PING,
    ).check()  # fmt: skip
    lost = [
        load_run(folder).path_events("dropped")["pdu"].to_list()
        for folder in (out / "carol", single)
    ]
    assert lost[0] == lost[1]


class LosesCarol:
    """A run that has lost the link of carol; the others go on until told."""

    def __init__(self, airpath: Airpath, way: Way) -> None:
        """Start it, and wait until the link is lost."""
        self.out, self._go = airpath.path("run"), airpath.path("go")
        ping = "ping -q -c 40 -i 0.05 -W 1 server >&2"
        self._process = airpath.start(
            "exec", "--port", way.port, "--json", "--out", self.out, "--loops", 1,
            "--scenario", airpath.file("links.toml", LINKS),
            "--client", "carol=ip link delete airpath0; exec sleep 60",
            "--", "sh", "-c", f"{ping}; echo ready; until [ -e {self._go} ]; do sleep 0.1; done",
            user=way.user,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert [self._process.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
        await_true(lambda: "carol" not in self._states(airpath, way), "carol is not lost")

    @staticmethod
    def _states(airpath: Airpath, way: Way) -> dict[str, str]:
        about = json.loads(airpath.run("runs", "--json", user=way.user).check().out)
        states: dict[str, str] = about["user_states"]
        return states

    def end(self) -> Result:
        """End the others."""
        self._go.touch()
        out, err = self._process.communicate(timeout=60)
        return Result(self._process.returncode, out, err, 0.0)


def test_links_that_go_on_are_controlled_without_a_lost_one(
    airpath: Airpath, port_way: Way
) -> None:
    lost = LosesCarol(airpath, port_way)
    others = ["alice", "bob", "dave"]

    def do(*words: str, status: int = 0) -> Result:
        return airpath.run(*words, user=port_way.user).check(status)

    assert sorted(json.loads(do("runs", "--json").out)["user_states"]) == others
    assert json.loads(do("state", "far", "--json").out)["user_states"] == {"alice": "far"}
    effect = json.loads(do("set", "radio.link.propagation=70 ms", "--json").out)
    assert sorted(effect["user_states"]) == others
    gone = do("set", "carol.radio.link.propagation=70 ms", status=1)
    assert "the link carol has ended" in gone.err
    assert "nowhere" in do("state", "nowhere", status=2).err
    lost.end()
    commands = {name: _commands(lost.out / name) for name in NAMES}
    assert commands == {"alice": 2, "cell": 1, "carol": 0}


def test_python_describes_a_run_that_lost_a_link(
    airpath: Airpath, any_way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(airpath.temporary))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    lost = LosesCarol(airpath, any_way)
    with control.connect() as run:
        states = {user.name: user.state for user in run.describe().users}
        assert states == {"alice": "initial", "bob": "initial", "dave": "initial", "carol": None}
        assert run.get("radio.link.propagation") == {
            "alice": "10 ms", "bob": "20 ms", "dave": "40 ms",
        }  # fmt: skip
        assert run.verdict().grade in ("trusted", "suspect", "invalid")
    assert [[user["name"] for user in one["users"]] for one in active()] == [
        ["alice", "bob", "dave"]
    ]
    lost.end()


def test_a_link_whose_interface_is_deleted_ends_alone(airpath: Airpath, port_way: Way) -> None:
    lost = LosesCarol(airpath, port_way)
    out, result = lost.out, lost.end()
    assert result.summary()["verdict"] == "invalid"
    told = {link["link"]: link for link in result.summary()["links"]}
    assert "a port of the link disappeared during the run" in told["carol"]["error"]
    assert "the interface of the client's end of carol was deleted" in told["carol"]["error"]
    assert result.status == told["carol"]["exit_status"] == 125
    assert load_run(out / "carol").manifest["status"] == "failed"
    # The others go on, and their runs are whole.
    assert told["alice"]["uplink"]["delivered_packets"] == 40
    assert told["cell"]["uplink"]["delivered_packets"] == 80
    for name in ("alice", "cell"):
        assert load_run(out / name).manifest["status"] == "finished"
        airpath.run("replay", out / name).check()


def test_waits_for_a_processor_are_those_of_a_links_own_commands(airpath: Airpath) -> None:
    links, out = airpath.file("links.toml", LINKS), airpath.path("run")
    airpath.run(
        "exec", "--scenario", links, "--out", out,
        "--client", "carol=i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", "--", "sleep", "0.5",
    ).check()  # fmt: skip
    ran = {
        name: load_run(out / name).manifest["results"]["ends"]["waits"]["client"]["processor_ns"]
        for name in NAMES
    }
    assert ran["carol"] > 10 * max(ran["alice"], ran["cell"])


def test_each_link_has_a_server_of_its_own(airpath: Airpath, port_way: Way) -> None:
    links, out = airpath.file("links.toml", LINKS), airpath.path("run")
    line = 'echo "serves ${AIRPATH_USER:-all}" >&2; exec sleep 30'
    result = airpath.exec(
        port_way, "--scenario", links, "--server", line, "--server-ready", "now",
        "--server-grace", "0 s", "--out", out, "--", "sh", "-c", PING,
    )  # fmt: skip
    served = [text.split()[1] for text in result.err.splitlines() if text.startswith("serves ")]
    assert sorted(served) == ["alice", "all", "carol"]
    commands = load_run(out / "cell").manifest["commands"]
    assert [command["end"] for command in commands] == ["server", "client", "client"]


def test_states_and_parameters_of_one_link_or_all(airpath: Airpath, any_way: Way) -> None:
    links, out = airpath.file("links.toml", LINKS), airpath.path("run")
    process = airpath.start(
        "exec", "--port", any_way.port, "--scenario", links, "--out", out,
        "--", "sh", "-c", "echo ready; exec sleep 60", user=any_way.user,
    )  # fmt: skip
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(4)] == ["ready\n"] * 4
    run = json.loads(airpath.run("runs", "--json", user=any_way.user).check().out)
    assert [user["name"] for user in run["users"]] == ["alice", "bob", "dave", "carol"]

    def do(*words: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(
            airpath.run(*words, "--json", user=any_way.user).check().out
        )
        return answer

    assert do("state", "far")["user_states"] == {"alice": "far"}
    do("set", "alice.radio.link.rate=1 Mbit/s")
    do("set", "radio.link.propagation=70 ms")
    do("set", "dave.radio.link.propagation=80 ms")
    wrong = airpath.run("set", "erin.radio.link.rate=1 Mbit/s", user=any_way.user)
    assert wrong.status != 0
    assert "there is no user or hop `erin`" in wrong.err
    assert "alice, bob, dave, carol" in wrong.err
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    commands = {name: _commands(out / name) for name in NAMES}
    assert commands == {"alice": 3, "cell": 2, "carol": 1}
    for name in NAMES:
        airpath.run("replay", out / name).check()


def test_many_links_start_and_leave_nothing(airpath: Airpath, port_way: Way) -> None:
    path = '[[paths]]\nname = "link-{}"\nhops = [{{ link = {{ propagation = "5 ms" }} }}]\n'
    links = airpath.file("many.toml", "".join(path.format(number) for number in range(40)))
    result = airpath.exec(
        port_way, "--scenario", links, "--", "sh", "-c", "ping -q -c 1 -W 20 server >&2"
    ).check()
    told = result.summary()["links"]
    assert len(told) == 40
    assert all(link["uplink"]["delivered_packets"] >= 1 for link in told)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("exec", "--replications", 2, "--", "true"), "--replications is for one"),
        (("exec", "--client", "erin=true", "--", "true"), "there is no user `erin`; users are"),
        (("shell", "--", "true"), "name the one at whose end the shell runs"),
        (("sim", "--workload", "tcp bytes=1000"), "links that share nothing"),
    ],
)
def test_what_links_cannot_have_is_refused(
    airpath: Airpath, arguments: tuple[object, ...], message: str
) -> None:
    command, *others = arguments
    result = airpath.run(command, "--scenario", airpath.file("links.toml", LINKS), *others)
    assert result.status == 2
    assert message in result.err


def test_a_shell_of_one_user(airpath: Airpath, any_way: Way) -> None:
    links = airpath.file("links.toml", LINKS)
    result = airpath.run(
        "shell", "--scenario", links, "--user", "carol", "--client", "alice=exec sleep 60",
        "--", "sh", "-c", "ping -q -c 20 -i 0.02 -W 1 server | tail -2 | head -1",
        user=any_way.user,
    ).check()  # fmt: skip
    assert result.out.startswith("20 packets transmitted")
