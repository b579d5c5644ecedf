# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Programs at both ends of a live link."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from experiments import LIVE, START, airpath, journal, run_folders, written
from processes import children

PROGRAMS = """\
name = "programs"
log = "counters"
lateness_bound = "2 s"
[networks.link]
inline = { hops = [{ name = "radio", link = { rate = "5 Mbit/s", propagation = "5 ms" } }] }
[workloads.work]
congestion_control = "reno"
output_limit = "10 kB"
time_limit = "1 min"
[[workloads.work.programs]]
name = "web"
end = "server"
command = "echo warming up; sleep 0.2; echo ready; exec python3 -m http.server 7001"
ready = { output = "^ready$" }
environment = { PYTHONUNBUFFERED = "1" }
[[workloads.work.programs]]
template = "send"
name = "transfer"
bytes = "20 kB"
start = "200 ms"
[[workloads.work.programs]]
template = "curl"
name = "page"
size = 4000
parts = 2
part_size = 1000
[[workloads.work.programs]]
template = "interactive"
name = "typing"
count = 3
port = 6000
[[workloads.work.programs]]
name = "flood"
end = "server"
command = "yes | head -c 2000000; echo kept > left.txt; echo gone > left.tmp"
keep = ["*.txt"]
[[workloads.work.programs]]
name = "settings"
end = "client"
start = "500 ms"
command = ["./ask.py"]
[[sets]]
name = "good"
network = "link"
workload = "work"
repetitions = 1
"""


