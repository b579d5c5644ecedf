# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tables and a picture of the runs of experiment.toml: how twenty users shared a cell.

Figures are of the downlink, of packets that were offered or delivered while all users send: later
than 3 s after the first one, and before the programs' time is over.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.intervals import mean_with_half_width
from airpath.experiment.quantities import time_ns
from airpath.run import load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airpath.run import Run

SECOND_NS = 1_000_000_000
SETTLED_NS = 3 * SECOND_NS
CALL = "call"
SCHEDULERS = {
    "round-robin": "round_robin",
    "proportional-fair": "proportional_fair",
    "max-ci": "max_ci",
}
"""Networks of the experiment, and what to call them."""


@dataclass(frozen=True)
class Share:
    """Figures of one user in one run."""

    throughput_bps: float
    delays_s: tuple[float, float, float]
    """Median, 95th and 99th percentile of the one-way delays of packets that arrived; infinite if
    none did."""
    loss_ratio: float


@dataclass(frozen=True)
class Sharing:
    """Figures of one run."""

    clock: str
    network: str
    verdict: str
    users: dict[str, Share]

    def mean_bps(self, kind: str) -> float:
        """Return the mean throughput of users whose names begin so."""
        rates = [one.throughput_bps for name, one in self.users.items() if name.startswith(kind)]
        return sum(rates) / len(rates)

    @property
    def total_bps(self) -> float:
        """Throughput of the cell."""
        return sum(one.throughput_bps for one in self.users.values())

    @property
    def jain(self) -> float:
        """Jain's index over the downloads."""
        rates = [one.throughput_bps for name, one in self.users.items() if name != CALL]
        return sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))

    @property
    def starved(self) -> int:
        """Downloads with less than a tenth of an equal share."""
        least = self.total_bps / len(self.users) / 10
        return sum(one.throughput_bps < least for one in self.users.values())


def shares(run: Run, length_ns: int) -> dict[str, Share]:
    """Return what each user had of the downlink.

    Args:
        run: of several users.
        length_ns: for how long the programs send.

    """
    way = pl.col("direction").cast(pl.String) == "downlink"
    offered = run.path_events("offered").filter(way)
    begun = offered["time_ns"].min()
    assert isinstance(begun, int)
    within = pl.col("time_ns").is_between(begun + SETTLED_NS, begun + length_ns)
    sent = offered.filter(within).select("pdu", offered_ns="time_ns", user="user")
    left = run.path_events("delivered").filter(way)
    left = left.select("pdu", "user", "bits", time_ns=pl.coalesce("emitted_ns", "time_ns"))
    dropped = run.drops().filter(way).select("pdu", dropped=pl.lit(value=True)).unique("pdu")
    first = left.group_by("pdu").agg(arrived_ns=pl.col("time_ns").min())
    fates = sent.join(first, on="pdu", how="left").join(dropped, on="pdu", how="left")
    fates = fates.with_columns(delay=(pl.col("arrived_ns") - pl.col("offered_ns")) / SECOND_NS)
    bits = left.filter(within).group_by(pl.col("user").cast(pl.String)).agg(pl.col("bits").sum())
    got = dict(bits.iter_rows())
    found = {}
    for name in run.users:
        mine = fates.filter(pl.col("user").cast(pl.String) == name)
        delays = [
            mine["delay"].drop_nulls().quantile(share, "linear") for share in (0.5, 0.95, 0.99)
        ]
        lost = mine.filter(
            pl.col("arrived_ns").is_null() & pl.col("dropped").fill_null(value=False)
        )
        median, p95, p99 = (float("inf") if one is None else one for one in delays)
        found[name] = Share(
            got.get(name, 0) * SECOND_NS / (length_ns - SETTLED_NS),
            (median, p95, p99),
            lost.height / max(1, mine.height),
        )
    return found


def read(folder: Path) -> Sharing:
    """Return the figures of the run in a folder."""
    about: dict[str, Any] = json.loads((folder / "replication.json").read_text())
    workload = json.loads((folder / "workload.json").read_text())
    call = next(one for one in workload["programs"] if one["user"] == CALL)
    length_ns = time_ns(call["command"][call["command"].index("--time") + 1])
    users = shares(load_run(folder), length_ns)
    return Sharing(about["clock"], about["network"], about["verdict"], users)


def runs(*roots: Path) -> list[Sharing]:
    """Return the figures of all runs that succeeded, of one or more folders of results."""
    files = sorted(file for root in roots for file in root.glob("runs/*/*/*/replication.json"))
    good = [file for file in files if json.loads(file.read_text())["status"] == "succeeded"]
    return [read(file.parent) for file in good]


def grouped(found: Iterable[Sharing]) -> dict[tuple[str, str], list[Sharing]]:
    """Return the runs by clock and network, in the order of the schedulers."""
    groups: dict[tuple[str, str], list[Sharing]] = defaultdict(list)
    for one in found:
        groups[one.clock, one.network].append(one)
    order = list(SCHEDULERS)
    return dict(sorted(groups.items(), key=lambda item: (order.index(item[0][1]), item[0][0])))


COLUMNS: dict[str, Callable[[Sharing], float]] = {
    "cell (Mbit/s)": lambda one: one.total_bps / 1e6,
    "a CUBIC user (kbit/s)": lambda one: one.mean_bps("cubic") / 1e3,
    "a BBR user (kbit/s)": lambda one: one.mean_bps("bbr") / 1e3,
    "Jain's index of downloads": lambda one: one.jain,
    "starved users": lambda one: one.starved,
    "call: kbit/s": lambda one: one.users[CALL].throughput_bps / 1e3,
    "loss (%)": lambda one: 100 * one.users[CALL].loss_ratio,
    "delay p50 (ms)": lambda one: 1e3 * one.users[CALL].delays_s[0],
    "p95": lambda one: 1e3 * one.users[CALL].delays_s[1],
    "p99": lambda one: 1e3 * one.users[CALL].delays_s[2],
}


