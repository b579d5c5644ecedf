# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Hops on several hosts: one run, one folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from live import lab as labs
from live.harness import NOBODY, await_true
from live.hosts import HOPS, account, chain, scenario

if TYPE_CHECKING:
    from live.harness import Airpath
    from live.lab import Lab

STATES = """
[[states]]
name = "slow"
set = { "radio.link.propagation" = "25 ms", "core.link.propagation" = "95 ms" }
"""


def test_two_hops_on_two_hosts_are_one_run(airpath: Airpath, lab: Lab) -> None:
    """Ping and TCP cross both hops; the folder is that of one path, each part can be replayed."""
    out = airpath.path("run")
    line = f"ping -c 5 -i 0.2 server && {airpath.command} send server --bytes 200000"
    result = airpath.run(
        *("exec", "--scenario", scenario(airpath, lab), "--seed", 7, "--json", "--out", out),
        *("--lateness-bound", "1 s", "--server", f"{airpath.command} recv --once"),
        *("--", "sh", "-c", line),
        user=lab.user,
    ).check()
    # 2 · (20 + 30) ms of propagation, and 0.3 ms of transmission at the radio's rate.
    assert all(time >= 100 for time in result.ping_times_ms()), result.out
    summary = result.summary()
    assert summary["uplink"]["delivered_packets"] >= 145
    assert summary["uplink"]["delay"]["p50_ns"] >= 50_000_000
    # The run ends with its commands: an acknowledgement of the last FIN may still be inside.
    assert summary["downlink"]["inside_packets"] <= 1
    run = load_run(out)
    assert run.manifest["hops"] == ["radio", "core"]
    assert [command["end"] for command in run.manifest["commands"]] == ["server", "client"]
    host = account(out)
    assert host["name"] == "lab2"
    assert host["hops"] == ["core"]
    # One kernel, one wall clock; the monotonic clock of the far host is far ahead.
    assert abs(host["clock"]["offset_ns"]) <= host["clock"]["bound_ns"]
    assert host["clock"]["bound_ns"] < 50_000_000
    assert host["lateness"]["count"] > 100
    assert host["network_delay"]["to_host"]["count"] > 100
    counts: Counter[tuple[str, str]] = Counter()
    for row in airpath.run("log", out, "--json", "--direction", "uplink").out.splitlines():
        event = json.loads(row)
        counts[event["hop"], event["kind"]] += 1
    offered = counts["path", "offered"]
    assert offered == counts["radio", "enqueued"]
    # The end of the run finds the last acknowledgements on their way.
    passed = counts["radio", "passed"]
    for reached in (passed, counts["core", "enqueued"], counts["path", "delivered"]):
        assert offered - 5 <= reached <= offered
    for part in ("local", "lab2"):
        airpath.run("replay", out / "hosts" / part).check()
    assert not any(lab.cache().iterdir())


@pytest.mark.parametrize("sign", ["is ready", "5001"])
def test_the_client_waits_for_the_sign_of_a_far_server(
    airpath: Airpath, lab: Lab, sign: str
) -> None:
    """A text of the server's output, or a port, as where all hops are on this host."""
    path = airpath.path("ready")
    if sign == "5001":
        line = f"nc -lk 5000 & sleep 1; touch {path}; nc -lk 5001"
    else:
        line = f"echo begins; sleep 1; touch {path}; echo 'is ready'; sleep 60"
    airpath.run(
        *("exec", "--scenario", scenario(airpath, lab), "--quiet"),
        *("--server", line, "--server-ready", sign, "--", "test", "-e", path),
        user=lab.user,
    ).check()


