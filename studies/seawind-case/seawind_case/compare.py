"""Says whether two sets of results agree: the real TCP live, and in virtual time."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.run import RunError, load_run
from seawind_case.measure import Replication, measure_run
from seawind_case.packets import PacketComparison, compare_packets
from seawind_case.recorded import record
from seawind_case.report import comparison_table, to_toml
from seawind_case.variants import Variant, variants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.run import Run

COMPARED = ("reno", "cubic")
LEAST_PAIRS = 10
AGREEMENT = (0.9, 1.1)
"""The ratio of median elapsed times must lie inside with its whole 95 % interval."""

RESAMPLES = 10_000
BOOTSTRAP_SEED = 2001


@dataclass(frozen=True)
class Pair:
    """One seed, live and in virtual time."""

    live: Replication
    warp: Replication
    packets: PacketComparison


def runs_by_seed(folder: Path) -> dict[int, Run]:
    """Open the replications of a variant."""
    found = {}
    for place in sorted(folder.glob("replication-????")):
        run = load_run(place)
        found[int(run.manifest.get("seed") or 0)] = run
    return found


def pairs(live: Path, warp: Path) -> dict[int, Pair]:
    """Pair the replications of a variant by seed; say on stderr which cannot be read."""
    by_seed = {}
    ours, theirs = runs_by_seed(live), runs_by_seed(warp)
    for seed in sorted(ours.keys() & theirs.keys()):
        one, other = ours[seed], theirs[seed]
        try:
            by_seed[seed] = Pair(measure_run(one), measure_run(other), compare_packets(one, other))
        except RunError as error:
            print(f"left out: {error}", file=sys.stderr)
    return by_seed


def ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float]
) -> tuple[float, float, float]:
    """Return the ratio of two medians of paired values, and its 95 % bootstrap interval.

    Pairs are drawn with replacement (percentile method, Efron and Tibshirani 1993), from a fixed
    seed.
    """
    above, below = np.asarray(numerators), np.asarray(denominators)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(len(above), size=(RESAMPLES, len(above)))
    ratios = np.median(above[drawn], axis=1) / np.median(below[drawn], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return float(np.median(above) / np.median(below)), float(low), float(high)


def compare(by_seed: dict[int, Pair]) -> dict[str, Any]:
    """Return the figures of one variant."""
    all_pairs = list(by_seed.values())
    live = [pair.live.elapsed_seconds for pair in all_pairs]
    warp = [pair.warp.elapsed_seconds for pair in all_pairs]
    ratio, low, high = ratio_interval(warp, live)
    differences = np.concatenate([np.abs(pair.packets.differences_ms) for pair in all_pairs])
    until = [pair.packets for pair in all_pairs if not pair.packets.same]
    reached = [one.first.times_ms[max(one.equal_packets - 1, 0)] / 1e3 for one in until]
    starts = [abs(p.packets.first.start_ms - p.packets.second.start_ms) for p in all_pairs]
    return {
        "pairs": len(all_pairs),
        "trusted_live": sum(pair.live.verdict == "trusted" for pair in all_pairs),
        "trusted_warp": sum(pair.warp.verdict == "trusted" for pair in all_pairs),
        "elapsed_live_median": round(float(np.median(live)), 2),
        "elapsed_warp_median": round(float(np.median(warp)), 2),
        "ratio": {"median": round(ratio, 4), "low": round(low, 4), "high": round(high, 4)},
        "pairs_same_packets": len(all_pairs) - len(until),
        "first_difference_seconds_median": round(float(np.median(reached)), 1) if reached else 0.0,
        "starts_differ_ms_median": round(float(np.median(starts)), 1),
        "times_differ_ms": {
            "median": round(float(np.median(differences)), 2),
            "p99": round(float(np.percentile(differences, 99)), 1),
            "max": round(float(differences.max()), 1),
        },
    }


def agrees(figures: dict[str, Any]) -> bool:
    """Say whether there are enough pairs and their ratio's interval is where it should be."""
    low, high = figures["ratio"]["low"], figures["ratio"]["high"]
    return bool(figures["pairs"] >= LEAST_PAIRS and AGREEMENT[0] < low and high < AGREEMENT[1])


