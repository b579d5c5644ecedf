# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Real programs of several users of a cell, by the wall clock."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run

if TYPE_CHECKING:
    from live.harness import Airpath, Way

MS = 1_000_000

CELL = """
[[media]]
name = "cell"
type = "continuous"
downlink = "10 Mbit/s"
order = "round_robin"
[[paths]]
name = "alice"
[[paths.hops]]
name = "radio"
link.propagation = "10 ms"
downlink.medium = "cell"
[[paths]]
name = "bob"
[[paths.hops]]
name = "radio"
link.propagation = "40 ms"
downlink.medium = "cell"
[[paths.states]]
name = "far"
set."radio.uplink.propagation" = "90 ms"
"""
ONE_USER = CELL[: CELL.index('[[paths]]\nname = "bob"')]
WHO = 'echo "I am $AIRPATH_USER, number $AIRPATH_USER_INDEX"'


def test_each_user_has_a_link_of_its_own(airpath: Airpath, port_way: Way) -> None:
    cell, out = airpath.file("cell.toml", CELL), airpath.path("run")
    line = f"{WHO}; ping -q -c 3 -i 0.1 server >&2"
    command = ("--log", "packets", "--out", out, "--", "sh", "-c", line)
    result = airpath.exec(port_way, "--scenario", cell, *command).check()
    assert sorted(result.out.splitlines()) == ["I am alice, number 0", "I am bob, number 1"]
    users = {user["name"]: user for user in result.summary()["users"]}
    assert [users[name]["uplink"]["delivered_packets"] for name in ("alice", "bob")] == [3, 3]
    run = load_run(out)
    delivered = run.path_events("delivered")
    uplink = delivered.filter(delivered["direction"] == "uplink")
    assert sorted(uplink["user"].to_list()) == ["alice"] * 3 + ["bob"] * 3
    names = {f"{user}-{end}.pcapng" for user in ("alice", "bob") for end in ("client", "server")}
    assert {path.name for path in out.glob("*.pcapng")} == names
    airpath.run("replay", out).check()


def test_one_server_for_all_or_one_each(airpath: Airpath, port_way: Way) -> None:
    cell = airpath.file("cell.toml", CELL)
    counters = airpath.path("counters")
    echo = airpath.server("datagram-server", 4, "udp", 0, 5000, airpath.path("data"), counters)
    line = f'echo "serves ${{AIRPATH_USER:-all}}" >&2; exec {echo}'
    for ends, served in (("one", {"all"}), ("each", {"alice", "bob"})):
        result = airpath.exec(
            port_way, "--scenario", cell, "--server-ends", ends, "--server", line,
            "--", *airpath.program("datagram-client", 4, "udp", 0, 5000, 3, 100, 0.01, 0.5),
        ).check()  # fmt: skip
        told = {text.split()[1] for text in result.err.splitlines() if text.startswith("serves ")}
        assert told == served
        sent = [user["uplink"]["delivered_packets"] for user in result.summary()["users"]]
        assert sent == [3, 3], ends


def test_the_server_of_all_knows_users_by_name(airpath: Airpath, port_way: Way) -> None:
    cell, told = airpath.file("cell.toml", CELL), airpath.path("told")
    data, counters = airpath.path("data"), airpath.path("counters")
    server = airpath.server("datagram-server", 4, "udp", 0, 5000, data, counters)
    server = f"getent hosts alice bob | sort > {told}; exec {server}"
    airpath.exec(port_way, "--scenario", cell, "--server", server, "--", "true").check()
    assert {line.split()[-1] for line in told.read_text().splitlines()} == {"alice", "bob"}


def test_copies_of_a_user_and_a_command_of_its_own(airpath: Airpath, port_way: Way) -> None:
    cell = airpath.file("one.toml", ONE_USER)
    own = f"alice-2={WHO}; exit 7"
    result = airpath.exec(
        port_way, "--scenario", cell, "--users", 3, "--client", own, "--", "sh", "-c", WHO
    )
    result.check(7)
    assert sorted(result.out.splitlines()) == [
        f"I am alice-{number}, number {number - 1}" for number in (1, 2, 3)
    ]


def test_a_signal_reaches_every_user(airpath: Airpath, port_way: Way) -> None:
    cell = airpath.file("cell.toml", CELL)
    trap = "trap 'echo stopped; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    process = airpath.start(
        "exec", "--port", port_way.port, "--quiet", "--scenario", cell, "--", "sh", "-c", trap,
        user=port_way.user,
    )  # fmt: skip
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines() == ["stopped", "stopped"]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--users", 5, "--", "true"), "the scenario has only 2 users"),
        (
            ("--client", "carol=true", "--", "true"),
            "there is no user `carol`; users are alice, bob",
        ),
        (("--client", "alice", "--", "true"), "name a user and a command"),
        (("--client", "alice=true"), "no command for bob"),
        (("--internet", "--", "true"), "--internet is for one user"),
        (("--host-port", 80, "--", "true"), "--host-port is for one user"),
    ],
)
def test_what_users_cannot_have_is_refused(
    airpath: Airpath, arguments: tuple[object, ...], message: str
) -> None:
    result = airpath.run("exec", "--scenario", airpath.file("cell.toml", CELL), *arguments)
    assert result.status == 2
    assert message in result.err


def test_users_need_a_medium(airpath: Airpath) -> None:
    result = airpath.run("exec", "--users", 2, "--rate", "1 Mbit/s", "--", "true")
    assert result.status == 2
    assert "2 users need a medium that they share" in result.err
    shell = airpath.run("shell", "--scenario", airpath.file("cell.toml", CELL), "--", "true")
    assert shell.status == 2
    assert "this command is for one" in shell.err


def test_states_of_users_of_a_running_cell(airpath: Airpath, port_way: Way) -> None:
    cell = airpath.file("cell.toml", CELL)
    line = (
        "ping -q -c 1 server > /dev/null; "
        '[ $AIRPATH_USER = alice ] || "$1" state far > /dev/null; '
        "sleep 0.3; ping -q -c 1 server | tail -1 | cut -d/ -f5; "
        '[ $AIRPATH_USER = alice ] || "$1" set radio.link.propagation=5ms >&2'
    )
    result = airpath.exec(
        port_way, "--scenario", cell, "--", "sh", "-c", line, "sh", airpath.command
    )
    times = sorted(float(text) for text in result.out.split())
    assert 20 <= times[0] < 100
    assert times[1] >= 130
    assert "several users" in result.err
