# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Windows across the borders of hosts: nothing overflows between them, and nothing stands still."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.hosts import chain

if TYPE_CHECKING:
    from live.harness import Airpath
    from live.lab import Lab

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
