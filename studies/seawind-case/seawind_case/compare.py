# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Say whether transfers live and in warp agree, cell by cell and down to single packets.

    compare.py results/seawind/runs/live results/seawind/runs/warp
    compare.py LIVE_RUN WARP_RUN

Two folders of cells: replications are paired by cell and seed, and the 95 % interval of the ratio
of their transfer times has to lie within 0.9 and 1.1. Two runs: each packet is compared. The exit
status is 0 if all cells agree or all packets are the same, 1 if not, 2 if folders cannot be read.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from airpath.analysis.folders import find, is_run
from airpath.analysis.intervals import paired_shift
from airpath.analysis.metric import choose
from airpath.analysis.table import measure
from airpath.headers import FLAG_ACK, FLAG_SYN, PROTOCOL_TCP
from airpath.run import RunError, load_run

if TYPE_CHECKING:
    from collections.abc import Sequence

CELLS = ("*,reno", "*,cubic")
"""The cells in which kernels of different versions do the same."""
LEAST_PAIRS, AGREEMENT = 10, (0.9, 1.1)
HEADER = """| cell | pairs (live, warp trusted) | transfer time live, s: median | warp \
| warp / live (95 % interval) | the same to the last packet | others part after, s: median \
| starts differ by, ms: median | times of the same packets differ by, ms: median (99th percentile) |
|---|---|---|---|---|---|---|---|---|"""
INTERFACES = {"rx": "sent", "tx": "received"}
"""Way of a packet at the server, by the interface of its capture."""


class Packet(NamedTuple):
    """Parts of a packet that are the same in both runs; numbers count from the initial ones."""

    way: str
    """"sent" or "received", by the server."""
    flags: int
    sequence: int
    acknowledgement: int
    payload_bytes: int

    def __str__(self) -> str:
        if self.payload_bytes:
            return f"{self.way} {self.sequence}:{self.sequence + self.payload_bytes}"
        if self.flags & FLAG_SYN:
            return f"{self.way} SYN"
        return f"{self.way} acknowledgement {self.acknowledgement}"


@dataclass(frozen=True)
class Transfer:
    """One run, as the server's end saw it; times of packets and drops count from the first."""

    seed: int
    verdict: str
    elapsed_s: float
    start_ms: float
    """Time from the run's t = 0 to the first packet of the client."""
    packets: list[Packet]
    times_ms: list[float]
    drops: list[tuple[float, str]]
    """Time in ms and, in words, which packet the link dropped and why."""


@dataclass(frozen=True)
class Pair:
    """One transfer, live and in warp."""

    live: Transfer
    warp: Transfer

    @cached_property
    def equal_packets(self) -> int:
        """Number of packets that are the same, from the first on."""
        both = list(zip(self.live.packets, self.warp.packets, strict=False))
        return next((at for at, (one, other) in enumerate(both) if one != other), len(both))

    @property
    def same(self) -> bool:
        """All packets are the same, in the same order."""
        return self.equal_packets == len(self.live.packets) == len(self.warp.packets)

    @property
    def differences_ms(self) -> list[float]:
        """Time live less that in warp, of each packet that is the same."""
        times = zip(self.live.times_ms, self.warp.times_ms, strict=False)
        return [live - warp for live, warp in islice(times, self.equal_packets)]


def read(folder: Path) -> Transfer:
    """Read one run.

    Raises:
        RunError: it cannot be read, or holds no complete TCP transfer towards the client.

    """
    run = load_run(folder)
    seen, client = run.captures.get("server"), run.captures.get("client")
    times = measure(run, choose(["transfer_time"])).filter(pl.col("direction") == "downlink")
    if seen is None or client is None or times.height != 1:
        message = f"{folder}: needs one TCP transfer from the server in the captures of both ends"
        raise RunError(message)
    seen = seen.sort("time_ns", maintain_order=True).filter(pl.col("protocol") == PROTOCOL_TCP)
    sent, received = (seen.filter(pl.col("interface") == one)["sequence"][0] for one in INTERFACES)
    packets = []
    columns = ("interface", "flags", "sequence", "acknowledgement", "payload")
    for interface, flags, sequence, acknowledgement, payload in seen.select(columns).iter_rows():
        own, other = (sent, received) if interface == "rx" else (received, sent)
        number = (acknowledgement - other) % 2**32 if flags & FLAG_ACK else 0
        begin = (sequence - own) % 2**32
        packets.append(Packet(INTERFACES[interface], flags, begin, number, payload))
    first_ns = int(seen["time_ns"][0])
    # A packet's place among those of its direction: ids differ from run to run.
    place = pl.int_range(1, pl.len() + 1).over("direction").alias("place")
    offered = run.path_events("offered").select("pdu", place)
    drops = run.drops().join(offered, on="pdu", how="left").sort("time_ns", maintain_order=True)
    drops = drops.select("time_ns", "direction", "place", "cause")
    return Transfer(
        seed=int(run.manifest.get("seed") or 0),
        verdict=run.verdict,
        elapsed_s=float(times["value"][0]),
        start_ms=int(client["time_ns"].to_numpy().min()) / 1e6,
        packets=packets,
        times_ms=((seen["time_ns"] - first_ns) / 1e6).to_list(),
        drops=[
            ((at - first_ns) / 1e6, f"{direction} packet {number} by {cause}")
            for at, direction, number, cause in drops.iter_rows()
        ],
    )


