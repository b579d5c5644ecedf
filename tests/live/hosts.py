# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios, runs and looks at what these left, for all tests of hops on several hosts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from live import lab as labs
from live.harness import await_true

if TYPE_CHECKING:
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
