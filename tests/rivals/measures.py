# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Measurements over an emulator. Each returns figures by name; a name ends in its unit."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rivals.ends import Setting, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from rivals.ends import Ends

PORT = 5301
UDP_HEADERS_BYTES = 28
SKIP = 50
"""First packets left out: addresses are resolved, caches are cold, the queue fills."""


@dataclass(frozen=True)
class Options:
    """Duration of measurements, and the program of traffic."""

    traffic: Path
    seconds: float


@dataclass(frozen=True)
class Measure:
    """A link and what is measured over it."""

    name: str
    setting: Setting
    run: Callable[[Ends, Path, Options], dict[str, float]]
    title: str


@dataclass(frozen=True)
class Sent:
    """Packets that a sender sent, and the processor time in s that its thread used."""

    packets: int
    processor_s: float


def _udp(
    ends: Ends, folder: Path, traffic: Path, pace: tuple[int, float, float]
) -> tuple[Sent, NDArray[np.float64]]:
    """Send UDP at a pace (bytes with headers, packets/s, s); return what was sent, and times in s.

    The times have a row for each packet that came: sending, receiving.
    """
    file = folder / "arrivals"
    words = ends.at_server(traffic, "--receive", PORT, file)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as receiver:
        try:
            assert receiver.stdout
            if receiver.stdout.readline() != "ready\n":
                message = "the receiver of UDP did not start"
                raise RuntimeError(message)
            target = f"{ends.server_address}:{PORT}"
            sender = ends.at_client(traffic, "--send", target, *pace)
            told = subprocess.run(sender, check=True, capture_output=True, text=True, timeout=120)
            receiver.wait(60)
        finally:
            receiver.kill()
    words_read = np.fromfile(file, dtype=np.uint64).reshape(-1, 2)
    # Nanoseconds since 1970 are too many for a float: from the first packet's sending on.
    times = (words_read - words_read[0, 0]).astype(np.int64) / 1e9
    words_told = json.loads(told.stdout)
    return Sent(words_told["sent"], words_told["processor_ns"] / 1e9), times


def tcp(ends: Ends, _: Path, options: Options) -> dict[str, float]:
    """Measure the goodput of one TCP flow (CUBIC) by iperf3, the first half second left out."""
    listener = ends.at_server("iperf3", "-s", "-1", "-p", PORT)
    with subprocess.Popen(listener, stdout=subprocess.DEVNULL) as server:
        try:
            look = ends.at_server("ss", "-ltnH", f"sport = :{PORT}")
            wait_for(
                lambda: subprocess.run(look, check=True, capture_output=True).stdout or None,
                "iperf3",
            )
            client = ends.at_client("iperf3", "-c", ends.server_address, "-p", PORT, "-C", "cubic",
                                    "-J", "-O", "0.5", "-t", f"{options.seconds:g}")  # fmt: skip
            told = subprocess.run(client, check=False, capture_output=True, text=True, timeout=120)
        finally:
            server.kill()
    report = json.loads(told.stdout)
    if "error" in report:
        message = f"iperf3: {report['error']}"
        raise RuntimeError(message)
    received = report["end"]["sum_received"]
    return {"goodput, Gbit/s": received["bits_per_second"] / 1e9}


def delay(ends: Ends, folder: Path, options: Options) -> dict[str, float]:
    """Measure the one-way delay of packets of 200 bytes, 194 a second."""
    _, times = _udp(ends, folder, options.traffic, (200, 194, 2 * options.seconds))
    delays_us = (times[:, 1] - times[:, 0])[SKIP:] * 1e6
    return {
        "delay p50, us": float(np.quantile(delays_us, 0.5)),
        "delay p99, us": float(np.quantile(delays_us, 0.99)),
    }


def gaps(ends: Ends, folder: Path, options: Options) -> dict[str, float]:
    """Measure the gaps between packets of 1500 bytes that leave a full queue at 12 Mbit/s."""
    _, times = _udp(ends, folder, options.traffic, (1500, 1080, 2 * options.seconds))
    # Only while packets are sent is the queue sure to hold some.
    stamps = times[SKIP : len(times) - len(times) // 10, 1]
    errors_us = np.abs(np.diff(stamps) - 1e-3) * 1e6
    return {
        "gap error p50, us": float(np.quantile(errors_us, 0.5)),
        "gap error p99, us": float(np.quantile(errors_us, 0.99)),
    }


def processor(ends: Ends, folder: Path, options: Options) -> dict[str, float]:
    """Measure the processor time that the emulator's processes use for a packet.

    Without an emulator it is that of the sender, which sleeps until each packet is due.
    """
    before = ends.emulator_seconds()
    sent, times = _udp(ends, folder, options.traffic, (1500, 8333, options.seconds))
    used = ends.emulator_seconds() - before if ends.emulator_pids() else sent.processor_s
    delays_us = (times[:, 1] - times[:, 0]) * 1e6
    return {
        "processor time, us a packet": used / sent.packets * 1e6,
        "delay p99 - p50, us": float(np.quantile(delays_us, 0.99) - np.quantile(delays_us, 0.5)),
        "lost, packets": float(sent.packets - len(times)),
    }


def small_packets(ends: Ends, folder: Path, options: Options) -> dict[str, float]:
    """Find the highest rate of datagrams of 64 bytes of which all arrive, to 8 %."""
    low, high, best = 0.0, 1_600_000.0, 0.0
    rate = 200_000.0
    while high - low > 0.08 * high and rate > 1000:
        pace = (64 + UDP_HEADERS_BYTES, rate, min(1.0, options.seconds))
        lost, reached = True, 0.0
        # One more chance: a single loss on a shared machine is often somebody else's doing.
        for _ in range(2):
            sent, times = _udp(ends, folder, options.traffic, pace)
            lost = len(times) < sent.packets
            reached = (len(times) - 1) / float(times[-1, 1] - times[0, 1])
            if not lost:
                break
        if not lost:
            best = max(best, reached)
        # A sender that is held back has not really offered the rate.
        if lost or reached < 0.92 * rate:
            high = rate
        else:
            low = rate
        rate = (low + high) / 2
    return {"without loss, packets/s": best}


def _tcp_at(gbit_per_s: float) -> Measure:
    queue = max(1000, round(gbit_per_s * 1e9 / 8 / 1500 * 0.02))
    setting = Setting(gbit_per_s * 1e9, 1, queue, floor=False)
    return Measure(
        f"tcp-{gbit_per_s:g}", setting, tcp, f"one TCP flow, {gbit_per_s:g} Gbit/s, 1 ms"
    )


MEASURES = [
    Measure("tcp", Setting(), tcp, "one TCP flow, no limit"),
    *(_tcp_at(rate) for rate in (1, 2, 5, 10)),
    Measure(
        "tbf-10", Setting(10e9, 0, 16_667, floor=False), tcp, "one TCP flow, 10 Gbit/s, no delay"
    ),
    Measure("small-packets", Setting(), small_packets, "UDP of 64 bytes"),
    Measure("delay", Setting(0, 10), delay, "one-way delay, 10 ms, 194 packets/s"),
    Measure("gaps", Setting(12e6, 0, 1000, floor=False), gaps, "departures, 12 Mbit/s, full queue"),
    Measure("processor", Setting(120e6, 20, 1000), processor, "8,333 packets/s, 120 Mbit/s, 20 ms"),
]
