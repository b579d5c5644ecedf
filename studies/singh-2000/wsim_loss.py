# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Packet loss of UDP and UDP-Lite by the simulator of Singh 2000, beside what must come out.

``airpath wsim`` sends zeros over traces of radio blocks. Beside its loss stand the count of the
trace's windows, which it must equal exactly, and the closed form, n being the blocks of the packet
for UDP and those of its headers for UDP-Lite: 1 - (1 - b)^n for independent blocks, with the 99 %
interval of a binomial; 1 - (1 - b)(1 - p)^(n - 1) for bursts, which begin with probability p.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from airpath.engine import find_engine

HEADER_BYTES = 42
BLOCK_BYTES = 28
ADU_SIZES = (70, 238, 518, 1022, 1470)
"""In bytes: packets of 4, 10, 20, 38 and 54 blocks, all of them full."""
PROTOCOLS = ("udp", "udp-lite")
BLOCK_ERROR_RATE = 0.0158
"""Of the trace in Singh 2000, section 5.1."""
BLOCKS = 645_000
"""In 215 minutes of 20 ms each (section 5.1)."""
MEAN_BURST = 5
BURST_BEGINS = BLOCK_ERROR_RATE / (1 - BLOCK_ERROR_RATE) / MEAN_BURST
"""Probability of an error behind a block without one, so that both traces have the same rate."""
SOURCES = {
    "independent": f'{{ type = "bernoulli", probability = {BLOCK_ERROR_RATE} }}',
    "bursts": (
        f'{{ type = "gilbert_elliott", good_to_bad = {BURST_BEGINS:.9f}, '
        f"bad_to_good = {1 / MEAN_BURST} }}"
    ),
}


@dataclass(frozen=True)
class Loss:
    """Packets sent and dropped, by the simulator and by count of the trace's windows."""

    packets: int
    dropped: int
    counted: int
    expected: float
    """Share of packets by the closed form."""
    interval: tuple[int, int] | None
    """Dropped packets in 99 % of such traces; none where packets are not independent."""

    @property
    def fits(self) -> bool:
        """True if the loss is in the interval."""
        return self.interval is not None and self.interval[0] <= self.dropped <= self.interval[1]


def engine(*words: object) -> str:
    """Return what a command of the engine prints."""
    command = [find_engine(), *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def generate(errors: str, file: Path, blocks: int, seed: int) -> str:
    """Write a trace, and return its elements as digits."""
    engine("trace", "generate", errors, file, "--units", blocks, "--seed", seed, "--quiet")
    lines = file.read_text().splitlines()
    return "".join(line for line in lines if not line.startswith("#"))


def blocks_of(adu_bytes: int) -> int:
    """Return the number of blocks of a packet."""
    return math.ceil((adu_bytes + HEADER_BYTES) / BLOCK_BYTES)


def fatal_blocks(adu_bytes: int, protocol: str) -> int:
    """Return the number of blocks, from the first, of which each drops the packet if damaged."""
    headers = math.ceil(HEADER_BYTES / BLOCK_BYTES)
    return blocks_of(adu_bytes) if protocol == "udp" else headers


def count_windows(elements: str, adu_bytes: int, protocol: str) -> tuple[int, int]:
    """Return the number of packets in a trace, and of those whose window has a fatal error."""
    length, fatal = blocks_of(adu_bytes), fatal_blocks(adu_bytes, protocol)
    begins = range(0, len(elements) - length + 1, length)
    return len(begins), sum("1" in elements[begin : begin + fatal] for begin in begins)


def binomial_interval(count: int, probability: float, level: float = 0.99) -> tuple[int, int]:
    """Return the numbers of successes between which a binomial lies with at least ``level``."""
    tail = (1 - level) / 2
    logarithm = math.log(probability), math.log1p(-probability)
    cumulated, low = 0.0, None
    for number in range(count + 1):
        ways = math.lgamma(count + 1) - math.lgamma(number + 1) - math.lgamma(count - number + 1)
        cumulated += math.exp(ways + number * logarithm[0] + (count - number) * logarithm[1])
        if low is None and cumulated > tail:
            low = number
        if low is not None and cumulated >= 1 - tail:
            return low, number
    return low or 0, count


def simulate(folder: Path, trace: Path, adu_bytes: int, protocol: str, packets: int) -> int:
    """Return the number of packets that the simulator drops of so many."""
    source = folder / "input"
    with source.open("wb") as file:
        file.truncate(packets * adu_bytes)
    files = ("--input", source, "--trace", trace, "--out", folder / "output")
    packet = ("--adu-size", adu_bytes, "--protocol", protocol)
    summary = json.loads(engine("wsim", *files, *packet, "--seed", 1, "--json"))
    assert summary["packets"] == packets
    dropped: int = summary["dropped_packets"]
    return dropped


def closed_form(source: str, blocks: int) -> float:
    """Return the probability of an error in so many blocks in a row."""
    goes_well = 1 - (BLOCK_ERROR_RATE if source == "independent" else BURST_BEGINS)
    return 1 - (1 - BLOCK_ERROR_RATE) * goes_well ** (blocks - 1)


def measure(
    folder: Path, trace: Path, elements: str, source: str, adu_bytes: int, protocol: str
) -> Loss:
    """Send as many packets as a trace carries."""
    packets, counted = count_windows(elements, adu_bytes, protocol)
    expected = closed_form(source, fatal_blocks(adu_bytes, protocol))
    dropped = simulate(folder, trace, adu_bytes, protocol, packets)
    interval = binomial_interval(packets, expected) if source == "independent" else None
    return Loss(packets, dropped, counted, expected, interval)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="blocks of each trace")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| errors | protocol | ADU | packets | dropped | counted | loss | closed form | 99 % |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source, errors in SOURCES.items():
            trace = folder / f"{source}.txt"
            elements = generate(errors, trace, options.blocks, options.seed)
            for protocol in PROTOCOLS:
                for adu_bytes in ADU_SIZES:
                    loss = measure(folder, trace, elements, source, adu_bytes, protocol)
                    interval = ""
                    if loss.interval:
                        inside = "inside" if loss.fits else "outside"
                        interval = f"{loss.interval[0]} to {loss.interval[1]}: {inside}"
                    print(
                        f"| {source} | {protocol} | {adu_bytes} | {loss.packets} | {loss.dropped} "
                        f"| {loss.counted} | {loss.dropped / loss.packets:.2%} "
                        f"| {loss.expected:.2%} | {interval} |"
                    )


if __name__ == "__main__":
    main()
