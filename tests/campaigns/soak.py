# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A link under many flows and hostile packets for a long time.

Usage: python -m campaigns.soak [OPTIONS] in the folder `tests`, as root; see --help. Asserted
are: the engine's memory, descriptors and threads stay within bounds; packets are conserved in
each direction; what was lost outside the model is what the interfaces dropped; a replay gives
the same trace.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.common import Campaign, drawn_seed
from campaigns.kills import end, engine
from live import harness
from live.harness import Airpath

MOST_DESCRIPTORS = 200
MOST_THREADS = 32
MOST_MEMORY_MB = 400
"""The buffer of the log (64 MB) and its batches included."""
MOST_GROWTH_MB = 100
"""From a third of the time on, when everything has been used once."""


@dataclass(frozen=True)
class Sample:
    """Resources of the processes of the engine at one time."""

    at_s: float
    memory_mb: float
    descriptors: int
    threads: int


def look(airpath: Airpath, begun: float) -> Sample | None:
    """Sample the processes of the engine; none when there are none."""
    memory = descriptors = threads = 0
    for pid, words in airpath.tree().items():
        if not words or words[0] != str(airpath.command):
            continue
        process = Path(f"/proc/{pid}")
        try:
            memory += int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
            descriptors += len(list((process / "fd").iterdir()))
            threads += len(list((process / "task").iterdir()))
        except OSError:
            continue
    if not threads:
        return None
    return Sample(time.monotonic() - begun, memory / 1e6, descriptors, threads)


def counts(manifest: dict[str, Any], direction: str) -> dict[str, int]:
    """Return how often each kind of event concerned endpoints' packets, over path and hops."""
    total: dict[str, int] = {}
    for site in manifest["results"]["counters"]:
        if site["direction"] == direction and site["origin"] == "user":
            for kind, tally in site["kinds"].items():
                total[kind] = total.get(kind, 0) + tally["count"]
    return total


def check_conservation(campaign: Campaign, out: Path, manifest: dict[str, Any]) -> int:
    """Compare the counters with the packets of the log, one by one; return how many there were."""
    from airpath.run import load_run

    events = load_run(out).events
    complete = manifest["results"]["log"]["complete"]
    packets = 0
    for direction in ("uplink", "downlink"):
        of = counts(manifest, direction)
        entered = of.get("offered", 0) + of.get("duplicated", 0)
        left = of.get("delivered", 0) + of.get("dropped", 0)
        packets += entered
        inside = entered - left
        if inside < 0:
            campaign.failed(f"{direction}: {entered} packets came and {left} left")
        if not complete:
            continue
        rows = events.filter((events["direction"] == direction) & (events["origin"] == "user"))
        kinds = rows["event"] if "event" in rows.columns else rows["kind"]
        logged = {row[0]: row[1] for row in kinds.cast(str).value_counts().iter_rows()}
        for kind in ("offered", "duplicated", "delivered", "dropped"):
            if logged.get(kind, 0) != of.get(kind, 0):
                campaign.failed(
                    f"{direction}: {kind}: {logged.get(kind, 0)} logged, {of.get(kind, 0)} counted"
                )
        # Each packet by itself: as often as it came (or was doubled), less as often as it left.
        balance: dict[int, int] = {}
        signs = {"offered": 1, "duplicated": 1, "delivered": -1, "dropped": -1}
        for pdu, kind in zip(rows["pdu"].to_list(), kinds.cast(str).to_list(), strict=True):
            if kind in signs:
                balance[pdu] = balance.get(pdu, 0) + signs[kind]
        if any(value < 0 for value in balance.values()) or sum(balance.values()) != inside:
            campaign.failed(
                f"{direction}: {sum(balance.values())} inside by packets, {inside} counted"
            )
    return packets


def check_resources(campaign: Campaign, samples: list[Sample]) -> str:
    """Hold the samples to the bounds; return them in words."""
    if not samples:
        campaign.failed("the engine was never seen")
        return ""
    most = [
        max(getattr(one, what) for one in samples)
        for what in ("memory_mb", "descriptors", "threads")
    ]
    for what, value, bound in zip(
        ("MB of memory", "descriptors", "threads"), most,
        (MOST_MEMORY_MB, MOST_DESCRIPTORS, MOST_THREADS), strict=True,
    ):  # fmt: skip
        if value > bound:
            campaign.failed(f"{value:.0f} {what}, {bound} at most are right")
    settled = [one for one in samples if one.at_s >= samples[-1].at_s / 3] or samples
    growth = settled[-1].memory_mb - settled[0].memory_mb
    if growth > MOST_GROWTH_MB:
        campaign.failed(f"memory grew by {growth:.0f} MB after a third of the time")
    return f", {most[0]:.0f} MB, {most[1]} descriptors, {most[2]} threads, growth {growth:.1f} MB"


