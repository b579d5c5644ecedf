# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Guarantees to the programs that a command runs: status, streams, signals, names, order."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from airpath.facts import EXIT_STATUSES
from live.harness import await_true
from live.programs import content

if TYPE_CHECKING:
    from live.harness import Airpath, User, Way

NOT_READY = EXIT_STATUSES["not_ready"]
UNWRITABLE = EXIT_STATUSES["unwritable"]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
        ("kill -SEGV $$", 128 + 11),
    ],
)
def test_exit_status(airpath: Airpath, user: User, line: str, status: int) -> None:
    airpath.run("exec", "--", "sh", "-c", line, user=user).check(status)


def test_a_command_that_cannot_be_started(airpath: Airpath, user: User) -> None:
    result = airpath.run("exec", "--", "no-such-command", user=user).check(127)
    assert "no-such-command" in result.err
    plain = airpath.file("plain.txt", "no program")
    result = airpath.run("exec", "--", plain, user=user).check(126)
    assert str(plain) in result.err
    result = airpath.run("exec", "--", airpath.folder("files"), user=user).check(126)


def test_streams_pass_through(airpath: Airpath, user: User) -> None:
    data = content(9, 8_000_000)
    prefix = [*user.prefix, str(airpath.command)]
    process = subprocess.run(
        [*prefix, "exec", "--quiet", "--", "sh", "-c", "echo to stderr >&2; exec cat"],
        input=data,
        capture_output=True,
        env=airpath.environment(),
        timeout=60,
        check=False,
    )
    assert process.returncode == 0
    assert hashlib.sha256(process.stdout).digest() == hashlib.sha256(data).digest()
    assert process.stderr == b"to stderr\n"