def pairs(live: Path, warp: Path, cells: Sequence[str]) -> dict[str, list[Pair]]:
    """Pair the runs of two folders by cell and seed; say on stderr what is left out."""
    found: list[dict[tuple[str, int], Transfer]] = [{}, {}]
    for transfers, folder in zip(found, (live, warp), strict=True):
        for one in find([folder]):
            cell = one.set_name.rpartition("/")[2]
            if any(fnmatchcase(cell, pattern) for pattern in cells):
                try:
                    transfer = read(one.directory)
                except RunError as error:
                    print(f"left out: {error}", file=sys.stderr)
                    continue
                if transfers.setdefault((cell, transfer.seed), transfer) is not transfer:
                    message = f"{folder}: {cell} has seed {transfer.seed} twice; name one set"
                    raise RunError(message)
    names = sorted({cell for cell, _ in found[0].keys() | found[1]})
    names += [one for one in cells if not any(fnmatchcase(name, one) for name in names)]
    paired: dict[str, list[Pair]] = {name: [] for name in names}
    for cell, seed in sorted(found[0].keys() & found[1]):
        paired[cell].append(Pair(found[0][cell, seed], found[1][cell, seed]))
    return paired


def ratio(of_cell: Sequence[Pair]) -> tuple[float, float, float]:
    """Return the ratio of warp to live with its 95 % interval: the shift of the logarithms."""
    live = np.log([one.live.elapsed_s for one in of_cell])
    warp = np.log([one.warp.elapsed_s for one in of_cell])
    middle, low, high = paired_shift(live, warp)
    # Few pairs have no interval.
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return math.exp(middle), math.exp(low), math.exp(high)


def disagreement(of_cell: Sequence[Pair]) -> str:
    """Return why live and warp do not agree; nothing if they do."""
    if len(of_cell) < LEAST_PAIRS:
        return f"{len(of_cell)} pairs, at least {LEAST_PAIRS} needed"
    _, low, high = ratio(of_cell)
    agree = AGREEMENT[0] < low and high < AGREEMENT[1]
    return (
        "" if agree else f"{low:.3f} to {high:.3f} is not within {AGREEMENT[0]} and {AGREEMENT[1]}"
    )


def line(cell: str, of_cell: Sequence[Pair]) -> str:
    """Return a cell's line of the table."""
    live, warp = [one.live for one in of_cell], [one.warp for one in of_cell]
    trusted = [sum(one.verdict == "trusted" for one in transfers) for transfers in (live, warp)]
    medians = [np.median([one.elapsed_s for one in transfers]) for transfers in (live, warp)]
    until = [one.live.times_ms[max(one.equal_packets - 1, 0)] for one in of_cell if not one.same]
    starts = np.median([abs(one.live.start_ms - one.warp.start_ms) for one in of_cell])
    differences = np.abs(np.concatenate([one.differences_ms for one in of_cell]))
    return (
        f"| `{cell}` | {len(of_cell)} ({trusted[0]}, {trusted[1]}) | {medians[0]:.1f} "
        f"| {medians[1]:.1f} | {'{:.3f} ({:.3f} to {:.3f})'.format(*ratio(of_cell))} "
        f"| {len(of_cell) - len(until)} | {f'{np.median(until) / 1e3:.0f}' if until else ''} "
        f"| {starts:.0f} | {np.median(differences):.1f} ({np.percentile(differences, 99):.0f}) |"
    )


def told(pair: Pair) -> str:
    """Return a transfer packet by packet: where the two runs part, and how far apart in time."""
    at, apart = pair.equal_packets, np.array(pair.differences_ms)
    lines = [f"{'all' if pair.same else 'the first'} {at} packets are the same"]
    for name, one in (("live", pair.live), ("warp", pair.warp)):
        rest = at < len(one.packets)
        then = f"{one.packets[at]} at {one.times_ms[at] / 1e3:.3f} s" if rest else "nothing more"
        begin = f"begun {one.start_ms:.1f} ms after t = 0; packet {at + 1}"
        lines.append(f"{name}: {one.elapsed_s:.3f} s, {one.verdict}, {begin}: {then}")
    if at:
        most = int(np.argmax(np.abs(apart)))
        words = f"median {np.median(apart):.2f} ms, most {apart[most]:.2f} ms"
        lines.append(f"the same packets later live: {words} ({pair.live.packets[most]})")
    for both in zip_longest(pair.live.drops, pair.warp.drops):
        if both[0] is None or both[1] is None or both[0][1] != both[1][1]:
            said = [f"{one[1]} at {one[0] / 1e3:.2f} s" if one else "nothing more" for one in both]
            lines.append(f"first drop that differs: live {said[0]}, warp {said[1]}")
            break
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print; the exit status is as above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("live", type=Path)
    parser.add_argument("warp", type=Path)
    parser.add_argument("--cells", nargs="+", default=CELLS, help=f"default {' '.join(CELLS)}")
    arguments = parser.parse_args(words)
    try:
        if is_run(arguments.live) and is_run(arguments.warp):
            print(told(pair := Pair(read(arguments.live), read(arguments.warp))))
            return int(not pair.same)
        found = pairs(arguments.live, arguments.warp, arguments.cells)
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join([HEADER, *(line(cell, some) for cell, some in found.items() if some)]))
    reasons = [f"{cell}: {why}" for cell, some in found.items() if (why := disagreement(some))]
    sys.stderr.writelines(f"{reason}\n" for reason in reasons)
    return int(bool(reasons))


if __name__ == "__main__":
    sys.exit(main())
