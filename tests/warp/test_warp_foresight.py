# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Packets that are known beforehand leave at their times without a wake-up for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.run import load_run

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.run import Run
    from warp.conftest import Warp

OUTAGES = """
[[hops]]
name = "radio"
[hops.link]
rate = "10 Mbit/s"
propagation = "30 ms"
errors = { type = "bernoulli", probability = 0.01 }
[[states]]
name = "outage"
at = "700 ms"
duration = "200 ms"
set = { "radio.link.blackout" = "drop" }
[[states]]
name = "slow"
at = "1.5 s"
set = { "radio.link.rate" = "3 Mbit/s", "radio.link.propagation" = "5 ms" }
"""
EXACT_NS = 20_000
"""A bound for the lateness of a machine that never waits for a processor."""


def transfer(warp: Warp, out: Path, link: tuple[object, ...], size: str) -> Run:
    """Send `size` bytes over a link, and hold the run against its replay."""
    program = warp.airpath.command
    send = (program, "send", "server", "--bytes", size)
    words = ("--seed", 3, "--out", out, "--server", f"{program} recv --once", "--", *send)
    warp.run(*link, *words).check()
    assert warp.airpath.run("replay", out).check().out.startswith("identical: ")
    run = load_run(out)
    assert run.manifest["results"]["verdict"]["grade"] == "trusted", run.manifest["results"]
    return run


def test_one_wake_up_serves_many_packets(warp: Warp) -> None:
    link = ("--rate", "100 Mbit/s", "--delay", "10 ms", "--queue", "200 packets")
    run = transfer(warp, warp.airpath.path("run"), link, "2MB")
    results = run.manifest["results"]
    lateness = results["timings"]["lateness"]
    assert lateness["count"] > 2000
    assert results["loop"]["wake_ups"] < lateness["count"] / 10
    assert lateness["max_ns"] < EXACT_NS


def test_what_is_foretold_heeds_losses_and_states(warp: Warp) -> None:
    link = ("--scenario", warp.airpath.file("outages.toml", OUTAGES))
    run = transfer(warp, warp.airpath.path("run"), link, "1MB")
    causes = set(run.path_events("dropped")["cause"])
    assert {"blackout", "channel_error"} <= causes, causes
    results = run.manifest["results"]
    assert results["timings"]["lateness"]["count"] == run.path_events("delivered").height
    assert results["loop"]["wake_ups"] < results["timings"]["lateness"]["count"] / 2
    assert results["timings"]["lateness"]["max_ns"] < EXACT_NS
