# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs on several hosts that break off: a clean end, and all that was recorded."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from airpath.run import load_run
from live.harness import await_true
from live.hosts import assert_joined, chain, recording, scenario
from processes import children, has_ended

if TYPE_CHECKING:
    from live.harness import Airpath
    from live.lab import Lab


def engine_of(process: subprocess.Popen[str]) -> int:
    """Return the engine's process here: the first one of its process namespace."""
    for pid in children(process.pid):
        status = Path(f"/proc/{pid}/status").read_text()
        if (
            next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1]
            == "1"
        ):
            return pid
    msg = "the engine does not run"
    raise AssertionError(msg)


def test_the_loss_of_the_third_host_ends_all(airpath: Airpath, lab: Lab) -> None:
    """The run ends, names the host, and has the logs of all three."""
    out = airpath.path("run")
    process = recording(airpath, lab, chain(airpath, lab), out)
    os.kill(lab.runner(lab.farther_pid), signal.SIGKILL)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 125, errors
    manifest = json.loads((out / "run.json").read_text())
    failures = {host["name"]: host.get("failure", "") for host in manifest["hosts"]}
    assert failures["lab2"] == ""
    assert "lab3" in failures["lab3"]
    for part in ("local", "lab2", "lab3"):
        assert airpath.run("log", out / "hosts" / part).check().out.count("delivered") > 5
    assert_joined(airpath, out, {"radio", "wire", "core"})
    assert not any(lab.cache().iterdir())
    await_true(lambda: not lab.engines())


def test_the_log_of_a_host_that_is_lost_for_good_is_here(airpath: Airpath, lab: Lab) -> None:
    """The log there is copied while it grows; what cannot be fetched any more is here so far."""
    out = airpath.path("run")
    process = airpath.start(
        *("exec", "--scenario", scenario(airpath, lab), "--out", out),
        *("--", "ping", "-i", "0.02", "server"),
        user=lab.user,
        stdout=subprocess.DEVNULL,
    )
    copy = out / "hosts/lab2/events.arrow"
    await_true(lambda: copy.exists() and copy.stat().st_size > 20_000)
    there = next(lab.cache().iterdir())
    shutil.rmtree(there)
    for pid in lab.engines():
        os.kill(pid, signal.SIGKILL)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 125, errors
    assert f"in its folder {there}, and could not be fetched" in errors
    assert f"during the run is in {out}" in errors
    of_part = {
        part: [json.loads(row) for row in airpath.run("log", folder, "--json").out.splitlines()]
        for part, folder in (("local", out / "hosts/local"), ("lab2", copy.parent))
    }
    last = {part: events[-1]["time_ns"] for part, events in of_part.items()}
    # What waits in the engine's memory, what grew since the last look, and a busy machine.
    assert last["local"] - last["lab2"] < 5_000_000_000, last
    assert sum(event["kind"] == "delivered" for event in of_part["lab2"]) > 5
    assert not list(out.glob("hosts/.*"))
    assert_joined(airpath, out, {"radio", "core"})


def test_the_log_is_readable_once_the_near_engine_is_killed(airpath: Airpath, lab: Lab) -> None:
    """Nobody is left to join the parts; each has what was recorded, here."""
    out = airpath.path("run")
    process = recording(airpath, lab, scenario(airpath, lab), out)
    copy = out / "hosts/lab2/events.arrow"
    await_true(lambda: copy.exists() and copy.stat().st_size > 20_000)
    process.kill()
    process.communicate(timeout=60)
    await_true(lambda: not lab.engines())
    # A process that is left fetches the rest.
    await_true(lambda: not any(lab.cache().iterdir()))
    for part in ("local", "lab2"):
        assert airpath.run("log", out / "hosts" / part).check().out.count("delivered") > 5


@pytest.mark.parametrize("victim", ["far engine", "engine", "command"])
def test_a_run_that_is_cut_in_its_first_second_keeps_its_log(
    airpath: Airpath, lab: Lab, victim: str
) -> None:
    """Whatever is killed, the parts of both hosts are here."""
    out, up = airpath.path("run"), airpath.path("up")
    process = airpath.start(
        *("exec", "--scenario", scenario(airpath, lab), "--out", out),
        *("--", "sh", "-c", f"ping -q -c 10 -i 0.01 server; touch {up}; exec sleep 60"),
        user=lab.user,
        stdout=subprocess.DEVNULL,
    )
    await_true(up.exists)
    if victim == "command":
        process.kill()
    else:
        os.kill(engine_of(process) if victim == "engine" else lab.runner(), signal.SIGKILL)
    errors = process.communicate(timeout=60)[1]
    await_true(lambda: not lab.engines())
    airpath.wait_until_gone()
    assert not any(lab.cache().iterdir())
    for part in ("local", "lab2"):
        shown = airpath.run("log", out / "hosts" / part).check()
        # What the engine's memory held is lost with it.
        assert shown.out.count("delivered") > 0 or victim != "far engine", (part, errors)
    if victim == "command":
        refused = airpath.run("log", out).check(2)
        assert "holds the parts of a run on several hosts" in refused.err
        assert str(out / "hosts/local") in refused.err
        return
    assert process.returncode == 125, errors
    assert load_run(out).manifest["status"] == "failed"
    airpath.run("log", out).check()


