# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Several links that share nothing, in one engine in virtual time."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from airpath.run import load_run

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Result
    from warp.conftest import Warp

LINKS = """
[[paths]]
name = "alice"
[[paths.hops]]
name = "radio"
link = { rate = "1 Mbit/s", propagation = "20 ms" }
[[paths]]
name = "bob"
[[paths.hops]]
name = "radio"
[paths.hops.link]
rate = "64 kbit/s"
propagation = "150 ms"
errors = { type = "bernoulli", probability = 0.1 }
"""
FILES = ("client.pcapng", "server.pcapng", "events.arrow", "input.arrow")


def transfer(warp: Warp, out: Path) -> Result:
    """Send over both links at a time: 100 kB by alice, 20 kB by bob."""
    send = (warp.airpath.command, "send", "server", "--bytes")
    return warp.run(
        "--scenario", warp.airpath.file("links.toml", LINKS), "--seed", 5, "--out", out, "--json",
        "--server", f"{warp.airpath.command} recv",
        "--client", f"bob={' '.join(map(str, send))} 20kB", "--", *send, "100kB",
    ).check()  # fmt: skip


def test_links_are_side_by_side_and_repeat(warp: Warp) -> None:
    out, again = warp.airpath.path("run"), warp.airpath.path("again")
    summary = next(
        json.loads(line) for line in transfer(warp, out).err.splitlines() if line.startswith("{")
    )
    told = {link["link"]: link for link in summary["links"]}
    assert list(told) == ["alice", "bob"]
    for name, link in told.items():
        assert (link["exit_status"], link["verdict"]["grade"]) == (0, "trusted"), link
        run = load_run(out / name)
        assert (run.manifest["clock"], run.manifest["settings"]["link"]) == ("warp", name)
        assert warp.airpath.run("replay", out / name).check().out.startswith("identical: ")
    # Each link has its own delay, rate and losses.
    assert told["alice"]["downlink"]["delay"]["p50_ns"] // 1_000_000 == 20
    assert told["bob"]["downlink"]["delay"]["p50_ns"] > 150_000_000
    lost = {name: load_run(out / name).path_events("dropped").height for name in told}
    assert lost["alice"] == 0 < lost["bob"]

    transfer(warp, again)
    digests = [
        [hashlib.sha256((folder / name / file).read_bytes()).hexdigest() for file in FILES]
        for folder in (out, again)
        for name in told
    ]
    assert digests[:2] == digests[2:]


def test_a_link_that_is_lost_keeps_its_log(warp: Warp) -> None:
    out = warp.airpath.path("run")
    ping = "ping -c 2 -i 0.2 server"
    warp.run(
        "--scenario", warp.airpath.file("links.toml", LINKS), "--seed", 5, "--out", out,
        "--client", f"bob={ping}", "--", "sh", "-c", f"{ping}; ip link del airpath0; sleep 60",
    ).check(125)  # fmt: skip
    offered = {
        name: load_run(out / name).path_events("offered").height for name in ("alice", "bob")
    }
    # Bob's link loses packets, and hears nothing of Alice's end.
    assert offered["alice"] == 4
    assert offered["bob"] > 0