def explain(pair: Pair) -> str:
    """Tell one transfer packet by packet: where the two runs part, and how far apart in time."""
    both, live, warp = pair.packets, pair.packets.first, pair.packets.second
    lines = [
        f"packets at the server: live {len(live.packets)}, warp {len(warp.packets)}; "
        + ("all the same" if both.same else f"the first {both.equal_packets} the same"),
        f"elapsed: live {pair.live.elapsed_seconds:.3f} s, warp {pair.warp.elapsed_seconds:.3f} s",
        f"first packet after the run's t = 0: live {live.start_ms:.1f} ms, "
        f"warp {warp.start_ms:.1f} ms",
    ]
    if both.equal_packets:
        differences = both.differences_ms
        at = int(np.argmax(np.abs(differences)))
        lines.append(
            f"live later than warp, of the same packets: median {np.median(differences):.2f} ms, "
            f"5th to 95th percentile {np.percentile(differences, 5):.2f} to "
            f"{np.percentile(differences, 95):.2f} ms, most {differences[at]:.2f} ms "
            f"(packet {at + 1}, {live.packets[at]})"
        )
    if not both.same:
        for name, run in (("live", live), ("warp", warp)):
            at = both.equal_packets
            what = (
                f"{run.packets[at]} at {run.times_ms[at] / 1e3:.3f} s"
                if (at < len(run.packets))
                else "no packet"
            )
            lines.append(f"first difference, packet {at + 1}, {name}: {what}")
    if drops := both.first_different_drop():
        lines.append(f"first drop that differs: live {drops[0]}, warp {drops[1]}")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print; the exit status is 1 unless all variants agree."""
    parser = argparse.ArgumentParser(
        prog="studies/seawind-case/run compare",
        description="Says whether live results and those of warp agree: replications are paired by "
        f"seed, and the 95 % bootstrap interval of the ratio of their median elapsed times has to "
        f"lie within {AGREEMENT[0]} and {AGREEMENT[1]}.",
        epilog="Example: studies/seawind-case/run compare study-results/seawind-case "
        "study-results/seawind-case-warp",
    )
    parser.add_argument("live", type=Path, metavar="LIVE_DIR")
    parser.add_argument("warp", type=Path, metavar="WARP_DIR")
    parser.add_argument(
        "--packets", metavar="VARIANT/SEED", default="reno_errors-both-ways/1",
        help="which transfer to compare packet by packet, default %(default)s",
    )  # fmt: skip
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw both sets (PNG)")
    parser.add_argument(
        "--record",
        choices=("compare", "compare-same-start"),
        help="put the figures into expected-….toml and the table into README.md",
    )
    arguments = parser.parse_args(words)
    chosen = [one for one in variants("warp") if one.ends.name in COMPARED]
    name, _, seed = arguments.packets.rpartition("/")
    if name not in [one.name for one in chosen] or not seed.isdecimal():
        names = ", ".join(one.name for one in chosen)
        parser.error(f"--packets {arguments.packets}: a variant and a seed, such as "
                     f"{chosen[0].name}/1; variants are {names}")  # fmt: skip
    found: dict[str, dict[int, Pair]] = {}
    for variant in chosen:
        try:
            found[variant.name] = pairs(
                arguments.live / variant.name, arguments.warp / variant.name
            )
        except RunError as error:
            print(f"left out: {error}", file=sys.stderr)
    figures = {variant: compare(by_seed) for variant, by_seed in found.items() if by_seed}
    if not figures:
        print(
            f"no seed is in both: {arguments.live} and {arguments.warp} need folders "
            f"{chosen[0].name}/replication-0001 and so on",
            file=sys.stderr,
        )
        return 1
    print(comparison_table(figures))
    if (pair := found.get(name, {}).get(int(seed))) is not None:
        print(f"\n{name}, seed {seed}:\n{explain(pair)}")
    else:
        print(f"{arguments.packets}: not in both folders", file=sys.stderr)
    head = {"resamples": RESAMPLES, "bootstrap_seed": BOOTSTRAP_SEED}
    results = arguments.warp / "compare.toml"
    results.write_text(to_toml(head, figures))
    print(f"\nfigures: {results}")
    if arguments.picture:
        from seawind_case.picture import draw

        draw(found, (name, int(seed)), arguments.picture)
        print(f"picture: {arguments.picture}")
    if arguments.record:
        record(arguments.record, results)
    return verdict(chosen, figures)


def verdict(chosen: Sequence[Variant], figures: dict[str, dict[str, Any]]) -> int:
    """Say on stderr which variants are missing or do not agree; return the exit status."""
    status = 0
    for variant in chosen:
        found = figures.get(variant.name)
        if found is None or found["pairs"] < LEAST_PAIRS:
            count = found["pairs"] if found else 0
            print(f"{variant.name}: {count} pairs, at least {LEAST_PAIRS} needed", file=sys.stderr)
            status = 1
        elif not agrees(found):
            low, high = found["ratio"]["low"], found["ratio"]["high"]
            print(
                f"{variant.name}: warp and live do not agree: {low} to {high} is not within "
                f"{AGREEMENT[0]} and {AGREEMENT[1]}",
                file=sys.stderr,
            )
            status = 1
    return status
