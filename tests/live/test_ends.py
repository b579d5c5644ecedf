# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Disturbances of the ends apart from the link: they are reported, and the run is not trusted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from live.harness import Airpath, Result, User

HOG = "import time; end = time.monotonic() + 20\nwhile time.monotonic() < end: pass"

COMPUTE = """
import socket, time
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (socket.gethostbyname("server"), 9))
begun = time.process_time()
while time.process_time() - begun < 0.3: pass
"""

SLOW_RECEIVER = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8000)
s.bind(("0.0.0.0", 5000))
time.sleep(1.5)
s.setblocking(False)
count = 0
try:
    while s.recv(2000): count += 1
except BlockingIOError:
    print(count, flush=True)
time.sleep(10)
"""

SENDER = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200):
    s.sendto(bytes(200), (socket.gethostbyname("server"), 5000))
    time.sleep(0.001)
time.sleep(2.5)
"""

DYING_SERVER = """
import os, signal, socket, time
s = socket.create_server(("0.0.0.0", 5000))
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGKILL)
"""

TICKS = """
import pathlib, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
where = (socket.gethostbyname("server0"), 9)
pathlib.Path(sys.argv[1]).touch()
for _ in range(100):
    s.sendto(b"x", where)
    time.sleep(0.02)
"""


def script(airpath: Airpath, name: str, text: str) -> list[str]:
    return [airpath.python, str(airpath.file(f"{name}.py", text))]


def line(words: list[str]) -> str:
    return "exec " + " ".join(words)


def reasons(result: Result) -> dict[str, dict[str, Any]]:
    return {reason["code"]: reason for reason in result.summary()["verdict"]["reasons"]}


@pytest.mark.alone
def test_commands_kept_from_the_processors_are_told(airpath: Airpath, user: User) -> None:
    processor = str(min(os.sched_getaffinity(0)))
    hogs = [subprocess.Popen(["taskset", "-c", processor, sys.executable, "-c", HOG]) for _ in "ab"]
    try:
        out = airpath.path("run")
        compute = script(airpath, "compute", COMPUTE)
        result = airpath.run(
            "exec", "--json", "--delay", "5 ms", "--out", out, "--log", "counters",
            "--", "taskset", "-c", processor, *compute, user=user,
        ).check()  # fmt: skip
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    reason = reasons(result)["ends_waited"]
    assert reason["what"].startswith("the client's commands waited "), reason
    waits = json.loads((out / "run.json").read_text())["results"]["ends"]["waits"]
    # One of three on one processor: it waits at least as long as it runs.
    assert waits["client"]["kept_waiting_ns"] > 150e6, waits
    assert waits["client"]["longest_ns"] > 1e6, waits
    assert waits["client"]["waited_ns"] >= waits["client"]["kept_waiting_ns"]
    assert waits["samples"] > 5


def test_commands_that_hold_each_other_up_are_their_own_doing(airpath: Airpath, user: User) -> None:
    processor = str(min(os.sched_getaffinity(0)))
    three = " & ".join([line(script(airpath, "compute", COMPUTE))] * 3)
    result = airpath.run(
        "exec", "--json", "--delay", "5 ms", "--", "taskset", "-c", processor, "sh", "-c",
        f"{three.replace('exec ', '')} & wait", user=user,
    ).check()  # fmt: skip
    client = result.summary()["ends"]["waits"]["client"]
    # The first waits for nobody, the second for one, the third for two others.
    assert client["waited_ns"] > 500e6, client
    # Whatever else runs on this machine is no business of this test.
    assert client["kept_waiting_ns"] < client["waited_ns"] / 2, client