@pytest.mark.parametrize("victim", ["engine", "network", "network for good"])
def test_what_was_recorded_stays_when_the_other_host_is_lost(
    airpath: Airpath, lab: Lab, victim: str
) -> None:
    """The run ends, says which host and why, and keeps the logs of both hosts."""
    out = airpath.path("run")
    process = recording(airpath, lab, scenario(airpath, lab), out)
    errors = ""
    if victim == "engine":
        os.kill(lab.runner(), signal.SIGKILL)
    else:
        copy = out / "hosts/lab2/events.arrow"
        await_true(lambda: copy.exists() and copy.stat().st_size > 20_000)
        lab.cut()
        assert process.stderr
        while "no word for 10 s" not in errors:
            line = process.stderr.readline()
            assert line, errors
            errors += line
    if victim == "network":
        lab.at_far("ip", "link", "set", "far", "up")
    errors += process.communicate(timeout=60)[1]
    assert process.returncode == 125, errors
    assert "host `lab2`" in errors
    if victim == "network for good":
        lab.at_far("ip", "link", "set", "far", "up")
        assert "could not be fetched" in errors
        assert f"during the run is in {out / 'hosts/lab2'}" in errors
        await_true(lambda: not lab.engines())
        shutil.rmtree(next(lab.cache().iterdir()))
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["status"] == "failed"
    assert "lab2" in manifest["hosts"][0]["failure"]
    for part in ("local", "lab2"):
        assert airpath.run("log", out / "hosts" / part).check().out.count("delivered") > 5
    assert not any(lab.cache().iterdir())
    await_true(lambda: not lab.engines())
    assert_joined(airpath, out, {"radio", "core"})


def test_a_run_without_packets_has_a_log(airpath: Airpath, lab: Lab) -> None:
    """Tables without rows are tables: nothing calls the folder damaged."""
    out = airpath.path("run")
    words = ("exec", "--scenario", scenario(airpath, lab), "--out", out, "--quiet", "--", "true")
    airpath.run(*words, user=lab.user).check()
    assert (out / "events.arrow").exists()
    assert airpath.run("log", out).check().err == ""
    assert load_run(out).damage == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_while_it_connects_leaves_nothing(
    airpath: Airpath, lab: Lab, by: signal.Signals
) -> None:
    """An ssh that hangs ends with it, and whatever that waits for."""
    out, hung = airpath.path("run"), airpath.path("hung")
    file = scenario(airpath, lab)
    # It would outlive the ssh, which waits for it for 10 s.
    waits = airpath.file("wait.sh", f"trap '' HUP TERM; echo $$ > {hung}; exec sleep 600")
    text = file.read_text().replace('["-F"', f'["-oProxyCommand=sh {waits}", "-F"')
    process = airpath.start(
        "exec",
        "--scenario",
        airpath.file("hung.toml", text),
        "--out",
        out,
        "--",
        "true",
        user=lab.user,
        # A shell without job control lets what it starts beside itself ignore SIGINT.
        preexec_fn=lambda: signal.signal(by, signal.SIG_DFL),
    )
    await_true(lambda: hung.exists() and hung.read_text().endswith("\n"))
    waiting = int(hung.read_text())
    ssh = psutil.Process(waiting).ppid()
    process.send_signal(by)
    process.communicate(timeout=30)
    assert process.returncode == -by
    await_true(lambda: has_ended(waiting) and has_ended(ssh))
    assert not out.exists()
    words = ("exec", "--scenario", file, "--out", out, "--quiet", "--", "true")
    airpath.run(*words, user=lab.user).check()


def test_a_full_disk_of_the_other_host_is_told(airpath: Airpath, lab: Lab) -> None:
    """The run goes on; what was written is there, and the verdict says which host and why."""
    out = airpath.path("run")
    lab.cache().mkdir(parents=True, exist_ok=True)
    mount = ("nsenter", "-t", str(lab.far_pid), "-m", "mount", "-t", "tmpfs", "-o", "size=120k")
    subprocess.run([*mount, "none", lab.cache()], check=True)
    try:
        result = airpath.run(
            *("exec", "--scenario", scenario(airpath, lab), "--out", out, "--json"),
            *("--", "ping", "-q", "-i", "0.002", "-c", "400", "server"),
            user=lab.user,
        ).check()
    finally:
        unmount = ("nsenter", "-t", str(lab.far_pid), "-m", "umount", lab.cache())
        subprocess.run(unmount, check=True)
    reasons = [reason["what"] for reason in result.summary()["verdict"]["reasons"]]
    assert any("lab2" in reason and "No space left" in reason for reason in reasons), reasons
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["status"] == "finished"
    assert not manifest["results"]["log"]["complete"]
    assert airpath.run("log", out).check().out.count("delivered") > 100