@pytest.mark.parametrize("way", ["through this host", "by UDP"])
def test_three_hops_on_three_hosts_are_one_run(airpath: Airpath, lab: Lab, way: str) -> None:
    """A path goes on at a third host; a state takes effect on all; each part can be replayed."""
    out, up = airpath.path("run"), airpath.path("up")
    line = f"ping -c 5 -i 0.1 server; touch {up}; cat >/dev/null; ping -c 3 -i 0.1 server"
    process = airpath.start(
        *("exec", "--scenario", chain(airpath, lab, udp=way == "by UDP"), "--seed", 7),
        *("--out", out, "--lateness-bound", "1 s", "--quiet", "--", "sh", "-c", line),
        user=lab.user,
        stdin=subprocess.PIPE,
    )
    await_true(up.exists)
    told = airpath.run("state", "slow", "--json", user=lab.user).check().document()
    assert set(told["hosts"]) == {"lab2", "lab3"}
    assert all(abs(told["time_ns"] - at) < 50_000_000 for at in told["hosts"].values()), told
    both = ("wire.link.rate=40 Mbit/s", "core.link.rate=8 Mbit/s")
    airpath.run("set", *both, user=lab.user).check()
    # What one host refuses, no other carries out.
    refused = airpath.run("set", "wire.link.rate=1 Mbit/s", "core.link.ratio=3", user=lab.user)
    assert refused.status != 0
    assert "lab3" in refused.err
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    times = [float(word[5:]) for word in output.split() if word.startswith("time=")]
    # 2 · (20 + 10 + 30) ms, then 2 · (20 + 40 + 60) ms.
    assert len(times) == 8, output
    assert all(time >= 120 for time in times), times
    assert all(time >= 240 for time in times[5:]), times
    run = load_run(out)
    assert run.manifest["hops"] == ["radio", "wire", "core"]
    assert [host["name"] for host in run.manifest["hosts"]] == ["local", "lab2", "lab3"]
    for host in run.manifest["hosts"][1:]:
        assert abs(host["clock"]["offset_ns"]) <= host["clock"]["bound_ns"], host
        delays = host["network_delay"]
        assert min(delays["to_host"]["count"], delays["from_host"]["count"]) >= 8, delays
    events = [json.loads(row) for row in airpath.run("log", out, "--json").out.splitlines()]
    counts = Counter((e["hop"], e["direction"], e["kind"]) for e in events)
    for direction, hops in (("uplink", ("radio", "wire")), ("downlink", ("core", "wire"))):
        passed = {counts[hop, direction, "passed"] for hop in hops}
        offered = counts["path", direction, "offered"]
        assert passed == {offered} == {counts["path", direction, "delivered"]}, counts
    assert counts["path", "uplink", "state_changed"] == 1
    kinds = Counter(
        json.loads(row)["kind"]
        for row in airpath.run("log", out / "hosts/lab2", "--json").out.splitlines()
    )
    assert kinds["parameter_set"] == 1
    for part in ("local", "lab2", "lab3"):
        airpath.run("replay", out / "hosts" / part).check()
    assert not any(lab.cache().iterdir())


def test_the_path_may_come_back_to_this_host(airpath: Airpath, lab: Lab) -> None:
    """Hops of this host behind those of another are a part of their own, with the server."""
    out = airpath.path("run")
    server = f"{airpath.command} recv --once"
    airpath.run(
        *("exec", "--scenario", chain(airpath, lab, "local"), "--out", out, "--quiet"),
        *("--server", server, "--", airpath.command, "send", "server", "--bytes", 50_000),
        user=lab.user,
    ).check()
    run = load_run(out)
    assert [host["name"] for host in run.manifest["hosts"]] == ["local", "lab2", "local-2"]
    assert [command["end"] for command in run.manifest["commands"]] == ["server", "client"]
    assert (out / "hosts/local-2/events.arrow").exists()
    airpath.run("replay", out / "hosts/local-2").check()


def test_a_state_takes_effect_on_both_hosts_at_one_instant(airpath: Airpath, lab: Lab) -> None:
    """The state changes the propagation of both hops by what it says."""
    out, up = airpath.path("run"), airpath.path("up")
    process = airpath.start(
        *(
            "exec",
            "--scenario",
            scenario(airpath, lab, states=STATES),
            "--out",
            out,
            "--quiet",
            "--",
        ),
        *("sh", "-c", f"touch {up}; sleep 1; ping -c 2 -i 0.2 server; cat >/dev/null"),
        user=lab.user,
        stdin=subprocess.PIPE,
    )
    await_true(up.exists)
    told = airpath.run("state", "slow", "--json", user=lab.user).check().document()
    # Both told the instant by the clock of the run, which they agreed on.
    assert abs(told["time_ns"] - told["hosts"]["lab2"]) < 50_000_000
    refused = airpath.run("set", "core.link.ratio=3", user=lab.user)
    assert refused.status != 0
    assert "lab2" in refused.err
    set_there = airpath.run(
        "set", "core.link.rate=5 Mbit/s", "radio.link.rate=3 Mbit/s", user=lab.user
    )
    set_there.check()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    times = [float(word[5:]) for word in output.split() if word.startswith("time=")]
    assert times, output
    assert all(time >= 240 for time in times), output
    changed = []
    for part in ("local", "lab2"):
        rows = airpath.run("log", out / "hosts" / part, "--json").out.splitlines()
        events = [json.loads(row) for row in rows]
        changed.append(
            [e["time_ns"] for e in events if e["kind"] in {"state_changed", "parameter_set"}]
        )
    assert len(changed[0]) == len(changed[1]) == 2
    starts = [
        json.loads((out / f"hosts/{part}/run.json").read_text())["start_unix_ns"]
        for part in ("local", "lab2")
    ]
    for near, far in zip(*changed, strict=True):
        assert (
            abs((starts[0] + near) - (starts[1] + far))
            < account(out)["clock"]["bound_ns"] + 1_000_000
        )


