# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A run in virtual time is what a live one is: link, files, streams, exit status."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from live.test_link import PIPELINE

if TYPE_CHECKING:
    from live.harness import Airpath, User
    from warp.conftest import Warp


def test_a_minute_of_ping_takes_seconds(warp: Warp, user: User) -> None:
    out = warp.airpath.path("run")
    ping = ("ping", "-c", "61", "-i", "1", "server")
    result = warp.run("--delay", "30 ms,50 ms", "--out", out, "--", *ping, user=user).check()
    times = [float(time) for time in re.findall(r"time=([\d.]+) ms", result.out)]
    assert len(times) == 61
    # Nothing but the link takes time.
    assert min(times) >= 80
    assert max(times) < 82
    run = load_run(out)
    assert run.manifest["clock"] == "warp"
    assert run.manifest["status"] == "finished"
    assert run.manifest["results"]["verdict"]["grade"] == "trusted"
    assert 60 <= run.manifest["results"]["duration_ns"] / 1e9 < 61
    assert run.path_events("delivered").height == 122
    # Real time, on a loaded machine too.
    assert result.seconds < 40
    told = re.search(r"warp: ([\d.]+) s of virtual time in ([\d.]+) s", result.err)
    assert told is not None
    assert float(told[1]) > 60


def test_a_window_stops_the_sender(warp: Warp) -> None:
    path, out = warp.airpath.path("datagrams"), warp.airpath.path("run")
    report = warp.airpath.path("counters")
    server = warp.airpath.server("datagram-server", 4, "udp", 0, 5000, path, report)
    client = warp.airpath.program("datagram-client", 4, "udp", 0, 5000, 250, 500, 0, 4)
    scenario = warp.airpath.file("pipeline.toml", PIPELINE)
    plain = ("--scenario", scenario, "--log", "events", "--out", out, "--server", server)
    warp.run(*plain, "--", *client).check()
    assert len(path.read_text().splitlines()) == 250
    results = load_run(out).manifest["results"]
    assert results["verdict"]["grade"] == "trusted", results["verdict"]
    assert results["timings"]["entries"]["max_ns"] < 1_000_000
    assert warp.airpath.run("replay", out).check().out.startswith("identical: ")


def test_the_summary_names_the_clock(warp: Warp) -> None:
    result = warp.run("--json", "--", "true").check()
    summary = next(line for line in result.err.splitlines() if line.startswith("{"))
    assert json.loads(summary)["clock"] == "warp"


