# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Hops on several hosts: one run, one folder, and a clean end whatever breaks between them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.run import load_run
from live import lab as labs
from live.harness import NOBODY, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.harness import Airpath
    from live.lab import Lab

HOPS = """
[[hops]]
name = "radio"
[hops.link]
rate = "2 Mbit/s"
propagation = "20 ms"

[[hops]]
name = "core"
host = "lab2"
[hops.link]
rate = "10 Mbit/s"
propagation = "{propagation}"
queue = {{ type = "tail_drop", limit = "{limit}" }}
"""


STATES = """
[[states]]
name = "slow"
set = { "radio.link.propagation" = "25 ms", "core.link.propagation" = "95 ms" }
"""


CHAIN = """
[[hops]]
name = "radio"
[hops.link]
rate = "2 Mbit/s"
propagation = "20 ms"

[[hops]]
name = "wire"
host = "lab2"
[hops.link]
rate = "50 Mbit/s"
propagation = "10 ms"

[[hops]]
name = "core"
host = "{last}"
[hops.link]
rate = "10 Mbit/s"
propagation = "30 ms"

[[states]]
name = "slow"
set = {{ "wire.link.propagation" = "40 ms", "core.link.propagation" = "60 ms" }}
"""


WINDOWS = """
[[hops]]
name = "radio"
[hops.link]
rate = "2 Mbit/s"
propagation = "5 ms"
queue = {{ type = "tail_drop", limit = "4 packets" }}
{window}

[[hops]]
name = "wire"
host = "lab2"
[hops.link]
rate = "1 Mbit/s"
queue = {{ type = "tail_drop", limit = "4 packets" }}
{window}

[[hops]]
name = "core"
host = "{last}"
[hops.link]
rate = "500 kbit/s"
propagation = "5 ms"
queue = {{ type = "tail_drop", limit = "4 packets" }}
{window}
"""


PATHS = """
[[paths]]
name = "{name}"
[[paths.hops]]
name = "radio"
link = {{ rate = "2 Mbit/s", propagation = "20 ms" }}
[[paths.hops]]
name = "core"
{host}
link = {{ rate = "10 Mbit/s", propagation = "{propagation}" }}
[[paths.states]]
name = "slow"
set = {{ "core.link.propagation" = "150 ms" }}
"""


@pytest.fixture(scope="module")
def lab(public: Path) -> Iterator[Lab]:
    """Return three hosts."""
    if reason := labs.missing():
        pytest.skip(reason)
    lab = labs.build(public / "lab")
    yield lab
    lab.close()


def scenario(airpath: Airpath, lab: Lab, ssh: str = f"root@{labs.FAR}", **keys: str) -> Path:
    """Write a scenario of two hops on two hosts."""
    engine = keys.pop("engine", str(airpath.command))
    more, states = keys.pop("more", ""), keys.pop("states", "")
    text = f"[hosts.lab2]\nssh = {ssh!r}\nssh_options = {json.dumps(lab.options())}\n"
    text += f"engine = {engine!r}\n{more}\n" if engine else ""
    keys = {"propagation": "30 ms", "limit": "100 packets", **keys}
    return airpath.file("hosts.toml", text.replace("'", '"') + HOPS.format(**keys) + states)


def chain(
    airpath: Airpath, lab: Lab, last: str = "lab3", udp: bool = False, hops: str = CHAIN
) -> Path:
    """Write a scenario of three hops, the second on the second host and the third on `last`."""
    text = ""
    for name, address in (("lab2", labs.FAR), ("lab3", labs.FARTHER)):
        if name == "lab3" != last:
            continue
        text += f'[hosts.{name}]\nssh = "root@{address}"\n'
        text += f'ssh_options = {json.dumps(lab.options())}\nengine = "{airpath.command}"\n'
        if udp and name == "lab3":
            local, remote = (f"{end}:5301" for end in labs.BETWEEN)
            text += f'udp = {{ local = "{local}", remote = "{remote}" }}\n'
    return airpath.file("chain.toml", text + hops.format(last=last).replace('host = "local"\n', ""))


def account(out: Path) -> dict[str, Any]:
    """Return what the manifest of a run says of the other host."""
    manifest = json.loads((out / "run.json").read_text())
    host = manifest["hosts"][-1]
    assert isinstance(host, dict)
    return host


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