def test_the_delay_of_the_network_is_subtracted(airpath: Airpath, lab: Lab) -> None:
    """The delay that was measured before the run is taken off the propagation at the border."""
    out = airpath.path("run")
    file = scenario(airpath, lab, more="subtract_delay = true")
    command = ("--scenario", file, "--out", out, "--quiet", "--", "ping", "-c", "1", "server")
    airpath.run("exec", *command, user=lab.user).check()
    subtracted = account(out)["subtracted_delay_ns"]
    assert 0 < subtracted < 20_000_000
    local = json.loads((out / "hosts/local/run.json").read_text())["scenario"]["hops"][0]
    assert local["uplink"]["propagation"] != local["downlink"]["propagation"]
    short = scenario(airpath, lab, more="subtract_delay = true", propagation="1 ns")
    refused = airpath.run("exec", "--scenario", short, "--", "true", user=lab.user).check(2)
    assert "core.downlink.propagation is 1 ns" in refused.err


def test_an_ordinary_user_needs_no_rights_at_either_end(airpath: Airpath, lab: Lab) -> None:
    """Neither the command, nor sshd, nor the far engine belongs to root."""
    home = airpath.folder("home")
    home.chmod(0o755)
    user, options, sshd = lab.serve_nobody(home)
    try:
        text = f'[hosts.lab2]\nssh = "nobody@{labs.FAR}"\nssh_options = {json.dumps(options)}\n'
        text += f'engine = "{airpath.command}"\n'
        text += HOPS.format(propagation="30 ms", limit="100 packets")
        file = airpath.file("ordinary.toml", text)
        await_true((home / "sshd-nobody.pid").exists)
        out = home / "run"
        line = ("--", "ping", "-c", "3", "-i", "0.05", "server")
        result = airpath.run("exec", "--scenario", file, "--out", out, *line, user=user).check()
    finally:
        sshd.kill()
        sshd.wait()
    assert len(result.ping_times_ms()) == 3
    assert all(time >= 100 for time in result.ping_times_ms()), result.out
    assert out.stat().st_uid == NOBODY
    assert not any((home / "cache/airpath/hosts").iterdir())
    airpath.run("replay", out / "hosts/lab2", user=user).check()


def test_an_engine_is_copied_where_there_is_none(airpath: Airpath, lab: Lab) -> None:
    """Without a copy the run says what to do; with --install-engine it runs."""
    file = scenario(airpath, lab, engine="")
    words = ("exec", "--scenario", file, "--quiet", "--", "ping", "-c", "1", "server")
    refused = airpath.run(*words, user=lab.user).check(125)
    assert "there is no engine" in refused.err
    assert "--install-engine" in refused.err
    airpath.run("exec", "--install-engine", *words[1:], user=lab.user).check()
    airpath.run(*words, user=lab.user).check()


