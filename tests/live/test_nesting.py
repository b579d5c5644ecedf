# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Links inside links: delays add, addresses do not clash, and the outermost server is reached."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from live.harness import Airpath, Way

SLACK_MS = 400


@pytest.mark.parametrize("family", ["4", "6"])
def test_delays_add_two_deep(airpath: Airpath, way: Way, family: str) -> None:
    port = ("--port", way.port)
    inner = (str(airpath.command), "exec", "-q", *port, "--delay", "20 ms", "--")
    ping = ("ping", f"-{family}", "-c", "3", "-i", "0.1", "server0")
    result = airpath.run(
        "exec", "-q", *port, "--delay", "10 ms", "--", *inner, *ping, user=way.user
    ).check()
    times = result.ping_times_ms()
    assert len(times) == 3, result.out
    assert min(times) >= 60
    assert min(times) < 60 + SLACK_MS


def test_three_deep(airpath: Airpath, way: Way) -> None:
    port = ("--port", way.port)
    one = (str(airpath.command), "exec", "-q", *port, "--delay", "5 ms", "--")
    names = airpath.program("resolve", "server", "server0", "server1", "server2", "client2")
    line = f"ping -c 3 -i 0.1 server0 && ping -c 1 server1 && {shlex.join(names)}"
    result = airpath.run(*one[1:], *one, *one, "sh", "-c", line, user=way.user).check()
    assert min(result.ping_times_ms()[:3]) >= 30
    assert result.ping_times_ms()[3] >= 20
    found = json.loads(result.out.splitlines()[-1])
    assert found["server4"] == found["server24"]
    servers = {found[f"server{depth}{family}"] for depth in "012" for family in "46"}
    assert len(servers) == 6


def test_tcp_through_two_links(airpath: Airpath, way: Way) -> None:
    port = ("--port", way.port)
    server = airpath.server("tcp-server", 4, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", 4, 5000, 500_000, 500_000)
    # Inside, `server` is the inner link's far end; the outer one is called by its number.
    source = (airpath.work.parent / "programs.py").read_text()
    changed = source.replace('address("server"', 'address("server0"')
    assert changed != source
    client[1] = str(airpath.file("inner_programs.py", changed))
    inner = (str(airpath.command), "exec", "-q", *port, "--delay", "2 ms", "--")
    arguments = ("exec", "-q", *port, "--delay", "3 ms", "--server", server, "--", *inner)
    airpath.run(*arguments, *client, user=way.user).check()


def test_an_inner_link_with_a_larger_mtu(airpath: Airpath, way: Way) -> None:
    # The namespace between them must tell the client what fits the outer link.
    port = ("--port", way.port)
    server = airpath.server("tcp-server", 6, 5000, airpath.path("counters"))
    source = (airpath.work.parent / "programs.py").read_text()
    changed = source.replace('address("server"', 'address("server0"')
    client = airpath.program("tcp-client", 6, 5000, 300_000, 300_000)
    client[1] = str(airpath.file("inner_programs.py", changed))
    inner = (str(airpath.command), "exec", "-q", *port, "--mtu", 9000, "--delay", "1 ms", "--")
    arguments = ("exec", "-q", *port, "--delay", "1 ms", "--server", server, "--", *inner)
    airpath.run(*arguments, *client, user=way.user).check()


def test_an_inner_server_is_on_the_inner_link(airpath: Airpath, way: Way) -> None:
    port = ("--port", way.port)
    server = airpath.server("tcp-server", 4, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", 4, 5000, 100_000, 100_000)
    inner = (str(airpath.command), "exec", "-q", *port, "--server", server, "--", *client)
    airpath.run("exec", "-q", *port, "--", *inner, user=way.user).check()


def test_a_shell_nests(airpath: Airpath, way: Way) -> None:
    inner = f"{airpath.command} shell -q --port {way.port} --delay '15 ms'"
    script = airpath.file("lines", f"{inner} <<'END'\nping -c 1 server0\nEND\nexit 4\n")
    with script.open() as source:
        result = airpath.run(
            "shell", "-q", "--port", way.port, "--delay", "10 ms", user=way.user, stdin=source,
            environment={"SHELL": "/bin/sh"},
        ).check(4)  # fmt: skip
    assert result.ping_times_ms(), result.out + result.err
    assert result.ping_times_ms()[0] >= 50


def test_two_inner_links_side_by_side(airpath: Airpath, way: Way) -> None:
    inner = f"{airpath.command} exec -q --port {way.port} --delay '3 ms' --"
    line = f"{inner} ping -c 3 -i 0.2 server0 & {inner} ping -c 3 -i 0.2 server0 & wait"
    result = airpath.run("exec", "-q", "--port", way.port, "--", "sh", "-c", line, user=way.user)
    assert result.out.count("3 received") == 2, result.out + result.err


def test_the_inner_link_leaves_the_outer_one_as_it_was(airpath: Airpath, way: Way) -> None:
    look = "ip -o link; ip -o address; ip route; ip -6 route; ip rule"
    inner = f"{airpath.command} exec -q --port {way.port} --delay '3 ms' -- ping -c 1 server0"
    line = f"({look}) > {airpath.path('before')}; {inner}; ({look}) > {airpath.path('after')}"
    airpath.run("exec", "-q", "--port", way.port, "--", "sh", "-c", line, user=way.user).check()
    assert airpath.path("before").read_text() == airpath.path("after").read_text()


def test_the_host_is_not_reached(airpath: Airpath, way: Way) -> None:
    line = "ls /sys/class/net; ip -o link; ip -o address"
    result = airpath.run(
        "exec", "-q", "--port", way.port, "--", "sh", "-c", line, user=way.user
    ).check()
    assert "airpath0" in result.out
    outside = {name for name in os.listdir("/sys/class/net") if name != "lo"}  # noqa: PTH208
    for name in outside:
        assert f": {name}" not in result.out


def test_variables_that_were_carried_out_of_a_run_are_ignored(
    airpath: Airpath, any_way: Way
) -> None:
    stray = {"AIRPATH_DEPTH": "2", "AIRPATH_LINK_BLOCK": "256/4"}
    line = "echo $AIRPATH_DEPTH; ping -c 1 server0"
    result = airpath.exec(
        any_way, "--delay", "5 ms", "--", "sh", "-c", line, environment=stray
    ).check()
    assert result.out.startswith("1\n")
    assert min(result.ping_times_ms()) >= 10
    assert "AIRPATH_LINK_BLOCK are set, but" in result.err
    assert "ignored" in result.err
    quiet = airpath.run("exec", "-q", "--", "true", user=any_way.user, environment=stray).check()
    assert quiet.err == ""