@pytest.mark.parametrize("last", ["lab2", "lab3"])
def test_windows_stop_hops_of_other_hosts(airpath: Airpath, lab: Lab, last: str) -> None:
    """Nothing is lost inside, however much comes; without windows the queues overflow."""
    window = 'flow_control = {{ type = "window", packets = 4 }}'
    dropped = {}
    for name, words in (("none", ""), ("window", window)):
        hops = WINDOWS.replace("{window}", words)
        out = airpath.path(f"run-{name}")
        client = f"{airpath.command} send server --bytes 60000"
        airpath.run(
            *("exec", "--scenario", chain(airpath, lab, last, hops=hops), "--seed", 3),
            *("--out", out, "--quiet", "--lateness-bound", "1 s"),
            *("--server", f"{airpath.command} recv"),
            *("--", "sh", "-c", f"{client} && {client} --reverse"),
            user=lab.user,
        ).check()
        events = [json.loads(row) for row in airpath.run("log", out, "--json").out.splitlines()]
        dropped[name] = Counter(e["direction"] for e in events if e["kind"] == "dropped")
        queued = [e["queue_packets"] for e in events if e["kind"] == "enqueued"]
        assert max(queued) <= 4
        delivered = Counter(e["direction"] for e in events if e["kind"] == "delivered")
        assert min(delivered.values()) > 60, delivered
        for part in ("local", "lab2", "lab3")[: 3 if last == "lab3" else 2]:
            replayed = airpath.run("replay", out / "hosts" / part).check()
            assert replayed.out.startswith("identical: "), part
    assert set(dropped["none"]) == {"uplink", "downlink"}, dropped
    assert dropped["window"] == {}, dropped


def test_windows_hold_where_datagrams_between_the_hosts_are_lost(
    airpath: Airpath, lab: Lab
) -> None:
    """A lost packet leaves the window: nothing overflows or stands still; the verdict tells."""
    near, far = ends = ("10.99.3.1", "10.99.3.2")
    hosts = zip((lab.near.pid, lab.far_pid), ends, strict=True)
    words = [str(word) for host in hosts for word in host]
    cable = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("lossy_cable.py"), *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert cable.stdout
        assert cable.stdout.readline() == "ready\n"
        udp = f'udp = {{ local = "{near}:5302", remote = "{far}:5302" }}'
        window = 'flow_control = {{ type = "window", packets = 4 }}'
        hops = WINDOWS.replace("{window}", window)
        file = chain(airpath, lab, "lab2", hops=hops)
        file.write_text(file.read_text().replace("engine =", f"{udp}\nengine =", 1))
        out = airpath.path("run")
        # More than the slowest hop carries, for long enough that all of it comes through.
        line = "ping -q -c 150 -i 0.01 -s 1000 server; sleep 4"
        result = airpath.run(
            *("exec", "--scenario", file, "--seed", 3, "--out", out, "--json"),
            *("--lateness-bound", "1 s", "--", "sh", "-c", line),
            user=lab.user,
        ).check()
    finally:
        cable.kill()
        cable.wait()
    events = [json.loads(row) for row in airpath.run("log", out, "--json").out.splitlines()]
    assert not [event for event in events if event["kind"] == "dropped"]
    assert max(event["queue_packets"] for event in events if event["kind"] == "enqueued") <= 4
    passed = Counter((e["hop"], e["direction"]) for e in events if e["kind"] == "passed")
    entered = Counter((e["hop"], e["direction"]) for e in events if e["kind"] == "enqueued")
    # Far more than the window is lost in each direction.
    for before, behind, direction in (("radio", "wire", "uplink"), ("wire", "radio", "downlink")):
        assert passed[before, direction] - entered[behind, direction] > 8, (passed, entered)
        assert passed[before, direction] > 60, passed
    reasons = [reason["what"] for reason in result.summary()["verdict"]["reasons"]]
    assert any("lost" in reason for reason in reasons), reasons
    for part in ("local", "lab2"):
        replayed = airpath.run("replay", out / "hosts" / part).check()
        assert replayed.out.startswith("identical: "), part