def test_bad_hosts_are_told_before_anything_runs(airpath: Airpath, lab: Lab) -> None:
    """Each mistake has a message of its own, and leaves no folder."""
    out = airpath.path("run")
    hello = {"word": "hello", "protocol": 1, "airpath_version": "0.0.1", "clock_identity": ""}
    word = b"\x01" + json.dumps(hello).encode()
    said = airpath.path("said")
    said.write_bytes(b"\nairpath-remote-hop\n" + len(word).to_bytes(4, "little") + word)
    old = airpath.file("old", f"#!/bin/sh\ncat {said}\n")
    old.chmod(0o755)
    forbidden = airpath.file("forbidden", "#!/bin/sh\n")
    cases = [
        ({"ssh": "root@10.99.0.2", "engine": str(forbidden)}, 125, "may not be executed"),
        ({"engine": "/nowhere/airpath-engine"}, 125, "there is no engine at /nowhere/airpath-en"),
        ({"engine": "~/nowhere/airpath-engine"}, 125, "there is no engine at ~/nowhere"),
        ({"ssh": ""}, 2, "hosts.lab2.ssh: an empty destination"),
        ({"engine": str(old)}, 125, "is Airpath 0.0.1"),
        # What ssh said is in the message, and nothing is said to be above.
        ({"ssh": "nobody-like-this@10.99.0.2"}, 125, "ssh could not connect: nobody-like-this@"),
        ({"ssh": "nobody-like-this@10.99.0.2"}, 125, "ssh -oBatchMode=yes -F /dev/null"),
        ({"ssh": "root@10.99.0.3"}, 125, "ssh could not connect: ssh: connect to host 10.99.0.3"),
        ({"engine": "/bin/true"}, 125, "could not be started"),
    ]
    for keys, status, message in cases:
        file = scenario(airpath, lab, **keys)
        command = ("exec", "--scenario", file, "--out", out, "--", "true")
        result = airpath.run(*command, user=lab.user).check(status)
        assert message in result.err, (keys, result.err)
        assert "lab2" in result.err
        assert not out.exists()
    unknown = airpath.file("unknown.toml", HOPS.format(propagation="1 ms", limit="1 packet"))
    refused = airpath.run("exec", "--scenario", unknown, "--", "true").check(2)
    assert "there is no host `lab2`" in refused.err
    ends = ("--client-interface", "near", "--server-interface", "near2")
    gateway = airpath.run("gateway", "--scenario", scenario(airpath, lab), *ends, user=lab.user)
    assert "a gateway is not available where hops are on several hosts" in gateway.check(2).err
    environment = {"PATH": str(airpath.folder("empty"))}
    file = scenario(airpath, lab)
    no_ssh = airpath.run("exec", "--scenario", file, "--", "/bin/true", environment=environment)
    assert "ssh" in no_ssh.check(125).err


def test_a_second_ssh_that_hangs_holds_up_no_run(airpath: Airpath, lab: Lab) -> None:
    """The connection for logs gets no answer; the run has its results over the one for packets."""
    folder, out = airpath.folder("bin"), airpath.path("run")
    wrapper = folder / "ssh"
    ssh = shutil.which("ssh")
    wrapper.write_text(
        f'#!/bin/sh\nif mkdir {folder}/first 2>/dev/null; then exec {ssh} "$@"; fi\n'
        f"echo $$ > {folder}/hung\nexec sleep 300\n"
    )
    wrapper.chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    words = ("--out", out, "--quiet", "--", "ping", "-c", "3", "-i", "0.5", "server")
    command = ("exec", "--scenario", scenario(airpath, lab), *words)
    begun = time.monotonic()
    airpath.run(*command, user=lab.user, environment=path).check()
    assert time.monotonic() - begun < 25
    hung = Path("/proc", (folder / "hung").read_text().strip(), "stat")
    await_true(lambda: not hung.exists() or hung.read_text().split()[2] == "Z")
    assert account(out)["network_delay"]["to_host"]["count"] == 3


def test_packets_may_go_by_udp(airpath: Airpath, lab: Lab) -> None:
    """A tunnel carries the packets; an address that is none of this host is told."""
    out = airpath.path("run")
    udp = 'udp = {{ local = "{}:5300", remote = "10.99.0.2:5300" }}'
    file = scenario(airpath, lab, more=udp.format("10.99.0.1"))
    words = ("--out", out, "--quiet", "--", "ping", "-c", "5", "-i", "0.01", "server")
    result = airpath.run("exec", "--scenario", file, *words, user=lab.user).check()
    assert len(result.ping_times_ms()) == 5
    delays = account(out)["network_delay"]
    assert delays["to_host"]["count"] == delays["from_host"]["count"] == 5
    wrong = scenario(airpath, lab, more=udp.format("192.0.2.1"))
    refused = airpath.run("exec", "--scenario", wrong, "--", "true", user=lab.user).check(125)
    assert "cannot open the tunnel by UDP from 192.0.2.1:5300" in refused.err
    bad = scenario(airpath, lab, more=udp.format("here"))
    assert "not an address and a port" in airpath.run("check", bad).check(1).err
