# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The agent that runs the programs of one end of an experiment, without a link."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from airpath.engine import find_engine
from airpath.experiment.replicate import MATCHER


def program(name: str, command: str | list[str], **keys: Any) -> dict[str, Any]:
    """Return a program's part of a specification."""
    return {
        "name": name,
        "user": None,
        "command": ["/bin/sh", "-c", command] if isinstance(command, str) else command,
        "start_ns": 0,
        "time_limit_ns": 60 * 10**9,
        "environment": {},
        "ready": None,
        "service": False,
        "exit_status": [0],
        "keep": ["*"],
        **keys,
    }


def begin(
    folder: Path, end: str, *programs: dict[str, Any], alone: bool = True, **keys: Any
) -> subprocess.Popen[str]:
    """Start an agent."""
    places = [{**one, "directory": str(folder / "programs" / one["name"])} for one in programs]
    environment = keys.pop("environment", {})
    specification = {
        "end": end,
        "folder": str(folder),
        "alone": alone,
        "patience_ns": 20 * 10**9,
        "output_limit_bytes": 100,
        "programs": places,
        **keys,
    }
    file = folder / f"{end}.specification.json"
    file.write_text(json.dumps(specification))
    return subprocess.Popen(
        [find_engine(), "agent", str(file)],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(folder: Path, agent: subprocess.Popen[str], party: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of an agent, and its record."""
    _, said = agent.communicate(timeout=60)
    assert not said, said
    return agent.returncode, json.loads((folder / f"{party}.json").read_text())


def alone(folder: Path, *programs: dict[str, Any], **keys: Any) -> dict[str, dict[str, Any]]:
    """Run programs at the client's end, without any at the server's; return their records."""
    status, record = ended(folder, begin(folder, "client", *programs, **keys), "client")
    records = {one["name"]: one for one in record["programs"]}
    assert status == (0 if all(one["succeeded"] for one in records.values()) else 1)
    return records


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_programs_start_at_their_times_and_leave_a_record(tmp_path: Path) -> None:
    records = alone(
        tmp_path,
        program(
            "late",
            "basename $PWD; echo $A >&2",
            start_ns=300_000_000,
            environment={"A": "b c"},
        ),
        program("seven", "exit 7", exit_status=[0, 7]),
        program("three", "exit 3"),
        program("flood", "yes | head -c 1000"),
        program("gone", ["no-such-program"]),
        program("killed", "kill -9 $$"),
        program("children", "sleep 50 & echo $!"),
    )
    late = records["late"]
    assert late["start_ns"] >= 300_000_000
    assert late["elapsed_ns"] == late["end_ns"] - late["start_ns"]
    place = tmp_path / "programs" / "late"
    assert (place.parent / "late.stdout").read_text() == "late\n"
    assert (place.parent / "late.stderr").read_text() == "b c\n"
    assert list(late["output"]) == ["stdout", "stderr"]
    assert late["output"]["stderr"] == {"bytes": 4, "cut_off": False}
    assert records["seven"]["succeeded"]
    assert records["seven"]["exit_status"] == 7
    assert records["three"]["reason"] == "exit status 3"
    assert records["flood"]["output"]["stdout"] == {"bytes": 1000, "cut_off": True}
    flood = (place.parent / "flood.stdout").read_text()
    assert flood == "y\n" * 50 + "\n[cut off here, of 1000 bytes]\n"
    why = "cannot be started: no-such-program: No such file or directory"
    assert records["gone"]["reason"] == why
    assert records["gone"]["start_ns"] is None
    assert records["gone"]["output"] == {}
    assert records["killed"]["reason"] == "ended by signal 9"
    assert (records["killed"]["exit_status"], records["killed"]["signal"]) == (None, 9)
    child = int((place.parent / "children.stdout").read_text())
    until = time.monotonic() + 20
    while running(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not running(child), "what a program started ends with it"


def running(pid: int) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    records = alone(tmp_path, program("slow", "sleep 50", time_limit_ns=200_000_000))
    assert records["slow"]["reason"] == "took longer than 0.2 s and was stopped"
    assert records["slow"]["signal"] == signal.SIGTERM
    assert records["slow"]["stopped"]


def test_the_client_waits_for_a_server_that_is_ready(tmp_path: Path) -> None:
    port = free_port()
    serve = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    by_port = {"port": port, "command": None, "within_ns": 20 * 10**9}
    matcher = [sys.executable, "-I", "-S", MATCHER, "^up(?=!)"]
    by_line = {**by_port, "port": None, "matcher": matcher}
    by_command = {**by_port, "port": None, "command": "test -e up"}
    server = begin(
        tmp_path,
        "server",
        program("web", serve, ready=by_port, service=True),
        program("line", "echo up; sleep 0.1; echo 'up!'; sleep 50", ready=by_line, service=True),
        program("file", "touch up; exec sleep 50", ready=by_command, service=True),
        alone=False,
    )
    ask = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/').read()"
    client = begin(tmp_path, "client", program("ask", [sys.executable, "-c", ask]), alone=False)
    status, record = ended(tmp_path, client, "client")
    assert (status, record["failure"]) == (0, "")
    at_server, servers = ended(tmp_path, server, "server")
    assert at_server == 0
    assert abs(record["epoch_unix_ns"] - servers["epoch_unix_ns"]) < 50_000_000
    assert all(one["stopped"] and one["start_ns"] < 0 for one in servers["programs"])


def failure_of_server(folder: Path, *programs: dict[str, Any]) -> tuple[str, str]:
    """Run a client against a server that does not get ready; return what each says."""
    server = begin(folder, "server", *programs, alone=False)
    client = begin(folder, "client", program("client", "true"), alone=False)
    status, record = ended(folder, client, "client")
    assert status == 1
    assert record["programs"][0]["start_ns"] is None
    status, other = ended(folder, server, "server")
    assert status == 1
    return str(record["failure"]), str(other["failure"])


def test_a_server_that_does_not_get_ready_ends_the_workload(tmp_path: Path) -> None:
    ready = {"port": free_port(), "command": None, "within_ns": 300_000_000}
    never = failure_of_server(tmp_path, program("never", "exec sleep 50", ready=ready))
    assert never == (
        "at the server: never was not ready within 0.3 s",
        "never was not ready within 0.3 s",
    )


def test_a_program_may_say_that_it_is_ready_and_end_at_once(tmp_path: Path) -> None:
    matcher = [sys.executable, "-I", "-S", MATCHER, "^done$"]
    by_line = {"port": None, "command": None, "matcher": matcher, "within_ns": 20 * 10**9}
    by_command = {**by_line, "matcher": None, "command": "sleep 0.1; test -e done"}
    records = alone(
        tmp_path,
        program("quick", "echo preparing; echo done", ready=by_line),
        program("open", "printf done", ready=by_line),
        program("file", "touch done", ready=by_command),
        program("client", "true"),
    )
    assert [one["succeeded"] for one in records.values()] == [True] * 4
    assert records["quick"]["start_ns"] < 0
    for name, ready in (("dull", by_line), ("idle", by_command)):
        folder = tmp_path / name
        folder.mkdir()
        never = begin(folder, "client", program(name, "echo don; exit 3", ready=ready))
        status, record = ended(folder, never, "client")
        assert (status, record["failure"]) == (
            1,
            f"{name} ended before it was ready, with status 3",
        )


def hanging(folder: Path) -> dict[str, dict[str, Any]]:
    """Return signs of readiness, by names, that are never given; each tells its process."""
    hangs = f"echo $$ >> {folder}/hanging; exec sleep 60"
    usual = {"port": None, "command": None, "within_ns": 10**9}
    return {
        "matcher": {**usual, "matcher": ["/bin/sh", "-c", hangs]},
        "command": {**usual, "command": hangs},
    }


def nothing_hangs(folder: Path) -> bool:
    """Say whether what hung is there no more."""
    pids = [int(line) for line in (folder / "hanging").read_text().split()]
    until = time.monotonic() + 20
    while any(map(running, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return bool(pids) and not any(map(running, pids))


FLOOD = "yes | head -c 1000000; exec sleep 50"
"""More output than pipes hold."""


@pytest.mark.parametrize("sign", ["matcher", "command"])
def test_a_sign_of_readiness_that_hangs_does_not_hold_the_agent(tmp_path: Path, sign: str) -> None:
    began = time.monotonic()
    ready = hanging(tmp_path)[sign]
    agent = begin(tmp_path, "client", program("never", FLOOD, ready=ready))
    status, record = ended(tmp_path, agent, "client")
    assert time.monotonic() - began < 30
    assert (status, record["failure"]) == (1, "never was not ready within 1 s")
    assert record["programs"][0]["stopped"]
    assert nothing_hangs(tmp_path)


@pytest.mark.parametrize("sign", ["matcher", "command"])
def test_signals_and_time_limits_hold_while_a_sign_of_readiness_hangs(
    tmp_path: Path, sign: str
) -> None:
    ready = {**hanging(tmp_path)[sign], "within_ns": 10**18}
    (tmp_path / "late").mkdir()
    late = program("late", FLOOD, ready=ready, time_limit_ns=500_000_000)
    status, record = ended(tmp_path / "late", begin(tmp_path / "late", "client", late), "client")
    assert (status, record["failure"]) == (1, "late took longer than 0.5 s and was stopped")
    (tmp_path / "hanging").unlink()
    agent = begin(tmp_path, "client", program("never", FLOOD, ready=ready))
    until = time.monotonic() + 20
    told = tmp_path / "hanging"
    while not (told.exists() and told.stat().st_size) and time.monotonic() < until:
        time.sleep(0.02)
    agent.terminate()
    status, record = ended(tmp_path, agent, "client")
    assert (status, record["interrupted"]) == (1, True)
    assert nothing_hangs(tmp_path)


def test_a_matcher_that_is_slow_gets_every_line(tmp_path: Path) -> None:
    """The program's output is many times what the pipes and the agent hold."""
    slow = "sleep 0.3; test $(wc -l) = 400001"
    usual = {"port": None, "command": None, "within_ns": 20 * 10**9}
    ready = {**usual, "matcher": ["/bin/sh", "-c", slow]}
    records = alone(tmp_path, program("flood", "yes | head -n 400000; echo x", ready=ready))
    assert records["flood"]["succeeded"]
    assert records["flood"]["output"]["stdout"]["bytes"] == 800_002


def test_a_command_that_cannot_be_asked_ends_the_workload(tmp_path: Path) -> None:
    ready = {"port": None, "command": "false", "within_ns": 20 * 10**9}
    never = program("never", "rmdir $PWD; exec sleep 50", ready=ready)
    status, record = ended(tmp_path, begin(tmp_path, "client", never), "client")
    why = "cannot be asked whether it is ready: No such file or directory"
    assert (status, record["failure"]) == (1, f"never {why}")
    assert record["programs"][0]["stopped"]


def test_a_server_whose_port_is_in_use_says_so(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        ready = {"port": port, "command": None, "within_ns": 20 * 10**9}
        command = [find_engine(), "recv", "--listen", "127.0.0.1", "--port", str(port)]
        client, server = failure_of_server(tmp_path, program("recv", command, ready=ready))
    assert client == f"at the server: {server}"
    assert server.startswith("recv ended before it was ready, with status ")
    assert "in use" in (tmp_path / "programs/recv.stderr").read_text()


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    port = free_port()
    words = [find_engine(), "send", "127.0.0.1", "--port", str(port), "--bytes", "10"]
    records = alone(tmp_path, program("send", words))
    assert records["send"]["reason"].startswith("exit status ")
    assert "refuses the connection" in (tmp_path / "programs/send.stderr").read_text()
    missing = begin(
        tmp_path, "client", program("one", "true"), alone=False, patience_ns=100_000_000
    )
    status, record = ended(tmp_path, missing, "client")
    assert (status, record["failure"]) == (1, "the server did not get ready")


def test_an_end_that_is_interrupted_ends_the_other(tmp_path: Path) -> None:
    server = begin(tmp_path, "server", program("long", "echo x; exec sleep 50"), alone=False)
    client = begin(tmp_path, "client", program("other", "exec sleep 50"), alone=False)
    until = time.monotonic() + 20
    while not (tmp_path / "programs/long.stdout").exists() and time.monotonic() < until:
        time.sleep(0.02)
    server.send_signal(signal.SIGTERM)
    for agent, party in ((server, "server"), (client, "client")):
        status, record = ended(tmp_path, agent, party)
        assert (status, record["interrupted"]) == (1, True)
        assert record["programs"][0]["reason"] == "was stopped with the workload"


def test_users_have_programs_of_their_own(tmp_path: Path) -> None:
    """One of two users: the other does not come, and the first is not alone."""
    users = {"AIRPATH_USERS": "2", "AIRPATH_USER": "near-2", "AIRPATH_USER_INDEX": "1"}
    programs = [
        program("all", "true"),
        program("mine", "true", user="near-?"),
        program("own", "true", user="near-2"),
        program("others", "true", user="far-*"),
    ]
    second = begin(tmp_path, "client", *programs, environment=users)
    users = {**users, "AIRPATH_USER": "far-1", "AIRPATH_USER_INDEX": "0"}
    first = begin(tmp_path, "client", *programs, environment=users)
    status, record = ended(tmp_path, second, "client-1")
    assert status == 0
    assert record["user"] == "near-2"
    assert [(one["name"], one["program"]) for one in record["programs"]] == [
        ("all-near-2", "all"),
        ("mine-near-2", "mine"),
        ("own", "own"),
    ]
    status, record = ended(tmp_path, first, "client")
    assert status == 0
    assert [one["name"] for one in record["programs"]] == ["all-far-1", "others-far-1"]


def test_a_specification_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    for text in ("{", '{"end": "middle"}'):
        file.write_text(text)
        done = subprocess.run(
            [find_engine(), "agent", str(file)], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert done.stderr.startswith(f"airpath: {file}: "), done.stderr