def test_several_paths_go_on_at_other_hosts(airpath: Airpath, lab: Lab) -> None:
    """Each path has its seed, folder and verdict as on one host, and is controlled as a whole."""
    hosts = f'[hosts.lab2]\nssh = "root@{labs.FAR}"\nssh_options = {json.dumps(lab.options())}\n'
    hosts += f'engine = "{airpath.command}"\n'
    paths = (("dsl", "10 ms", "lab2"), ("lte", "60 ms", "lab2"), ("lan", "1 ms", ""))

    def text(places: bool) -> str:
        said = []
        for name, delay, at in paths:
            host = f'host = "{at}"' if at and places else ""
            said.append(PATHS.format(name=name, propagation=delay, host=host))
        return (hosts if places else "") + "".join(said)

    out, here, up = airpath.path("run"), airpath.path("here"), airpath.path("up")
    wait = f"until [ -e {up} ]; do sleep 0.05; done"
    line = f"touch {up}-$AIRPATH_USER; {wait}; ping -c 4 -i 0.1 server"
    words = ("--seed", 7, "--lateness-bound", "1 s", "--server", f"{airpath.command} recv")
    process = airpath.start(
        *("exec", "--scenario", airpath.file("paths.toml", text(places=True)), *words),
        *("--out", out, "--json", "--", "sh", "-c", line),
        user=lab.user,
    )
    await_true(lambda: all(Path(f"{up}-{name}").exists() for name, _, _ in paths))
    told = airpath.run("state", "lte.slow", "--json", user=lab.user).check().document()
    assert set(told["hosts"]["lte"]) == {"lab2"}
    airpath.run("set", "dsl.core.link.propagation=40 ms", user=lab.user).check()
    # What one path refuses, no other carries out.
    wrong = ("dsl.core.link.rate=1 Mbit/s", "lte.core.link.ratio=3")
    refused = airpath.run("set", *wrong, user=lab.user)
    assert refused.status != 0
    assert "lab2" in refused.err
    assert "core.link.ratio" in refused.err
    both = airpath.run("set", "core.link.rate=9 Mbit/s", "--json", user=lab.user).check()
    times = both.document()["hosts"]
    assert set(times) == {"dsl", "lte"}
    up.touch()
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    document = json.loads(errors.splitlines()[-1])
    assert [link["link"] for link in document["links"]] == ["dsl", "lte", "lan"]
    assert all(link["exit_status"] == 0 for link in document["links"])
    one_way_ns = {"dsl": 60_000_000, "lte": 170_000_000, "lan": 21_000_000}
    for link in document["links"]:
        assert link["uplink"]["delivered_packets"] == link["downlink"]["delivered_packets"] == 4
        assert link["uplink"]["delay"]["p50_ns"] >= one_way_ns[link["link"]], link["link"]
    airpath.run(
        *("exec", "--scenario", airpath.file("here.toml", text(places=False)), *words),
        *("--out", here, "--quiet", "--", "true"),
        user=lab.user,
    ).check()
    for name, _, at in paths:
        manifest = load_run(out / name).manifest
        assert manifest["status"] == "finished"
        assert manifest["hops"] == ["radio", "core"]
        assert manifest["seed"] == load_run(here / name).manifest["seed"]
        assert [host["name"] for host in manifest.get("hosts", [])] == (["local", at] if at else [])
        for part in ("hosts/local", f"hosts/{at}") if at else (".",):
            airpath.run("replay", out / name / part).check()
    delays = account(out / "lte")["network_delay"]
    assert delays["to_host"]["count"] == delays["from_host"]["count"] == 4
    for name, changes in (("dsl", 2), ("lte", 1)):
        rows = airpath.run("log", out / name / "hosts/lab2", "--json").check().out.splitlines()
        assert sum(json.loads(row)["kind"] == "parameter_set" for row in rows) == changes, name
    # Each engine there took the instant from its own comparison of clocks.
    bounds = [account(out / name)["clock"]["bound_ns"] for name in ("dsl", "lte")]
    apart = abs(times["dsl"]["lab2"] - times["lte"]["lab2"])
    assert apart < sum(bounds) + 1_000_000, (times, bounds)
    assert not any(lab.cache().iterdir())