def table(found: list[Sharing]) -> list[str]:
    """Return the lines of the table of schedulers."""
    names = ["scheduler", "clock", "runs", "trusted", *COLUMNS]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for (clock, network), here in grouped(found).items():
        trusted = sum(one.verdict == "trusted" for one in here)
        words = [f"`{SCHEDULERS[network]}`", clock, str(len(here)), str(trusted)]
        for name, of in COLUMNS.items():
            mean = mean_with_half_width([of(one) for one in here])
            digits = 2 if mean.mean < 100 and "ms" not in name and "p9" not in name else 0
            spread = f" ± {mean.half_width:.{digits}f}" if mean.count > 1 else ""
            words.append(f"{mean.mean:.{digits}f}{spread}")
        lines.append(f"| {' | '.join(words)} |")
    return lines


def _mean_delay_s(shares_of_user: list[Share], number: int) -> float:
    """Return the mean over the runs in which a packet arrived; NaN if none did."""
    delays = [one.delays_s[number] for one in shares_of_user]
    finite = [delay for delay in delays if math.isfinite(delay)]
    return sum(finite) / len(finite) if finite else math.nan


def table_of_users(found: list[Sharing], clock: str) -> list[str]:
    """Return the lines of the table of users: mean throughput and median delay."""
    groups = {network: here for (of, network), here in grouped(found).items() if of == clock}
    names = [f"`{SCHEDULERS[network]}`: kbit/s | delay p50 (ms)" for network in groups]
    lines = [f"| user | {' | '.join(names)} |", "|---" * (1 + 2 * len(groups)) + "|"]
    for user in next(iter(groups.values()))[0].users:
        words = []
        for here in groups.values():
            mine = [one.users[user] for one in here]
            words.append(f"{sum(one.throughput_bps for one in mine) / len(mine) / 1e3:.0f}")
            delay_s = _mean_delay_s(mine, 0)
            words.append("none arrived" if math.isnan(delay_s) else f"{1e3 * delay_s:.0f}")
        lines.append(f"| {user} | {' | '.join(words)} |")
    return lines


def draw(found: list[Sharing], ratios_db: dict[str, float], picture: Path) -> None:
    """Draw throughput and delay of each user over its mean signal-to-noise ratio."""
    from airpath.files import make_folder
    from airpath.plots.style import BLACK, BLUE, VERMILLION, Picture, canvas

    kinds = {"cubic": (BLUE, "o", -0.35), "bbr": (VERMILLION, "D", 0.35), CALL: (BLACK, "*", 0.35)}
    groups = grouped(found)
    with canvas(5.4) as figure:
        panels = figure.subplots(2, len(SCHEDULERS), sharex=True, sharey="row", squeeze=False)
        for column, (network, scheduler) in enumerate(SCHEDULERS.items()):
            upper, lower = panels[:, column]
            for clock in ("warp", "live"):
                here = groups.get((clock, network), [])
                for kind, (colour, mark, shift) in kinds.items():
                    names = [n for n in ratios_db if n.startswith(kind)] if here else []
                    shares_of = {name: [one.users[name] for one in here] for name in names}
                    places = [ratios_db[name] + shift for name in names]
                    look: dict[str, Any] = {
                        "color": colour, "marker": mark, "linestyle": "none", "markersize": 4.5,
                        "markerfacecolor": colour if clock == "warp" else "none",
                        "label": f"{kind if kind == CALL else kind.upper()}, {clock}",
                    }  # fmt: skip
                    rates = [mean_with_half_width([s.throughput_bps / 1e6 for s in mine])
                             for mine in shares_of.values()]  # fmt: skip
                    bars = [one.half_width if one.count > 2 else 0 for one in rates]
                    upper.errorbar(places, [one.mean for one in rates], yerr=bars, capsize=2,
                                   linewidth=0.8, **look)  # fmt: skip
                    delays = [
                        [_mean_delay_s(mine, n) for mine in shares_of.values()] for n in (0, 1)
                    ]
                    spread = [[0] * len(names), [b - a for a, b in zip(*delays, strict=True)]]
                    lower.errorbar(places, delays[0], yerr=spread, capsize=2, linewidth=0.8, **look)
            upper.set_title(scheduler, loc="left")
            lower.set_yscale("log")
            lower.set_xlabel("mean SNR (dB)")
        panels[0, 0].set_ylabel("throughput (Mbit/s)")
        panels[1, 0].set_ylabel("one-way delay (s),\nmedian to 95th percentile")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def mean_ratios_db(folder: Path) -> dict[str, float]:
    """Return the mean signal-to-noise ratio of each user, from a run's scenario."""
    scenario = json.loads((folder / "run.json").read_text())["scenario"]
    return {
        path["name"]: float(path["hops"][0]["downlink"]["fading"]["snr"].split()[0])
        for path in scenario["paths"]
    }


def main(words: list[str] | None = None) -> None:
    """Print the tables and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    folders = [Path("results/cell-sharing")]
    parser.add_argument("folders", type=Path, nargs="*", default=folders)
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    found = runs(*options.folders)
    print("\n".join(table(found)), "\n")
    for clock in sorted({one.clock for one in found}):
        print(f"{clock}:\n\n" + "\n".join(table_of_users(found, clock)), "\n")
    if options.picture:
        first = next(options.folders[0].glob("runs/*/*/*/run.json")).parent
        draw(found, mean_ratios_db(first), options.picture)


if __name__ == "__main__":
    main()