def test_datagrams_lost_in_a_socket_are_told(airpath: Airpath, user: User) -> None:
    result = airpath.run(
        "exec", "--json", "--delay", "5 ms", "--server",
        line(script(airpath, "receiver", SLOW_RECEIVER)), "--", *script(airpath, "sender", SENDER),
        user=user,
    ).check()  # fmt: skip
    received = int(result.out)
    assert received < 200
    sockets = result.summary()["ends"]["server_sockets"]
    delivered = result.summary()["uplink"]["delivered_packets"]
    assert sockets["udp_receive_buffer"] == delivered - received
    assert "datagrams" in reasons(result)["socket_losses"]["what"]


@pytest.mark.parametrize("port", ["packet", "tun"])
def test_what_somebody_does_to_an_interface_is_told(
    airpath: Airpath, user: User, port: str
) -> None:
    if not (shutil.which("ip") and shutil.which("tc")):
        pytest.skip("iproute2 is not installed")
    if port == "tun" and user.name != "root":
        pytest.skip("/dev/net/tun may be closed to this user")
    # All is undone before the end but the last queue; another interface is nobody's affair.
    meddle = (
        "ip link set airpath0 down; ip link set airpath0 up; ip addr add 10.9.9.9/32 dev airpath0; "
        "tc qdisc replace dev airpath0 root bfifo limit 5000; tc qdisc del dev airpath0 root; "
        "ip addr flush dev airpath0; ip addr add 127.0.0.5/8 dev lo; "
        "ip addr del 127.0.0.5/8 dev lo; "
        "tc qdisc replace dev airpath0 root pfifo limit 5"
    )
    options = ("exec", "--json", "--as-root", "--port", port, "--delay", "5 ms", "--")
    result = airpath.run(*options, "sh", "-c", meddle, user=user).check()
    told = result.summary()["ends"]["interface_changes"]
    assert told[0] == "the interface of the client's end was taken down once"
    assert told[1].startswith("the interface of the client's end lost its address")
    assert "10.77.0.2" in told[1]
    assert told[2:] == [
        "a kernel queue (bfifo) was attached to the interface of the client's end "
        "and removed before the end",
        "a kernel queue (pfifo) was attached to the interface of the client's end",
    ]
    assert reasons(result)["interface_changed"]["grade"] == "suspect"
    calm = airpath.run(*options, "true", user=user).check()
    assert calm.summary()["ends"]["interface_changes"] == []
    assert calm.summary()["ends"]["unreadable"] == []


def test_an_interface_that_is_moved_away_is_named(airpath: Airpath, user: User) -> None:
    if not (shutil.which("ip") and shutil.which("unshare")):
        pytest.skip("iproute2 or unshare is not installed")
    move = "unshare -n sleep 9 & sleep 0.3; ip link set airpath0 netns $!; kill $!; sleep 2"
    result = airpath.run("exec", "--as-root", "--delay", "5 ms", "--", "sh", "-c", move, user=user)
    assert result.status != 0
    assert "client's end was moved to another network namespace" in result.err, result.err


def test_a_command_that_is_stopped_for_a_while_is_told(airpath: Airpath, user: User) -> None:
    stop = "sleep 9 & sleep 0.1; kill -STOP $!; sleep 0.5; kill -CONT $!; sleep 0.1; kill $!"
    options = ("exec", "--json", "--delay", "5 ms", "--")
    result = airpath.run(*options, "sh", "-c", stop, user=user).check()
    what = reasons(result)["stopped"]["what"]
    assert what.startswith("a program of the client's end was stopped for "), what
    stopped_ns = result.summary()["ends"]["holds"]["client"]["longest_stop_ns"]
    # Looks may be rare on a loaded machine.
    assert 0.3e9 < stopped_ns < 5e9
    assert result.summary()["ends"]["holds"]["server"]["stopped_ns"] == 0


def test_a_command_under_strace_is_told(airpath: Airpath, user: User) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    traced = ("strace", "-f", "-o", "/dev/null", "sleep", "0.6")
    result = airpath.run("exec", "--json", "--delay", "5 ms", "--", *traced, user=user).check()
    what = reasons(result)["traced"]["what"]
    assert what.startswith("a program of the client's end was traced by strace for "), what
    assert "stopped" not in reasons(result)


