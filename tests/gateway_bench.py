# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A gateway measured against a bare Linux bridge in its place: ``scripts/bench --only gateway``."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from live.networks import Networks, ip, two_networks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVER = "192.0.2.3"
DATAGRAM_BYTES = 36
"""Payload of a datagram of 64 bytes."""
DATAGRAM_RATE = 60_000 * 8 * DATAGRAM_BYTES
"""Bits of payload in a second: 60,000 datagrams."""
Measured = dict[str, float]


@dataclass
class Joint:
    """A gateway or a bridge between both networks."""

    end: Callable[[], str]
    """Takes it away, and tells its verdict."""
    process: int | None = None
    """The process whose children carry the frames; none for the kernel."""


def start_bridge(networks: Networks, _: argparse.Namespace) -> Joint:
    """Join both networks by a bridge of the kernel's."""
    gw = networks.of("gw")
    ip("-n", gw, "link", "add", "br0", "mtu", 9000, "type", "bridge")
    for interface in ("eth1", "eth2"):
        ip("-n", gw, "link", "set", interface, "master", "br0")
    ip("-n", gw, "link", "set", "br0", "up")

    def end() -> str:
        ip("-n", gw, "link", "del", "br0")
        return "-"

    return Joint(end)


def start_gateway(*link: str) -> Callable[[Networks, argparse.Namespace], Joint]:
    """Return what joins both networks by a gateway with these options."""

    def start(networks: Networks, arguments: argparse.Namespace) -> Joint:
        one, other = (f"{networks.of('gw')}/{name}" for name in ("eth1", "eth2"))
        ends = ["--client-interface", one, "--server-interface", other]
        folder = tempfile.TemporaryDirectory(prefix="gateway-bench-")
        log = Path(folder.name) / "log"
        ends += ["--socket", arguments.socket]
        command = [arguments.engine, "gateway", *ends, *link, "--seed", "1", "--json"]
        with log.open("w") as messages:
            process = subprocess.Popen(command, stderr=messages)
        until = time.monotonic() + 60
        while "the link carries" not in log.read_text():
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"the gateway did not start: {log.read_text()}")
            time.sleep(0.02)

        def end() -> str:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            summary = json.loads(log.read_text().splitlines()[-1])
            folder.cleanup()
            return str(summary["verdict"]["grade"])

        return Joint(end, process.pid)

    return start


WAYS: dict[str, tuple[Callable[..., Joint], float, float]] = {
    "Linux bridge": (start_bridge, 0.0, 0.0),
    "gateway, unlimited": (start_gateway(), 0.0, 0.0),
    "gateway, 10 ms each way": (start_gateway("--delay", "10 ms"), 20.0, 0.0),
    "gateway, 50 Mbit/s, 10 ms each way": (
        start_gateway("--rate", "50 Mbit/s", "--delay", "10 ms"),
        20.0,
        50e6,
    ),
}
"""Each with the round-trip time in ms and the rate that it should have; 0 for what is unlimited."""