def run(
    seed: int, seconds: float, *, port: str = "packet", flows: int = 20
) -> tuple[Campaign, str]:
    """Soak one link; the campaign counts packets."""
    campaign = Campaign(f"soak-{port}", seed)
    folder = Path(tempfile.mkdtemp(prefix="airpath-live-", dir="/tmp"))
    folder.chmod(0o755)
    airpath = Airpath(engine(), folder, harness.python_for_everybody())
    airpath.folder("tmp")
    try:
        return campaign, _soak(campaign, airpath, seconds, port, flows)
    finally:
        end(airpath)
        shutil.rmtree(folder, ignore_errors=True)


def _soak(campaign: Campaign, airpath: Airpath, seconds: float, port: str, flows: int) -> str:
    program = airpath.work / "soak_traffic.py"
    shutil.copy(Path(__file__).with_name("soak_traffic.py"), program)
    out = airpath.path("out")

    def words(role: str, seed: int) -> list[str]:
        report = str(airpath.path(f"{role}.json"))
        last = seconds + (2 if role == "server" else 0)
        return [airpath.python, str(program), role, str(last), str(seed), str(flows), report]

    link = ["--rate", "4 Mbit/s", "--delay", "20 ms", "--loss", "1%", "--duplicate", "1%"]
    server = " ".join(words("server", campaign.seed + 1))
    process = airpath.start(
        "exec", "--port", port, "--out", out, "--log", "events", "--tcp-state", "off",
        "--seed", campaign.seed, "--queue", "50 packets", *link, "--json",
        "--server", server, "--server-grace", "10 s",
        "--", *words("client", campaign.seed),
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    begun = time.monotonic()
    samples: list[Sample] = []
    while process.poll() is None:
        if time.monotonic() - begun > seconds + 120:
            campaign.failed(f"not ended {120} s after the traffic")
            end(airpath)
        if sample := look(airpath, begun):
            samples.append(sample)
        time.sleep(min(2.0, max(0.2, seconds / 50)))
    said = process.communicate()[1]
    if process.returncode != 0 or "panicked" in said:
        campaign.failed(f"exit status {process.returncode}: {said[-1500:]}")
    airpath.wait_until_gone()
    if not (out / "run.json").exists():
        campaign.failed("there is no run.json")
        return ""
    manifest = json.loads((out / "run.json").read_text())
    campaign.tried = check_conservation(campaign, out, manifest)
    more = check_resources(campaign, samples)
    check_outside(campaign, airpath, manifest)
    if manifest["results"]["log"]["complete"]:
        replayed = subprocess.run(
            [str(airpath.command), "replay", str(out)], capture_output=True, text=True, check=False
        )
        if replayed.returncode != 0:
            campaign.failed(
                f"replay: status {replayed.returncode}: {replayed.stdout}{replayed.stderr}"
            )
    else:
        more += ", log incomplete: no replay"
    verdict = manifest["results"]["verdict"]["grade"]
    return f"{more}, {len(samples)} samples, verdict {verdict}"


def check_outside(campaign: Campaign, airpath: Airpath, manifest: dict[str, Any]) -> None:
    """Hold the verdict to what the interfaces of the ends dropped."""
    places = [airpath.path(f"{role}.json") for role in ("client", "server")]
    reports = [json.loads(place.read_text()) for place in places if place.exists()]
    if len(reports) < 2:
        campaign.failed("an end did not report")
        return
    if not all(report["hostile"] for report in reports):
        campaign.failed(f"no hostile packet was sent: {reports}")
    dropped = sum(report["tx_dropped"] for report in reports)
    reasons = manifest["results"]["verdict"]["reasons"]
    told = any("outside_drops" in str(reason) for reason in reasons)
    if dropped and not told:
        campaign.failed(f"the interfaces dropped {dropped} packets, and the verdict says {reasons}")


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Many flows and hostile packets for a long time.")
    parser.add_argument("--seconds", type=float, default=1800.0, help="over both ports")
    parser.add_argument("--seed", type=int, help="drawn and printed if not given")
    parser.add_argument("--flows", type=int, default=50)
    parser.add_argument("--port", choices=("packet", "tun"), help="only this")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("a soak sends frames of its own, so run it as root", file=sys.stderr)
        return 2
    seed = drawn_seed() if options.seed is None else options.seed
    ports = [options.port] if options.port else ["packet", "tun"]
    status = 0
    for port in ports:
        print(f"soak over {port}: seed {seed}", flush=True)
        campaign, more = run(seed, options.seconds / len(ports), port=port, flows=options.flows)
        status |= campaign.tell(more)
    return status


if __name__ == "__main__":
    sys.exit(main())