def test_a_run_without_packets_tests_nothing(airpath: Airpath, user: User) -> None:
    result = airpath.run("exec", "--json", "--", "true", user=user).check()
    assert reasons(result)["no_packets"]["grade"] == "suspect"


def test_a_server_that_dies_half_way_is_among_the_reasons(airpath: Airpath, user: User) -> None:
    server = line(script(airpath, "dying", DYING_SERVER))
    result = airpath.run(
        "exec", "--json", "--server", server, "--", "sleep", "1.5", user=user
    ).check()
    assert "SIGKILL" in reasons(result)["server_failed"]["what"]
    healthy = line(script(airpath, "slow", SLOW_RECEIVER))
    result = airpath.run(
        "exec", "--json", "--server", healthy, "--", "sleep", "0.1", user=user
    ).check()
    assert "server_failed" not in reasons(result)


def test_a_client_that_is_killed_is_among_the_reasons_and_one_that_is_stopped_is_not(
    airpath: Airpath, user: User
) -> None:
    def of(name: str) -> dict[str, Any]:
        told = airpath.run("exec", "--json", "--", "sh", "-c", f"kill -{name} $$", user=user)
        return reasons(told.check(128 + getattr(signal, f"SIG{name}")))

    assert "SIGKILL" in of("KILL")["client_killed"]["what"]
    assert "client_killed" in of("ABRT")
    assert "client_killed" not in of("TERM")


def test_a_nested_run_knows_of_the_link_around_it(airpath: Airpath, user: User) -> None:
    begun = airpath.path("begun")
    inner = (str(airpath.command), "exec", "--json", "--delay", "2 ms", "--")
    ticks = (*script(airpath, "ticks", TICKS), str(begun))
    outer = airpath.start("exec", "-q", "--delay", "5 ms", "--", *inner, *ticks, user=user)
    deadline = time.monotonic() + 30
    while not begun.exists() and time.monotonic() < deadline and outer.poll() is None:
        time.sleep(0.01)
    engine = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
    for _ in range(4):
        os.kill(engine, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(engine, signal.SIGCONT)
        time.sleep(0.1)
    _, err = outer.communicate(timeout=60)
    summary = json.loads([row for row in err.splitlines() if row.startswith("{")][-1])
    told = [reason for reason in summary["verdict"]["reasons"] if reason["code"] == "around"]
    assert any("left too late" in reason["what"] for reason in told), summary["verdict"]
    assert summary["verdict"]["grade"] != "trusted"
    assert summary["ends"]["unreadable"] == []


@pytest.mark.parametrize("depth", [1, 2])
def test_the_run_around_answers_at_every_depth(airpath: Airpath, user: User, depth: int) -> None:
    one = (str(airpath.command), "exec", "--json", "--delay", "2 ms", "--")
    send = "import socket; socket.socket(2, 2).sendto(b'x', (socket.gethostbyname('server0'), 9))"
    words = [*one[1:], *one * depth, airpath.python, "-c", send]
    result = airpath.run(*words, user=user).check()
    summaries = [json.loads(row) for row in result.err.splitlines() if row.startswith("{")]
    assert len(summaries) == depth + 1
    # The innermost ends first.
    for summary in summaries[:-1]:
        assert "judged" in summary["ends"]["around"], summary["ends"]
    assert "around" not in summaries[-1]["ends"]


def test_a_run_around_that_cannot_be_asked_is_told(airpath: Airpath, user: User) -> None:
    inner = ("env", "-u", "AIRPATH_RUN", str(airpath.command), "exec", "--json", "--", "true")
    result = airpath.run("exec", "-q", "--", *inner, user=user).check()
    reason = reasons(result)["around_unknown"]
    assert reason["grade"] == "suspect"
    assert "is unknown" in reason["what"]