def test_a_closed_output_ends_the_command(airpath: Airpath, user: User) -> None:
    line = f"{airpath.command} exec --quiet -- yes | head -n 1"
    process = subprocess.run(
        [*user.prefix, "bash", "-c", f"{line}; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        env=airpath.environment(),
        timeout=60,
        check=False,
        # Python's own children ignore SIGPIPE otherwise.
        restore_signals=True,
    )
    assert process.stdout.split() == ["y", str(128 + signal.SIGPIPE)]


def test_the_summary_goes_to_stderr_in_five_lines(airpath: Airpath, user: User) -> None:
    result = airpath.run("exec", "--", "true", user=user).check()
    assert result.out == ""
    words = [line.split()[0] for line in result.err.splitlines() if not line.startswith(" ")]
    # What commands waited for a processor is told where it is worth telling.
    words = [word for word in words if word != "ends"]
    assert words == ["delivered", "dropped", "delay", "exactness", "verdict"]
    result = airpath.run("exec", "--quiet", "--", "true", user=user).check()
    assert result.err == ""


def test_the_command_runs_as_its_user_where_it_was_started(airpath: Airpath, user: User) -> None:
    result = airpath.run("exec", "-q", "--", "sh", "-c", "id -u; pwd; echo $$", user=user).check()
    uid, directory, pid = result.out.split()
    assert int(uid) == (os.geteuid() if user.name != "nobody" else 65534)
    assert directory == str(airpath.work)
    assert int(pid) < 1000
    result = airpath.run("exec", "-q", "--as-root", "--", "id", "-u", user=user).check()
    assert result.out == "0\n"


def test_a_working_directory_that_cannot_be_entered_is_told(airpath: Airpath, user: User) -> None:
    line = f"mkdir gone && cd gone && rmdir ../gone && exec {airpath.command} exec -q -- pwd"
    process = subprocess.run(
        [*user.prefix, "sh", "-c", line],
        cwd=airpath.folder("files"),
        env=airpath.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (process.returncode, process.stdout) == (0, "/\n")
    assert "cannot find the working directory" in process.stderr
    assert "it starts in /" in process.stderr
    if user.name != "nobody":
        return
    closed = airpath.folder("closed")
    closed.chmod(0o700)
    result = airpath.run("exec", "-q", "--", "pwd", user=user, cwd=closed).check()
    assert result.out == "/\n"
    assert f"cannot enter the working directory, {closed}" in result.err


def test_the_environment_is_handed_on(airpath: Airpath, user: User) -> None:
    line = 'echo "$GREETING"; echo $AIRPATH_DEPTH'
    result = airpath.run(
        "exec", "-q", "--", "sh", "-c", line, user=user, environment={"GREETING": "good day"}
    ).check()
    assert result.out == "good day\n1\n"


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_the_client_starts_once_the_server_listens(airpath: Airpath, user: User, kind: str) -> None:
    ready = airpath.path("ready")
    server = airpath.server("late-server", 1, kind, 5000, ready)
    client = ("sh", "-c", f"cat {ready}; ss -lnH")
    result = airpath.run("exec", "-q", "--server", server, "--", *client, user=user).check()
    assert result.out.startswith("ready")


def test_a_server_that_ends_first(airpath: Airpath, user: User) -> None:
    result = airpath.run(
        "exec", "--server", "echo is broken; exit 4", "--", "echo", "client", user=user
    ).check(NOT_READY)
    assert "ended before it was ready (exit status 4)" in result.err
    assert "echo is broken; exit 4" in result.err
    assert "client" not in result.out
    # Its last words are there to look at.
    assert "is broken" in result.out


def test_a_server_that_never_listens(airpath: Airpath, user: User) -> None:
    result = airpath.run(
        "exec", "--server", "sleep 100", "--server-timeout", "500 ms", "--", "echo", "client",
        user=user,
    ).check(NOT_READY)  # fmt: skip
    assert "was not ready within 500 ms" in result.err
    assert "--server-timeout" in result.err
    assert result.out == ""


def test_a_server_that_never_listens_may_be_ready_at_once(airpath: Airpath, user: User) -> None:
    words = ("--server", "ping -c 20 -i 0.1 client", "--server-ready", "now")
    result = airpath.run("exec", "-q", *words, "--", "sleep", "1", user=user).check()
    assert " bytes from " in result.out


def test_a_server_is_ready_once_it_says_so(airpath: Airpath, user: User) -> None:
    path = airpath.path("ready")
    line = f"echo begins; sleep 0.3; touch {path}; echo 'is ready' >&2; sleep 60"
    client = ("sh", "-c", f"test -e {path} && echo client")
    words = ("--server", line, "--server-ready", "is ready")
    result = airpath.run("exec", "-q", *words, "--", *client, user=user).check()
    assert sorted(result.out.split()) == ["begins", "client"]
    assert "is ready" in result.err
    late_words = ("--server", line, "--server-ready", "is done", "--server-timeout", "500 ms")
    late = airpath.run("exec", "-q", *late_words, "--", "true", user=user).check(NOT_READY)
    assert "its output has `is done`" in late.err


def test_a_server_is_ready_at_a_port(airpath: Airpath, user: User) -> None:
    line = "nc -lk 5000 & sleep 0.3; nc -lk 5001"
    words = ("--server", line, "--server-ready", "5001")
    result = airpath.run("exec", "-q", *words, "--", "nc", "-z", "server", "5001", user=user)
    assert result.check().out == ""


@pytest.mark.parametrize(
    ("address", "families"), [("0.0.0.0", {4}), ("::", {4, 6}), ("none", {4, 6})]
)
def test_the_server_has_the_addresses_at_which_it_listens(
    airpath: Airpath, user: User, address: str, families: set[int]
) -> None:
    listens = f"python3 -m http.server --bind {address} 8000 2>/dev/null >/dev/null"
    ready = ("--server-ready", "now") if address == "none" else ()
    words = ("--server", "sleep 60" if ready else listens, *ready)
    client = ("sh", "-c", "getent ahosts server; echo and; getent ahosts server0")
    result = airpath.run("exec", "-q", *words, "--", *client, user=user).check()
    found, everywhere = (
        {6 if ":" in line else 4 for line in part.split("\n") if line.strip()}
        for part in result.out.split("and\n")
    )
    assert found == families & everywhere
    assert 4 in everywhere


def test_a_server_that_ignores_sigterm_is_killed(airpath: Airpath, user: User) -> None:
    path = airpath.path("up")
    line = "trap '' TERM; nc -lk 5000"
    result = airpath.run(
        "exec", "-q", "--server", f"touch {path}; {line}", "--", "true", user=user
    ).check()
    assert result.seconds < 30


def test_a_server_may_end_the_run_in_its_own_time(airpath: Airpath, user: User) -> None:
    path = airpath.path("said")
    server = f"nc -l 5000 > /dev/null; sleep 0.5; echo done > {path}"
    client = ("sh", "-c", "echo hello | nc -N server 5000")
    arguments = ("--server-grace", "30 s", "--server", server)
    result = airpath.run("exec", "-q", *arguments, "--", *client, user=user).check()
    assert path.read_text() == "done\n"
    assert result.seconds < 25


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command_once(
    airpath: Airpath, user: User, number: signal.Signals
) -> None:
    path = airpath.path("signals")
    process = airpath.start("exec", "-q", "--", *airpath.program("noted-signal", path), user=user)
    await_true(path.exists)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert path.read_text() == number.name
    assert process.returncode == 40 + number


def test_unknown_congestion_control(airpath: Airpath, user: User) -> None:
    result = airpath.run("exec", "--cc", "nonesuch", "--", "true", user=user).check(2)
    assert "nonesuch" in result.err
    assert "available: " in result.err
    assert "reno" in result.err


def test_strict(airpath: Airpath, user: User) -> None:
    plain = ("exec", "--delay", "1 ms", "--lateness-bound", "1 ns")
    ping = ("ping", "-c", "2", "-i", "0.1", "server")
    airpath.run(*plain, "--", *ping, user=user).check(0)
    result = airpath.run(*plain, "--strict", "--", *ping, user=user).check(3)
    assert re.search(r"^verdict +(suspect|invalid): ", result.err, re.MULTILINE), result.err
    assert re.search(r"left too late, the worst by [\d.]+ [um]?s where 1 ns is allowed", result.err)
    # The command's own failure counts for more.
    line = "ping -c 1 server; exit 9"
    airpath.run(*plain, "--strict", "--", "sh", "-c", line, user=user).check(9)


def test_print_scenario_can_be_used_as_a_scenario(airpath: Airpath, user: User) -> None:
    plain = (
        "--rate", "5 Mbit/s,1 Mbit/s", "--delay", "20 ms", "--loss", "1%", "--queue", "10 packets",
        "--set", "radio.link.allocation_delay=7 ms",
    )  # fmt: skip
    printed = airpath.run("exec", *plain, "--print-scenario", user=user).check()
    assert printed.err == ""
    scenario = airpath.file("printed.toml", printed.out)
    again = airpath.run("exec", "--scenario", scenario, "--print-scenario", user=user).check()
    assert again.out == printed.out
    airpath.run("check", scenario, user=user).check()
    airpath.run("exec", "--scenario", scenario, "--", "true", user=user).check()
    for word in ("5 Mbit/s", "1 Mbit/s", "20 ms", "0.01", "10 packets", "7 ms"):
        assert word in printed.out


def test_every_profile_runs(airpath: Airpath, any_way: Way) -> None:
    names = json.loads(airpath.run("profiles", "--json").check().out)
    names = [entry["name"] if isinstance(entry, dict) else entry for entry in names]
    assert len(names) >= 15
    for name in names:
        shown = airpath.run("profiles", "show", name).check()
        path = airpath.file(f"{name}.toml", shown.out)
        airpath.run("check", path).check()
    # The slowest takes too long to be waited for.
    for name in ("lte-good", "umts-384", "geo-satellite"):
        airpath.exec(any_way, "--profile", name, "--", "ping", "-c", "1", "server").check()


def test_replications(airpath: Airpath, user: User) -> None:
    out = airpath.path("runs")
    command = ("ping", "-c", "3", "-i", "0.1", "server")
    result = airpath.run(
        "exec", "--delay", "1 ms", "--seed", 10, "--replications", 4, "--jobs", 2,
        "--lateness-bound", "5 s", "--out", out, "--", *command, user=user,
    ).check()  # fmt: skip
    folders = sorted(path for path in out.iterdir() if path.is_dir())
    assert len(folders) == 4
    manifests = [json.loads((folder / "run.json").read_text()) for folder in folders]
    assert [manifest["seed"] for manifest in manifests] == [10, 11, 12, 13]
    assert all(manifest["status"] == "finished" for manifest in manifests)
    assert all("3 received" in path.read_text() for path in out.glob("*.stdout"))
    assert "4 replications: median 0.2" in result.err or "median 0.3" in result.err, result.err
    assert "no verdict" not in result.err
    assert "4 trusted" in result.err


def test_replications_without_a_folder_leave_nothing(airpath: Airpath, user: User) -> None:
    arguments = ("exec", "--replications", 3, "--jobs", 3, "--", "sh", "-c", "echo hello; exit 6")
    result = airpath.run(*arguments, user=user).check(6)
    assert result.out == "hello\n" * 3
    assert list(airpath.temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_broken_off_replications(airpath: Airpath, user: User, number: signal.Signals) -> None:
    arguments = ("exec", "--replications", 4, "--jobs", 2, "--", "sleep", 100)
    process = airpath.start(*arguments, user=user)
    await_true(lambda: sum(words[:1] == ["sleep"] for words in airpath.tree().values()) == 2)
    # To this process alone, unlike Ctrl-C.
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode in (-number, 128 + number)
    airpath.wait_until_gone()
    if number == signal.SIGKILL:
        # Sockets for control of killed runs go when their owner next looks at the runs.
        airpath.run("runs", user=user)
    assert list(airpath.temporary.iterdir()) == []


def test_many_runs_at_a_time(airpath: Airpath, user: User) -> None:
    line = "ping -c 2 -i 0.1 server > /dev/null && hostname -I || exit 1"
    processes = [
        airpath.start("exec", "-q", "--delay", "2 ms", "--", "sh", "-c", line, user=user)
        for _ in range(6)
    ]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "10.77.0.2" in out


def test_the_greatest_seed(airpath: Airpath, any_way: Way) -> None:
    airpath.exec(any_way, "--seed", 2**64 - 2, "--replications", 2, "--", "true").check()


def test_arguments_need_not_be_utf8(airpath: Airpath, user: User) -> None:
    word = b"caf\xe9 \xff"
    process = subprocess.run(
        [*user.prefix, str(airpath.command), "exec", "-q", "--", "printf", "%s", word],
        env=airpath.environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert process.stdout == word, process.stderr


def test_a_command_in_the_background_does_not_outlive_the_run(airpath: Airpath, user: User) -> None:
    line = "setsid sleep 300 < /dev/null > /dev/null 2>&1 & sleep 0.1"
    airpath.run("exec", "-q", "--", "sh", "-c", line, user=user, timeout=30).check()


def test_taking_the_interface_down_is_explained(airpath: Airpath, way: Way) -> None:
    out = airpath.path("run")
    line = "ping -c 2 -i 0.1 server; ip link delete airpath0; sleep 3; echo after"
    result = airpath.exec(way, "--out", out, "--", "sh", "-c", line)
    # A device that is gone cannot carry packets: the run fails, and says why.
    assert result.status == 125
    assert "port" in result.err
    assert "interface" in result.err


def test_time_of_a_run_that_does_nothing(airpath: Airpath, user: User) -> None:
    airpath.run("exec", "-q", "--", "true", user=user).check()
    times = []
    for _ in range(3):
        begun = time.monotonic()
        airpath.run("exec", "-q", "--", "true", user=user).check()
        times.append(time.monotonic() - begun)
    # Half a second on a quiet machine; this one may be loaded.
    assert min(times) < 5


def test_what_came_before_the_run_does_not_shift_its_clock(airpath: Airpath, user: User) -> None:
    # The server's end sends a packet long before it listens; the first ping must not wait for the
    # time that had passed by then.
    server = "sleep 1; ping -c 1 -W 1 client >/dev/null; exec python3 -m http.server 8000"
    result = airpath.run(
        "exec",
        "--quiet",
        "--delay",
        "1 ms",
        "--server",
        server,
        "--",
        "ping",
        "-c",
        "1",
        "server",
        user=user,
    ).check(0)
    round_trip = re.search(r"time=([\d.]+) ms", result.out)
    assert round_trip
    assert 2 <= float(round_trip[1]) < 500


def test_messages_that_cannot_be_written_cost_nothing(airpath: Airpath) -> None:
    folder = airpath.folder("results") / "run"
    line = f"{airpath.command} exec --out {folder} -- sh -c 'exit 7' 2>/dev/full"
    process = subprocess.run(["sh", "-c", line], env=airpath.environment(), timeout=60, check=False)
    assert process.returncode == 7
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"
    full = f"{airpath.command} profiles >/dev/full"
    refused = subprocess.run(
        ["sh", "-c", full], capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode == UNWRITABLE
    assert "cannot write to standard output" in refused.stderr