def test_commands_on_several_paths_take_effect_at_one_instant_over_slow_networks(
    airpath: Airpath, lab: Lab
) -> None:
    """Checks take a round trip for each path; the instant is still to come after all of them."""
    delay_ms, names = 50, ("dsl", "lte", "cable")
    proxy = f"{sys.executable} {Path(__file__).with_name('slow_proxy.py')} %h %p {delay_ms}"
    options = json.dumps([*lab.options(), f"-oProxyCommand={proxy}"])
    text = f'[hosts.lab2]\nssh = "root@{labs.FAR}"\nssh_options = {options}\n'
    text += f'engine = "{airpath.command}"\n'
    for name in names:
        text += PATHS.format(name=name, propagation="10 ms", host='host = "lab2"')
    up = airpath.path("up")
    line = f"touch {up}-$AIRPATH_USER; until [ -e {up} ]; do sleep 0.1; done; kill $!"
    process = airpath.start(
        *("exec", "--scenario", airpath.file("paths.toml", text), "--quiet"),
        # A link without packets could carry an order out behind its instant.
        *("--", "sh", "-c", f"ping -q -i 0.01 server & {line}"),
        user=lab.user,
    )
    await_true(
        lambda: process.poll() is not None or all(Path(f"{up}-{name}").exists() for name in names)
    )
    assert process.poll() is None, process.communicate()
    words = ("set", "radio.link.rate=3 Mbit/s", "core.link.rate=9 Mbit/s", "--json")
    told = airpath.run(*words, user=lab.user).check().document()
    up.touch()
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert set(told["hosts"]) == set(names)
    late = [hosts["lab2"] - told["time_ns"] for hosts in told["hosts"].values()]
    # An order that reaches a host after the instant would be two delays late, and three here.
    late.append(told["time_ns"] - told["received_ns"])
    assert all(abs(by) < delay_ms * 500_000 for by in late), late


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


def recording(airpath: Airpath, lab: Lab, file: Path, out: Path) -> subprocess.Popen[str]:
    """Start a run that pings until it is ended, and return it once it has recorded something."""
    process = airpath.start(
        *("exec", "--scenario", file, "--out", out),
        *("--", "ping", "-i", "0.02", "server"),
        user=lab.user,
        stdout=subprocess.DEVNULL,
    )
    events = out / "hosts/local/events.arrow"
    await_true(lambda: events.exists() and events.stat().st_size > 20_000)
    return process


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
    """Nobody is left to join the parts; each has what was recorded until then, here."""
    out = airpath.path("run")
    process = recording(airpath, lab, scenario(airpath, lab), out)
    copy = out / "hosts/lab2/events.arrow"
    await_true(lambda: copy.exists() and copy.stat().st_size > 20_000)
    process.kill()
    process.communicate(timeout=60)
    await_true(lambda: not lab.engines())
    for part in ("local", "lab2"):
        assert airpath.run("log", out / "hosts" / part).check().out.count("delivered") > 5
    # What a killed run left at the other host is named by nobody: the next test begins anew.
    shutil.rmtree(next(lab.cache().iterdir()))


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


def assert_joined(airpath: Airpath, out: Path, hops: set[str]) -> None:
    """Assert that the folder of a run that broke off shows the path as far as it was recorded."""
    events = [json.loads(row) for row in airpath.run("log", out, "--json").check().out.splitlines()]
    assert {event["hop"] for event in events} == {"path", *hops}
    assert sum(event["kind"] == "delivered" for event in events) > 5
    times = [event["time_ns"] for event in events]
    assert times == sorted(times)
    page = airpath.path("report.html")
    airpath_here = str(Path(sys.executable).with_name("airpath"))
    report = [airpath_here, "report", str(out), "--out", str(page)]
    subprocess.run(report, check=True, capture_output=True)
    assert "lab2" in page.read_text()


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
        ({"engine": "/nowhere/airpath-engine"}, 125, "there is no engine"),
        ({"engine": str(old)}, 125, "is Airpath 0.0.1"),
        ({"ssh": "nobody-like-this@10.99.0.2"}, 125, "ssh could not connect"),
        ({"ssh": "root@10.99.0.3"}, 125, "ssh could not connect"),
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