def test_programs_at_both_ends_run_at_their_times_and_are_recorded(tmp_path: Path) -> None:
    root = tmp_path / "out"
    done = airpath("run", with_program(tmp_path, PROGRAMS), "--out", root, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    run = root / "runs/good/all/0001"
    workload = json.loads((run / "workload.json").read_text())
    programs = {program["name"]: program for program in workload["programs"]}
    assert all(program["succeeded"] for program in programs.values())
    assert workload["congestion_control"] == "reno"
    assert (run / "programs/settings.stdout").read_text() == "b'reno'\n"
    assert programs["transfer"]["start_ns"] >= 200_000_000
    assert programs["web"]["start_ns"] < 0
    assert programs["web"]["stopped"]
    flood = programs["flood"]["output"]["stdout"]
    assert flood == {"bytes": 2_000_000, "cut_off": True}
    kept = (run / "programs/flood.stdout").read_bytes()
    assert kept.startswith(b"y\n" * 5000)
    assert b"cut off here, of 2000000 bytes" in kept
    assert len(kept) < 10_100
    assert [path.name for path in (run / "programs/flood").iterdir()] == ["left.txt"]
    metrics = json.loads((run / "replication.json").read_text())["metrics"]
    assert metrics["program_goodput/transfer"] > 0
    assert metrics["program_response_time_median/typing"] >= 0.010
    assert metrics["program_transfers/page"] == 3
    assert metrics["program_bytes/page"] == 6000
    assert metrics["elapsed"] > 0.2
    assert metrics["counted_packets_delivered/downlink"] > 0
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["results"]["timings"]["bound_ns"] == 2 * 10**9


FAILING = PROGRAMS.replace("echo kept > left.txt", "echo enough >&2; exit 7").replace(
    'name = "good"\nnetwork = "link"',
    'name = "bad"\nnetwork = "link"\nworkload = "late"\nrepetitions = 1\n'
    '[[sets]]\nname = "good"\nnetwork = "link"',
)

ASK = """\
#!/usr/bin/env python3
import socket
with socket.create_connection(("server", 7001)) as connection:
    print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(bytes(1)))
"""


def with_program(folder: Path, text: str) -> Path:
    """Write an experiment, and beside it the program that it names."""
    program = folder / "ask.py"
    program.write_text(ASK)
    program.chmod(0o755)
    return written(folder, text)


LATE = """\
[[workloads.late.programs]]
name = "never"
end = "server"
command = "sleep 100"
ready = { port = 7000, within = "300 ms" }
[[workloads.late.programs]]
name = "client"
end = "client"
command = "true"
"""


def test_a_workload_that_fails_marks_its_replication_and_the_rest_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "out"
    file = with_program(tmp_path, FAILING + LATE)
    done = airpath("run", file, "--out", root, "--jobs", "1")
    assert done.returncode == 1
    entries = {entry["set"]: entry for entry in journal(root) if entry["kind"] == "done"}
    assert entries["good"]["status"] == "failed"
    assert entries["good"]["message"] == "flood: exit status 7 (enough)"
    assert "never was not ready within 0.3 s" in entries["bad"]["message"]
    assert "bad/all/0001: failed" in done.stderr


def test_a_program_that_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    text = LIVE.replace('command = "true"', 'command = ["no-such-program", "-x"]')
    root = tmp_path / "out"
    done = airpath("run", written(tmp_path, text), "--out", root)
    assert done.returncode == 123
    assert "`no-such-program`, which is not there: install it" in done.stderr
    assert not root.exists()


def test_a_replication_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    text = LIVE.replace('"true"', '"sleep 100"').replace("repetitions = 3", "repetitions = 1")
    text = text.replace("[[sets]]", 'time_limit = "2 s"\n[[sets]]')
    text = text.replace("programs = [", "programs = [ ")
    root = tmp_path / "out"
    done = airpath("run", written(tmp_path, text), "--out", root, "--jobs", "1")
    assert done.returncode == 1
    assert journal(root)[-1]["message"] == "took longer than 2 s"
    assert run_folders(root) == {"set/all/0001"}


def test_an_engine_that_is_killed_breaks_its_replication_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    text = LIVE.replace('"true"', '"test $AIRPATH_REPLICATION = 2 || exec sleep 100"')
    text = text.replace("repetitions = 3", "repetitions = 2")
    file, root = written(tmp_path, text), tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", START, "run", str(file), "--out", str(root), "--jobs", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    work = root / "runs/set/all/0001.work"
    until = time.monotonic() + 60
    while not list(work.glob("programs/one.stdout")) and time.monotonic() < until:
        time.sleep(0.02)
    # The engine is the runner's child, as what launches it becomes it.
    (engine,) = children(process.pid)
    os.kill(engine, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    entries = {entry["replication"]: entry for entry in journal(root)}
    assert entries[1]["status"] == "broken"
    assert entries[1]["message"] == "the engine was ended by SIGKILL"
    assert entries[2]["status"] == "succeeded"
    assert run_folders(root) == {"set/all/0001", "set/all/0002"}
    assert str(work) not in " ".join(command_lines())


def command_lines() -> list[str]:
    """Return the command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return found


def test_the_network_stands_for_commands_by_hand(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", START, "run", str(written(tmp_path, PROGRAMS)), "--manual"],
        input="start transfer-server\nserver echo I am at the server\nfalse\nstart nobody\n\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "I am at the server" in process.stdout + process.stderr
    assert "exit status 1" in process.stdout
    assert "there is no program `nobody`" in process.stdout


USERS = """\
name = "users"
log = "counters"
[networks.cell]
users = 3
[networks.cell.inline]
media = [{ name = "shared", type = "continuous", downlink = "5 Mbit/s" }]
[[networks.cell.inline.paths]]
name = "phone"
hops = [{ name = "radio", link = { propagation = "5 ms" }, downlink = { medium = "shared" } }]
[[workloads.work.programs]]
name = "web"
end = "server"
command = "exec python3 -m http.server --bind 0.0.0.0 7001"
ready = { port = 7001 }
[[workloads.work.programs]]
name = "page"
end = "client"
start = "100 ms"
command = "curl -4 -s -o page http://server:7001/ && echo $AIRPATH_USER"
[[workloads.work.programs]]
name = "call"
end = "client"
user = "phone-2"
command = "sleep 0.5; echo $AIRPATH_USER of $AIRPATH_USERS; rm -f left.tmp; echo x > kept.txt"
keep = ["*.txt"]
[[workloads.work.programs]]
template = "send"
name = "download"
user = "*-?"
bytes = "20 kB"
family = "ipv4"
[[workloads.work.programs]]
template = "interactive"
name = "typing"
count = 2
port = 6000
[[sets]]
name = "good"
network = "cell"
workload = "work"
repetitions = 1
"""


def test_programs_run_at_the_ends_of_every_user_or_of_one(tmp_path: Path) -> None:
    root = tmp_path / "out"
    done = airpath("run", written(tmp_path, USERS), "--out", root, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    run = root / "runs/good/all/0001"
    programs = json.loads((run / "workload.json").read_text())["programs"]
    assert all(program["succeeded"] for program in programs)
    places = {program["name"]: (program["end"], program["user"]) for program in programs}
    phones = [f"phone-{number}" for number in (1, 2, 3)]
    assert places == {
        "web": ("server", None),
        "call": ("client", "phone-2"),
        "download-server": ("server", None),
        "typing-server": ("server", None),
        **{
            f"{name}-{phone}": ("client", phone)
            for name in ("page", "download", "typing")
            for phone in phones
        },
    }
    told = json.loads((run / "replication.json").read_text())["metrics"]
    for phone in phones:
        assert told[f"program_goodput/download-{phone}"] > 0
        report = json.loads((run / f"programs/download-{phone}.stdout").read_text())
        assert "." in report["start"]["connected"][0]["remote_host"], "not by IPv4"
        assert told[f"program_response_time_min/typing-{phone}"] > 0.010
    for phone in phones:
        assert (run / f"programs/page-{phone}.stdout").read_text() == f"{phone}\n"
        assert "Directory listing" in (run / f"programs/page-{phone}/page").read_text()
    assert (run / "programs/call.stdout").read_text() == "phone-2 of 3\n"
    assert [path.name for path in (run / "programs/call").iterdir()] == ["kept.txt"]
    starts = [p["start_ns"] for p in programs if p["program"] == "page"]
    assert all(100_000_000 <= start < 60 * 10**9 for start in starts)
    assert len(starts) == 3


def test_a_program_of_a_user_who_is_not_there_fails(tmp_path: Path) -> None:
    root = tmp_path / "out"
    text = USERS.replace('user = "phone-2"', 'user = "phone-4"')
    done = airpath("run", written(tmp_path, text), "--out", root, "--jobs", "1")
    assert done.returncode == 1
    messages = [entry["message"] for entry in journal(root) if "message" in entry]
    assert any("call: there is no user `phone-4`" in message for message in messages), messages
    refused = written(tmp_path, USERS.replace('name = "web"', 'name = "web"\nuser = "phone-1"'))
    done = airpath("run", refused, "--out", tmp_path / "other")
    assert done.returncode == 2
    assert "leave out `user`" in done.stderr