@contextmanager
def listener(networks: Networks) -> Iterator[None]:
    """Have iperf3 listen at b1 for one transfer; wait for its end."""
    server = subprocess.Popen(
        networks.inside("b1", "iperf3", "-s", "-1", "-J"), stdout=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 20
        while ":5201" not in networks.run("b1", "ss", "-ltnH"):
            if time.monotonic() > until:
                sys.exit("iperf3 does not listen")
            time.sleep(0.05)
        yield
    finally:
        server.wait(30)


def transfer(networks: Networks, seconds: int, *options: str | int) -> dict[str, Any]:
    """Return what iperf3 at a1 tells of a whole transfer."""
    told = networks.run("a1", "iperf3", "-c", SERVER, "-t", seconds, "-J", *options)
    end: dict[str, Any] = json.loads(told)["end"]
    return end


def throughput(networks: Networks, seconds: int, *options: str) -> float:
    """Return the goodput of a TCP transfer in bit/s."""
    with listener(networks):
        received = transfer(networks, seconds, *options)["sum_received"]
    return float(received["bits_per_second"])


def delays(networks: Networks, count: int) -> list[float]:
    """Return round-trip times in ms."""
    out = networks.run("a1", "ping", "-n", "-q", "-c", 1, SERVER)
    out = networks.run("a1", "ping", "-n", "-c", count, "-i", 0.01, SERVER)
    return [float(part.split()[0]) for part in out.split("time=")[1:]]


def processor_ns(process: int) -> int:
    """Return the processor time of a process, its threads, and those below it."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)
    below = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return own + sum(map(processor_ns, map(int, below.stdout.split())))


def cost_of_datagrams(networks: Networks, process: int, seconds: int) -> Measured:
    """Return the processor time of the engine for each datagram of 64 bytes, and the loss."""
    load = ("-u", "-l", DATAGRAM_BYTES, "-b", DATAGRAM_RATE)
    with listener(networks):
        before = processor_ns(process)
        total = transfer(networks, seconds, *load)["sum"]
        spent = processor_ns(process) - before
    received = total["packets"] - total["lost_packets"]
    return {
        "datagram_processor_us": spent / 1000 / max(received, 1),
        "datagram_loss_percent": float(total["lost_percent"]),
        "datagrams_per_s": total["packets"] / total["seconds"],
    }


def measure(name: str, arguments: argparse.Namespace) -> Measured | dict[str, Any]:
    """Measure one way of joining the networks."""
    start, _, _ = WAYS[name]
    with two_networks() as networks:
        joint = start(networks, arguments)
        times = sorted(delays(networks, arguments.pings))
        up = throughput(networks, arguments.seconds)
        down = throughput(networks, arguments.seconds, "-R")
        cost: Measured = {}
        if joint.process is not None and WAYS[name][2] == 0:
            cost = cost_of_datagrams(networks, joint.process, arguments.seconds)
        verdict = joint.end()
    return {
        "uplink_bit_per_s": up,
        "downlink_bit_per_s": down,
        "rtt_median_ms": statistics.median(times),
        "rtt_p99_ms": times[min(len(times) - 1, int(0.99 * len(times)))],
        **cost,
        "verdict": verdict,
    }


def datagrams_cell(result: Measured | dict[str, Any]) -> str:
    """Return what a datagram costs, as text."""
    if "datagram_processor_us" not in result:
        return "-"
    lost = f"{result['datagram_loss_percent']:.2f} % lost"
    return f"{result['datagram_processor_us']:.1f} µs, {lost}"


def main() -> None:
    """Measure every way, print a table, write JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench --only gateway")
    parser.add_argument("--engine", required=True)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    parser.add_argument("--seconds", type=int, default=5, help="duration of each transfer")
    parser.add_argument("--pings", type=int, default=300, help="number of pings of each way")
    parser.add_argument("--quick", action="store_true", help="a second and 50 pings of each")
    parser.add_argument("--socket", default="packet", help="kind of socket on the interfaces")
    parser.add_argument("--only-way", choices=WAYS, action="append", help="one of the ways")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.pings = 1, 50
    if os.geteuid() != 0:
        sys.exit("scripts/bench --only gateway: needs root, as it makes networks")
    ways = arguments.only_way or list(WAYS)
    results = {name: measure(name, arguments) for name in ways}
    bare = float(results.get("Linux bridge", {"rtt_median_ms": math.nan})["rtt_median_ms"])
    print(
        "| between the networks | uplink | downlink | RTT, median | RTT, p99 | error "
        "| UDP of 64 bytes | verdict |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, result in results.items():
        nominal_ms = WAYS[name][1]
        error_ms = float(result["rtt_median_ms"]) - nominal_ms - bare
        cells = [
            name,
            *(
                f"{float(result[key]) / 1e6:.1f} Mbit/s"
                for key in ("uplink_bit_per_s", "downlink_bit_per_s")
            ),
            *(f"{float(result[key]):.3f} ms" for key in ("rtt_median_ms", "rtt_p99_ms")),
            "-" if math.isnan(error_ms) or name == "Linux bridge" else f"{error_ms:+.3f} ms",
            datagrams_cell(result),
            str(result["verdict"]),
        ]
        print(f"| {' | '.join(cells)} |")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gateway.json").write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
