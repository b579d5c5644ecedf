# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The verdict in proportion: what a bound is, what lateness can have changed, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from live.harness import Airpath, User

SEND = """
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20):
    sender.sendto(b"x" * 100, ("server", 9))
time.sleep(0.4)
"""


def run(
    airpath: Airpath, user: User, *options: str, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """Send some datagrams, and return the manifest's results and settings."""
    out = airpath.path("run")
    words = ("exec", *options, "--out", str(out), "--quiet", "--", airpath.python, "-c", SEND)
    airpath.run(*words, user=user, environment=environment or {}).check()
    manifest: dict[str, Any] = json.loads((out / "run.json").read_text())
    return manifest


def test_the_bound_is_recorded_with_what_lateness_can_have_changed(
    airpath: Airpath, user: User
) -> None:
    manifest = run(airpath, user, "--delay", "100 ms")
    assert manifest["settings"]["lateness_bound"] == "5%,100 us"
    timings = manifest["results"]["timings"]
    assert (timings["bound_ns"], timings["bound_share_ppm"]) == (100_000, 50_000)
    exactness = timings["exactness"]
    assert exactness["packets"] >= 20
    assert exactness["departures_ns"] == timings["lateness"]["max_ns"]
    assert exactness["delays_ns"] == timings["lateness"]["max_ns"] + timings["entries"]["max_ns"]
    assert exactness["median_delay_ns"] == pytest.approx(100e6, rel=0.01)
    machine = manifest["results"]["machine"]
    assert machine["live"]
    assert machine["real_time"] in ("got", "refused")
    assert machine["jobs"] is None


@pytest.mark.parametrize(
    ("bound", "delay", "allowed"),
    [("1 ns", "5 ms", 1), ("0.0001%,1 ns", "5 ms", 5), ("0.0001%,1 ns", "100 ms", 100)],
)
def test_each_packet_has_the_bound_of_its_least_transit(
    airpath: Airpath, rootless: User, bound: str, delay: str, allowed: int
) -> None:
    environment = {"AIRPATH_JOBS": "3"}
    manifest = run(
        airpath, rootless, "--delay", delay, "--lateness-bound", bound, environment=environment
    )
    results = manifest["results"]
    assert results["timings"]["worst_emission"]["bound_ns"] == allowed
    (reason, *_) = [one for one in results["verdict"]["reasons"] if one["code"] == "late_emissions"]
    assert f"where {allowed} ns is allowed" in reason["what"]
    assert results["machine"]["jobs"] == 3
    assert "3 runs in parallel" in reason["mend"] or "took" in reason["mend"]


def test_replications_tell_their_reasons_with_counts(airpath: Airpath, rootless: User) -> None:
    options = ("--delay", "1 ms", "--lateness-bound", "1 ns", "--replications", "3", "--jobs", "3")
    result = airpath.run("exec", *options, "--", airpath.python, "-c", SEND, user=rootless).check()
    assert "3 replications: " in result.err
    assert "0 trusted" in result.err
    assert "airpath: not trusted: late_emissions in 3" in result.err
    assert "airpath: none is trusted, such as: " in result.err
