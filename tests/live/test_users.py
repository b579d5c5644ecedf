# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Real programs of several users of a cell, by the wall clock."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from airpath.status import LACKING
from live.harness import tun_opens
from live.test_outside import own_address

if TYPE_CHECKING:
    from live.harness import Airpath, User, Way

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
        (("--", "true"), "name the one at whose end the shell runs, as in --user alice"),
        (("--user", "carol", "--", "true"), "there is no user `carol`; users are alice, bob"),
        (("--user", "bob", "--client", "bob=true", "--", "true"), "the shell runs at this user"),
    ],
)
def test_a_shell_needs_a_user(
    airpath: Airpath, arguments: tuple[object, ...], message: str
) -> None:
    result = airpath.run("shell", "--scenario", airpath.file("cell.toml", CELL), *arguments)
    assert result.status == 2
    assert message in result.err


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
        (("--client", "alice=", "--client", "bob="), "no user has a command"),
        (("--client", "bob=true", "--client", "bob=false", "--", "true"), "two commands for bob"),
        (("--host-port", "carol:80", "--", "true"), "there is no user `carol`; users are alice"),
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


BACKGROUND = """
[[paths]]
name = "others"
[[paths.hops]]
name = "radio"
downlink.medium = "cell"
[[paths.background]]
name = "web"
hop = "radio"
direction = "downlink"
type = "poisson"
mean_interval = "10 ms"
packet_size = "500 bytes"
"""


def test_a_user_may_run_nothing(airpath: Airpath, port_way: Way) -> None:
    cell, out = airpath.file("cell.toml", CELL + BACKGROUND), airpath.path("run")
    # Who only has a background load needs no command; bob is said to run none.
    result = airpath.exec(
        port_way, "--scenario", cell, "--out", out, "--log", "events",
        "--client", "alice=ping -q -c 5 -i 0.1 server", "--client", "bob=",
    ).check()  # fmt: skip
    users = {user["name"]: user for user in result.summary()["users"]}
    assert [users[name]["uplink"]["delivered_packets"] for name in ("alice", "bob")] == [5, 0]
    run = load_run(out)
    assert [command["user"] for command in run.manifest["commands"]] == ["alice"]
    background = run.events.filter((run.events["origin"] == "background").fill_null(value=False))
    assert set(background["user"].to_list()) == {"others"}
    airpath.run("replay", out).check()


def test_a_shell_of_one_user(airpath: Airpath, port_way: Way) -> None:
    cell, told = airpath.file("cell.toml", CELL), airpath.path("told")
    beside = f"bob=trap 'echo ended > {told}; exit 1' TERM; {WHO} >&2; while :; do sleep 0.05; done"
    line = f"{WHO}; read -r text; echo $text; exit 4"
    process = airpath.start(
        "shell", "--port", port_way.port, "--quiet", "--scenario", cell, "--user", "alice",
        "--client", beside, "--", "sh", "-c", line,
        user=port_way.user, stdin=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == "I am bob, number 1\n"
    out, err = process.communicate("from the terminal\n", timeout=60)
    assert out.splitlines() == ["I am alice, number 0", "from the terminal"]
    # Bob's command ended with the shell; how it ended is not the status of the shell.
    assert process.returncode == 4, err
    assert told.read_text() == "ended\n"


def test_ports_of_the_host_of_one_user(airpath: Airpath, port_way: Way) -> None:
    cell = airpath.file("cell.toml", CELL)
    first = socket.create_server(("127.0.0.1", 0))
    second = socket.create_server(("::1", 0), family=socket.AF_INET6)
    with first, second:
        ports = {"alice": first.getsockname()[1], "bob": second.getsockname()[1]}
        threads = [
            threading.Thread(target=greet, args=(server, text))
            for server, text in ((first, b"first"), (second, b"second"))
        ]
        for thread in threads:
            thread.start()
        words = [f"--host-port={user}:5000:{port}" for user, port in ports.items()]
        line = ["sh", "-c", 'echo $AIRPATH_USER $("$@")', "sh", *hearing(airpath, "server", 5000)]
        result = airpath.exec(port_way, "--scenario", cell, *words, "--", *line).check()
        for thread in threads:
            thread.join()
    assert sorted(result.out.splitlines()) == ["alice first", "bob second"]


def hearing(airpath: Airpath, host: str, port: int) -> list[str]:
    """Return the words that print what a host sends."""
    text = f"print(socket.create_connection(({host!r}, {port})).recv(9).decode())"
    return [airpath.python, "-c", f"import socket; {text}"]


def greet(server: socket.socket, text: bytes) -> None:
    """Send a text to the first who connects."""
    server.settimeout(60)
    with contextlib.suppress(TimeoutError):
        connection, _ = server.accept()
        with connection:
            connection.sendall(text)


def test_the_hosts_network_for_all_users(airpath: Airpath, user: User) -> None:
    address = own_address()
    if address is None or not shutil.which("slirp4netns") or not tun_opens(user):
        pytest.skip("this host has no network, no slirp4netns or no open /dev/net/tun")
    cell = airpath.file("cell.toml", CELL)
    for ends in ("one", "each"):
        with socket.create_server((address, 0)) as server:
            port = server.getsockname()[1]
            threads = [threading.Thread(target=greet, args=(server, b"host")) for _ in range(2)]
            for thread in threads:
                thread.start()
            words = ("--internet", "--server-ends", ends, "--", *hearing(airpath, address, port))
            result = airpath.run("exec", "-q", "--scenario", cell, *words, user=user).check()
            for thread in threads:
                thread.join()
        assert result.out.splitlines() == ["host", "host"], ends


def test_names_that_ends_have_are_refused(airpath: Airpath) -> None:
    for old, new, part in (
        ("alice", "server", "a user cannot be called `server`"),
        ("alice", "Bob", "`Bob` and `bob` differ in case only"),
    ):
        cell = airpath.file(f"{new}.toml", CELL.replace(old, new))
        result = airpath.run("exec", "--scenario", cell, "--", "true")
        assert result.status == 2
        assert part in result.err


def test_users_need_open_files(airpath: Airpath, port_way: Way) -> None:
    cell = airpath.file("one.toml", ONE_USER)
    line = 'ulimit -n "$1"; shift; exec "$@"'
    limited = [*port_way.user.prefix, "sh", "-c", line, "sh", "64", str(airpath.command)]
    words = [*limited, "exec", "--port", port_way.port, "--scenario", str(cell), "--users", "10"]
    done = subprocess.run(
        [*words, "--", "true"],
        env=airpath.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == LACKING
    assert "10 users need more open files than this process may have (64)" in done.stderr
    # What the process may raise itself, it raises, and not for its commands.
    line = 'ulimit -Sn "$1"; shift; exec "$@"'
    words[words.index("64") - 2] = line
    done = subprocess.run(
        [*words, "--quiet", "--", "sh", "-c", "ulimit -Sn"],
        env=airpath.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["64"] * 10