def test_streams_stay_apart_and_whole(warp: Warp, user: User) -> None:
    program = (
        "import os, sys; data = bytes(range(256)) * 4096; os.write(2, b'E' * 1000 + b'\\0\\r\\n');"
        "sys.stdout.buffer.write(data); sys.stdout.buffer.write(sys.stdin.buffer.read())"
    )
    words = [
        *(user.prefix), str(warp.airpath.command), "exec", "--clock", "warp", "-q", "--",
        warp.airpath.python, "-c", program,
    ]  # fmt: skip
    given = bytes(reversed(range(256))) * 1000
    done = subprocess.run(
        words,
        input=given,
        capture_output=True,
        env={**warp.airpath.environment(), **warp.environment},
        cwd=warp.airpath.work,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == bytes(range(256)) * 4096 + given
    assert done.stderr == b"E" * 1000 + b"\0\r\n"


def test_one_stream_keeps_its_order(warp: Warp) -> None:
    line = "for i in $(seq 200); do echo out $i; echo err $i >&2; done"
    result = warp.run("-q", "--", "sh", "-c", line, stderr=subprocess.STDOUT).check()
    expected = [f"{word} {number}" for number in range(1, 201) for word in ("out", "err")]
    assert result.out.splitlines() == expected


@pytest.mark.parametrize(("line", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_commands(warp: Warp, line: str, status: int) -> None:
    warp.run("-q", "--", "sh", "-c", line).check(status)
    warp.run("-q", "--", "no-such-command").check(127)


def test_the_place_is_that_of_the_command(warp: Warp, user: User) -> None:
    line = "pwd; id -u; umask; echo $WORD; echo made > made; cat made; ls -d $TMPDIR"
    folder = warp.airpath.folder("place")
    result = warp.run(
        "-q", "--", "sh", "-c", line, user=user, cwd=folder, environment={"WORD": "a  b"}
    ).check()
    uid = "0" if user.name == "root" else subprocess.run(
        [*user.prefix, "id", "-u"], capture_output=True, text=True, check=True
    ).stdout.strip()  # fmt: skip
    assert result.out.splitlines()[:5] == [str(folder), uid, "0022", "a b", "made"]
    assert (folder / "made").read_text() == "made\n"


def test_replications_have_the_same_folders(warp: Warp, user: User) -> None:
    out = warp.airpath.path("many")
    ping = ("ping", "-c", "3", "-i", "0.2", "server")
    many = ("--replications", 4, "--jobs", 2, "--seed", 5, "--loss", "10%")
    result = warp.run(*many, "--out", out, "--", *ping, user=user)
    assert result.status in (0, 1), result.err
    assert "4 replications: median" in result.err
    for number in range(1, 5):
        manifest = json.loads((out / f"replication-{number:04}" / "run.json").read_text())
        assert manifest["clock"] == "warp"
        assert manifest["seed"] == 4 + number
        assert "packets transmitted" in (out / f"replication-{number:04}.stdout").read_text()


def test_what_a_guest_cannot_have_is_said(warp: Warp) -> None:
    for option in (["--internet"], ["--host-port", "80"]):
        result = warp.run(*option, "--", "true").check(2)
        assert option[0] in result.err
        assert "--clock warp" in result.err
    result = warp.run("--", "true", environment={"AIRPATH_WARP_KERNEL": "/bin/sh"}).check(123)
    assert "airpath warp setup" in result.err


def test_a_place_that_cannot_be_entered_is_left_for_the_root(warp: Warp) -> None:
    gone = warp.airpath.folder("gone")
    line = f'cd {gone} && rmdir {gone} && exec "$@"'
    words = [str(warp.airpath.command), "exec", "--clock", "warp", "-q", "--", "pwd"]
    result = subprocess.run(
        ["sh", "-c", line, "sh", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**warp.airpath.environment(), **warp.environment},
        timeout=150,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "/\n"), result.stderr
    assert "it starts in /" in result.stderr


@pytest.mark.parametrize("option", ["--wall-limit", "--stall-limit"])
def test_limits_are_for_warp(airpath: Airpath, option: str) -> None:
    result = airpath.run("exec", option, "5 s", "--", "true").check(2)
    assert f"{option} needs --clock warp" in result.err


def test_a_folder_is_used_once(warp: Warp) -> None:
    out = warp.airpath.path("run")
    warp.run("--out", out, "--", "true").check()
    result = warp.run("--out", out, "--", "true").check(2)
    assert "holds a run" in result.err


def test_commands_find_airpath(warp: Warp, user: User) -> None:
    command = warp.airpath.command.resolve()
    place = command.parent
    show = ("-q", "--", "sh", "-c", f'echo "$PATH"; {command.name} --version')
    out = warp.run(*show, user=user).check().out
    assert out == warp.airpath.run("exec", *show, user=user).check().out
    assert str(place) in out.splitlines()[0].split(":")


def test_a_program_in_the_run_is_told_that_it_cannot_change_it(warp: Warp) -> None:
    set_rate = (str(warp.airpath.command), "set", "radio.link.rate=1 Mbit/s")
    result = warp.run("--delay", "5 ms", "--", *set_rate).check(2)
    assert "no active runs; a run in virtual time cannot be changed" in result.err
    assert "[[states]]" in result.err
