# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Video over the bearers of Singh 2000, Figures 13 to 16, by real programs.

``airpath video send`` and ``receive`` run over the four networks of bearers.toml, over UDP and over
UDP-Lite, by default in virtual time (warp). Each run adds a line to ``OUT/runs.jsonl``; runs that
are there are not repeated. The table has means with 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.analysis.intervals import mean_with_half_width

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).resolve().parent
NETWORKS: dict[str, Any] = tomllib.loads((FOLDER / "bearers.toml").read_text())["networks"]
TRANSPORTS = ("udp", "udp-lite")
AIRPATH = (sys.executable, "-c", "import sys; from airpath.cli import main; sys.exit(main())")
FPS = 5
FIGURES: dict[str, Callable[[Any], float]] = {
    "end-to-end delay (s)": lambda report: report["delay_ns"]["mean"] / 1e9,
    "interarrival jitter (ms)": lambda report: report["jitter_ns"]["mean"] / 1e6,
    "packet loss (%)": lambda report: 100 * report["packets_lost"] / report["packets_sent"],
    "throughput (kbit/s)": lambda report: report["throughput_bps"] / 1e3,
}
"""Figures that the thesis draws, from a receiver's report."""


def airpath(*words: object) -> str:
    """Return what a command prints."""
    command = [*AIRPATH, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def make_clip(out: Path, seconds: int) -> Path:
    """Make the video, of 5 kbit/s so that RTP, IP and PPP fit into 9.6 kbit/s beside it."""
    clip = out / "clip.h263"
    video = ("--codec", "h263p", "--fps", FPS, "--frames", FPS * seconds, "--rate", "4 kbit/s")
    slices = ("--slice-bytes", 200, "--key-frame-interval", 25)
    airpath("video", "make", *video, *slices, "--out", clip)
    return clip


def run(clip: Path, out: Path, clock: str, network: str, transport: str, seed: int) -> Any:
    """Send the video once; return what the receiver reports."""
    name = f"{clock}-{network}-{transport}-{seed}"
    shutil.rmtree(out / name, ignore_errors=True)  # of a run that was interrupted
    log, received = out / f"{name}.csv", out / f"{name}.h263"
    parameters = NETWORKS[network]
    changes = [f"{key}={value}" for key, value in parameters["set"].items()]
    changes = [text if "{" in text else '{}="{}"'.format(*text.split("=")) for text in changes]
    link = ["--profile", parameters["profile"], "--clock", clock, "--seed", seed]
    link += [word for change in changes for word in ("--set", change)]
    grace = ("--server-grace", "20 s", "--out", out / name)
    transported = ("--transport", transport)
    server = (*AIRPATH, "video", "receive", *transported, "--silence", "15 s")
    server_files = ("--out", received, "--sent", log)
    client = (*AIRPATH, "video", "send", clip, "--to", "server:5004", *transported)
    pace = ("--packet-bytes", 250, "--pace", "spread", "--log", log)
    receive = shlex.join(map(str, (*server, *server_files)))
    airpath("exec", *link, *grace, "--server", receive, "--", *client, *pace)
    report = json.loads(Path(f"{received}.json").read_text())
    del report["frames"]
    verdict = json.loads((out / name / "run.json").read_text())["results"]["verdict"]["grade"]
    about = {"clock": clock, "network": network, "transport": transport, "seed": seed}
    return {**report, **about, "verdict": verdict}


def table(runs: list[Any]) -> list[str]:
    """Return the lines of the table."""
    lines = ["| clock | network | transport | runs | " + " | ".join(FIGURES) + " |"]
    lines.append("|---" * (4 + len(FIGURES)) + "|")
    cells = sorted({(one["clock"], one["network"], one["transport"]) for one in runs})
    for cell in cells:
        here = [one for one in runs if (one["clock"], one["network"], one["transport"]) == cell]
        means = [mean_with_half_width([of(one) for one in here]) for of in FIGURES.values()]
        words = [f"{one.mean:.3f} ± {one.half_width:.3f}" for one in means]
        lines.append("| " + " | ".join([*cell, str(len(here)), *words]) + " |")
    return lines


def draw(runs: list[Any], picture: Path) -> None:
    """Draw the four figures: means, and bars of 95 % intervals."""
    from airpath.files import make_folder
    from airpath.plots.style import BLUE, VERMILLION, Picture, stack

    channels = {"good": (BLUE, "o"), "bad": (VERMILLION, "s")}
    columns = list(product(("rlp", "transparent"), TRANSPORTS))
    with stack(len(FIGURES), row_inches=1.5) as (figure, axes):
        for axis, (name, of) in zip(axes, FIGURES.items(), strict=True):
            for shift, (channel, (colour, mark)) in enumerate(channels.items()):
                for place, (bearer, transport) in enumerate(columns):
                    wanted = (f"{bearer}-{channel}", transport)
                    here = [one for one in runs if (one["network"], one["transport"]) == wanted]
                    if not here:
                        continue
                    mean = mean_with_half_width([of(one) for one in here])
                    label = f"{channel} channel" if axis is axes[0] and place == 0 else None
                    axis.errorbar(
                        [place + 0.12 * shift - 0.06], [mean.mean], yerr=[mean.half_width],
                        color=colour, marker=mark, markersize=4, capsize=3, label=label,
                    )  # fmt: skip
            axis.set_ylabel(name.replace(" (", "\n("))
        axes[-1].set_xticks(range(4), [f"{transport}, {bearer}" for bearer, transport in columns])
        figure.legend(loc="outside lower center", ncols=2)
        Picture(picture.stem, figure).save(make_folder(picture.parent), "png")


def main(words: list[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/video-bearers"))
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=240, help="length of the video")
    parser.add_argument("--clock", choices=("warp", "live"), default="warp")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--queue", help="limit of the queue, instead of the profile's")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    clip, journal = make_clip(out, options.seconds), out / "runs.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    runs = [json.loads(line) for line in lines]
    done = {(one["clock"], one["network"], one["transport"], one["seed"]) for one in runs}
    seeds = range(1, options.replications + 1)
    wanted = [
        (options.clock, network, transport, seed)
        for seed, network, transport in product(seeds, options.networks, TRANSPORTS)
    ]
    if options.queue:
        for network in NETWORKS.values():
            network["set"]["radio.link.queue.limit"] = options.queue
    with ThreadPoolExecutor(options.jobs) as pool, journal.open("a") as file:
        missing = [one for one in wanted if one not in done]
        for report in pool.map(lambda one: run(clip, out, *one), missing):
            runs.append(report)
            file.write(json.dumps(report) + "\n")
            file.flush()
    print("\n".join(table(runs)))
    grades = Counter(one["verdict"] for one in runs)
    print("verdicts: " + ", ".join(f"{count} {grade}" for grade, count in grades.items()))
    if options.picture:
        draw([one for one in runs if one["clock"] == options.clock], options.picture)


if __name__ == "__main__":
    main()
