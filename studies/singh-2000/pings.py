# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The pings of Singh 2000, appendix B, with the kernel's own echo in virtual time.

The thesis tells neither the delay of radio and network nor the block error rate. Both are fitted
to its transparent bearer: the delay to the round trip, the block error rate to the loss. RLP then
has no free parameter, and what its round trip lacks is printed.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from airpath.analysis.intervals import mean_with_half_width

PAYLOAD_BYTES = 500
PPP_BYTES, IP_ICMP_BYTES = 7, 28
BLOCK_BYTES, BLOCK_MS = 19.2, 20.0
"""Of a radio block with asynchronous characters."""
RADIO_MS = 200.0
"""One way; assumed in the profiles."""
THESIS = {"gsm-rlp-9.6k": (2023.0, 0.0), "gsm-transparent-9.6k": (1576.0, 0.33)}
"""Mean round trip in ms, and loss."""
AIRPATH = (sys.executable, "-c", "import sys; from airpath.cli import main; sys.exit(main())")


class Fit(NamedTuple):
    """Parameters that the thesis does not tell."""

    delay_ms: float
    """One way, of the radio and all behind it."""
    block_error_rate: float


class Pings(NamedTuple):
    """Figures that ping prints."""

    mean_ms: float
    least_ms: float
    greatest_ms: float
    loss: float
    verdict: str


def fit(clock: str) -> Fit:
    """Return what the row of the transparent bearer implies, if blocks are independent."""
    profile = "gsm-transparent-9.6k"
    mean_ms, loss = THESIS[profile]
    blocks = (PAYLOAD_BYTES + IP_ICMP_BYTES + PPP_BYTES) / BLOCK_BYTES
    # An error anywhere in a request or its reply costs the ping: ICMP's checksum covers all.
    rate = -math.expm1(math.log1p(-loss) / (2 * (blocks + 1)))
    assumed = ping(profile, Fit(RADIO_MS, 0), seed=1, count=20, clock=clock)
    return Fit(RADIO_MS + (mean_ms - assumed.mean_ms) / 2, rate)


def ping(profile: str, found: Fit, *, seed: int, count: int, clock: str) -> Pings:
    """Send pings once."""
    effect = ', effect = "corrupt", flips = 22' if "transparent" in profile else ""
    errors = f'{{ type = "bernoulli", probability = {found.block_error_rate:.6f}, per = "block", '
    errors += f'block = "20 ms"{effect} }}'
    delay = f'radio.link.propagation="{found.delay_ms:.1f} ms"'
    link = ("--clock", clock, "--profile", profile, "--seed", seed)
    changes = ("--set", delay, "--set", f"radio.link.errors={errors}")
    program = ("ping", "-4", "-c", count, "-s", PAYLOAD_BYTES, "-i", 3, "server")
    command = [*AIRPATH, "exec", *map(str, (*link, *changes, "--", *program))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return read(done.stdout + done.stderr)


def read(text: str) -> Pings:
    """Return the figures of ping's last lines, and the verdict on the run behind them.

    Raises:
        ValueError: there are none.

    """
    verdict = re.search(r"^verdict +(\w+)", text, re.MULTILINE)
    packets = re.search(r"(\d+) packets transmitted, (\d+) received", text)
    times = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)/", text)
    if not packets or not times:
        message = f"ping printed no figures: {text.strip()}"
        raise ValueError(message)
    least, mean, greatest = map(float, times.groups())
    sent, received = map(int, packets.groups())
    told = verdict[1] if verdict else "unknown"
    return Pings(mean, least, greatest, 1 - received / sent, told)


def main() -> None:
    """Print the fit and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--count", type=int, default=100, help="pings of a replication")
    parser.add_argument("--clock", choices=("warp", "live"), default="warp")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    found = fit(options.clock)
    print(f"fitted: {found.delay_ms:.1f} ms one way, ", end="")
    print(f"block error rate {found.block_error_rate:.2%}\n")
    print("| bearer | thesis: mean, loss | mean (ms) | least | greatest | loss | left (ms) |")
    print("|---|---|---|---|---|---|---|")
    verdicts: Counter[str] = Counter()

    def once(task: tuple[str, int]) -> Pings:
        profile, seed = task
        return ping(profile, found, seed=seed, count=options.count, clock=options.clock)

    seeds = range(1, options.replications + 1)
    with ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(once, [(profile, seed) for profile in THESIS for seed in seeds]))
    for number, (profile, (mean_ms, loss)) in enumerate(THESIS.items()):
        runs = done[number * len(seeds) : (number + 1) * len(seeds)]
        verdicts.update(one.verdict for one in runs)
        mean = mean_with_half_width([one.mean_ms for one in runs])
        lost = mean_with_half_width([100 * one.loss for one in runs])
        print(
            f"| {profile} | {mean_ms:.0f} ms, {loss:.0%} | {mean.mean:.0f} ± {mean.half_width:.0f} "
            f"| {min(one.least_ms for one in runs):.0f} "
            f"| {max(one.greatest_ms for one in runs):.0f} "
            f"| {lost.mean:.1f} % ± {lost.half_width:.1f} % | {mean_ms - mean.mean:+.0f} |"
        )
    print("verdicts: " + ", ".join(f"{count} {grade}" for grade, count in verdicts.items()))


if __name__ == "__main__":
    main()
