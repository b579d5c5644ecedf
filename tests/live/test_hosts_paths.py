# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Several paths that go on at other hosts, side by side."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.run import load_run
from live import lab as labs
from live.harness import await_true
from live.hosts import account

if TYPE_CHECKING:
    from live.harness import Airpath
    from live.lab import Lab

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
    assert set(told["user_hosts"]) == {"lte"}
    assert told["user_hosts"]["lte"] == told["hosts"]
    assert set(told["hosts"]) == {"lab2"}
    airpath.run("set", "dsl.core.link.propagation=40 ms", user=lab.user).check()
    # What one path refuses, no other carries out.
    wrong = ("dsl.core.link.rate=1 Mbit/s", "lte.core.link.ratio=3")
    refused = airpath.run("set", *wrong, user=lab.user)
    assert refused.status != 0
    assert "lab2" in refused.err
    assert "core.link.ratio" in refused.err
    both = airpath.run("set", "core.link.rate=9 Mbit/s", "--json", user=lab.user).check()
    times = both.document()["user_hosts"]
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
    assert set(told["user_hosts"]) == set(names)
    late = [hosts["lab2"] - told["time_ns"] for hosts in told["user_hosts"].values()]
    # An order that reaches a host after the instant would be two delays late, and three here.
    late.append(told["time_ns"] - told["received_ns"])
    assert all(abs(by) < delay_ms * 500_000 for by in late), late


def test_the_loss_of_a_host_ends_its_path_alone(airpath: Airpath, lab: Lab) -> None:
    """The other paths go on to their end; the lost one says why, and keeps its logs."""
    text = ""
    for name, address in (("lab2", labs.FAR), ("lab3", labs.FARTHER)):
        text += f'[hosts.{name}]\nssh = "root@{address}"\n'
        text += f'ssh_options = {json.dumps(lab.options())}\nengine = "{airpath.command}"\n'
    for name, host in (("dsl", 'host = "lab2"'), ("lte", 'host = "lab3"'), ("lan", "")):
        text += PATHS.format(name=name, propagation="10 ms", host=host)
    out, up = airpath.path("run"), airpath.path("up")
    ping = "ping -q -c 5 -i 0.02 server"
    line = f"touch {up}-$AIRPATH_USER; until [ -e {up} ]; do {ping}; done; {ping}"
    process = airpath.start(
        *("exec", "--scenario", airpath.file("paths.toml", text), "--lateness-bound", "1 s"),
        *("--out", out, "--json", "--", "sh", "-c", line),
        user=lab.user,
    )
    await_true(lambda: all(Path(f"{up}-{name}").exists() for name in ("dsl", "lte", "lan")))
    events = out / "lte/hosts/local/events.arrow"
    await_true(lambda: events.exists() and events.stat().st_size > 10_000)
    os.kill(lab.runner(lab.farther_pid), signal.SIGKILL)

    def left() -> set[str]:
        words = ("set", "radio.link.rate=3 Mbit/s", "core.link.rate=9 Mbit/s", "--json")
        told = airpath.run(*words, user=lab.user)
        return set(told.document()["user_states"]) if told.status == 0 else set()

    await_true(lambda: left() == {"dsl", "lan"})
    told = airpath.run("state", "slow", "--json", user=lab.user).check().document()
    assert set(told["hosts"]) == {"lab2"}
    assert set(told["user_hosts"]) == {"dsl"}
    gone = airpath.run("state", "lte.slow", user=lab.user).check(1)
    assert "has ended" in gone.err
    up.touch()
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 125, errors
    summary = next(line for line in errors.splitlines() if line.startswith("{"))
    links = {one["link"]: one for one in json.loads(summary)["links"]}
    assert {name: link["exit_status"] for name, link in links.items()} == {
        "dsl": 0,
        "lte": 125,
        "lan": 0,
    }
    assert "host `lab3`" in links["lte"]["error"]
    for name in ("dsl", "lan"):
        assert load_run(out / name).manifest["status"] == "finished"
    assert account(out / "dsl")["network_delay"]["to_host"]["count"] > 5
    manifest = load_run(out / "lte").manifest
    assert manifest["status"] == "failed"
    assert "lab3" in manifest["hosts"][0]["failure"]
    for part in (".", "hosts/local", "hosts/lab3"):
        assert airpath.run("log", out / "lte" / part).check().out.count("delivered") > 5, part
    airpath.run("replay", out / "dsl/hosts/lab2").check()
    assert not any(lab.cache().iterdir())
    await_true(lambda: not lab.engines())
