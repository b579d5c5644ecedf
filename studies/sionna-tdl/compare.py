# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Statistics of tapped delay lines of TR 38.901: those of Airpath beside those of Sionna.

Sionna (1.x, with TensorFlow) is no dependency of Airpath: run this in an environment that has it.
The engine is found as ``$AIRPATH_ENGINE``, or ``airpath`` on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENGINE = os.environ.get("AIRPATH_ENGINE", "airpath")
CHANNELS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
DELAY_SPREAD_NS = 300
SPEED = 75 / 3.6
CARRIER_HZ = 1.9e9
RESOURCES, SPACING_HZ = 25, 200e3
SLOTS, SLOTS_PER_SECOND = 256, 1500
OFFSETS = (1, 2, 4, 8, 16)
"""Resources, and slots, between two values whose powers are correlated."""
LEVELS_DB = (-20.0, -10.0, 0.0, 3.0)
PROFILES = "abcde"


def of_airpath(profile: str) -> NDArray[np.float64]:
    """Return powers by channel, slot and resource."""
    channel = (
        f'{{ type = "profile", profile = "tdl_{profile}", delay_spread = "{DELAY_SPREAD_NS} ns", '
        f'speed = "{SPEED * 3.6} km/h", carrier = "{CARRIER_HZ} Hz", resources = {RESOURCES}, '
        f'spacing = "{SPACING_HZ} Hz", slots_per_second = {SLOTS_PER_SECOND} }}'
    )

    def one(seed: int) -> NDArray[np.float64]:
        command = [ENGINE, "fading", "generate", channel, "-", "--quiet", "--slots", str(SLOTS)]
        text = subprocess.run(
            [*command, "--seed", str(seed)], check=True, capture_output=True, text=True
        ).stdout
        return np.loadtxt(text.splitlines(), delimiter=",")

    with ThreadPoolExecutor(2) as pool:
        decibels = np.array(list(pool.map(one, range(1, CHANNELS + 1))))
    return 10 ** (decibels / 10)


def of_sionna(profile: str) -> NDArray[np.float64]:
    """Return the same of Sionna."""
    from sionna.phy import config
    from sionna.phy.channel import cir_to_ofdm_channel
    from sionna.phy.channel.tr38901 import TDL

    config.seed = 1
    line = TDL(
        profile.upper(), DELAY_SPREAD_NS * 1e-9, CARRIER_HZ, min_speed=SPEED, max_speed=SPEED
    )
    frequencies = (np.arange(RESOURCES) - RESOURCES // 2) * SPACING_HZ
    powers = []
    for _ in range(0, CHANNELS, 50):
        gains, delays = line(50, SLOTS, SLOTS_PER_SECOND)
        response = cir_to_ofdm_channel(frequencies.astype(np.float32), gains, delays)
        powers.append(np.abs(response.numpy()[:, 0, 0, 0, 0]) ** 2)
    return np.concatenate(powers)[:CHANNELS].astype(np.float64)


def figures(powers: NDArray[np.float64]) -> dict[str, tuple[float, float]]:
    """Return statistics over channels, each with its standard error.

    Moments are averaged within a channel, and the error is that of the mean over channels.
    """
    over = powers.mean(axis=(1, 2))
    count = len(powers)
    found = {"mean power": (over.mean(), over.std(ddof=1) / count**0.5)}
    centred = powers - powers.mean()
    variance = (centred**2).mean()
    for axis, name in ((2, "resources"), (1, "slots")):
        for offset in OFFSETS:
            low = np.take(centred, range(powers.shape[axis] - offset), axis=axis)
            high = np.take(centred, range(offset, powers.shape[axis]), axis=axis)
            products = (low * high).mean(axis=(1, 2)) / variance
            found[f"correlation over {offset} {name}"] = (
                products.mean(),
                products.std(ddof=1) / count**0.5,
            )
    for level in LEVELS_DB:
        below = (powers < 10 ** (level / 10) * powers.mean()).mean(axis=(1, 2))
        found[f"share below {level:g} dB"] = (below.mean(), below.std(ddof=1) / count**0.5)
    return found


def main() -> None:
    """Print the figures, and how many standard errors they are apart."""
    worst = 0.0
    for profile in PROFILES:
        ours, theirs = figures(of_airpath(profile)), figures(of_sionna(profile))
        print(f"\n| TDL-{profile.upper()} | Airpath | Sionna | apart |\n|---|---|---|---|")
        for name, (value, error) in ours.items():
            other, other_error = theirs[name]
            apart = (value - other) / max((error**2 + other_error**2) ** 0.5, 1e-12)
            worst = max(worst, abs(apart))
            print(f"| {name} | {value:.4f} | {other:.4f} | {apart:+.1f} |")
    print(f"\nThe farthest apart are {worst:.1f} standard errors; {CHANNELS} channels of each.")


if __name__ == "__main__":
    main()
