# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Video over the bearers of Singh 2000, Figures 13 to 16, by real programs.

``airpath video send`` and ``receive`` run over the four networks of bearers.toml, over UDP and over
UDP-Lite, by default in virtual time (warp). Each run adds a line to ``OUT/runs.jsonl``; runs that
are there are not repeated. The table has means with 95 % intervals. Live runs stand beside the runs
by warp of the same seeds in a second table.
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

import polars as pl

from airpath.analysis.intervals import mean_with_half_width
from airpath.run import load_run

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).resolve().parent
NETWORKS: dict[str, Any] = tomllib.loads((FOLDER / "bearers.toml").read_text())["networks"]
TRANSPORTS = ("udp", "udp-lite")
AIRPATH = (sys.executable, "-c", "import sys; from airpath.cli import main; sys.exit(main())")
FPS = 5
RTP_HERTZ = 90_000
BLOCK_NS = 20_000_000
SAME = ("network", "transport", "seed", "queue", "send_buffer")
"""Fields of a record that tell what was run, whatever the clock."""
FIGURES: dict[str, Callable[[Any], float]] = {
    "end-to-end delay (s)": lambda report: report["delay_ns"]["mean"] / 1e9,
    "interarrival jitter (ms)": lambda report: report["jitter_ns"]["mean"] / 1e6,
    "packet loss (%)": lambda report: 100 * report["packets_lost"] / report["packets_sent"],
    "throughput (kbit/s)": lambda report: report["throughput_bps"] / 1e3,
}
"""Figures that the thesis draws, from a receiver's report."""
SENDING: dict[str, Callable[[Any], float]] = {
    "sending begins (s)": lambda report: report["begins_ns"] / 1e9,
    "wait for a block (ms)": lambda report: report["block_wait_ns"] / 1e6,
}
"""Times of sending, which tell runs by different clocks apart."""


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


def sending(folder: Path) -> dict[str, float]:
    """Return when packets came to the link: the first, and how long before the next block."""
    offered = load_run(folder).path_events("offered").filter(pl.col("direction") == "uplink")
    at = offered["time_ns"].to_numpy()
    return {"begins_ns": int(at[0]), "block_wait_ns": float((BLOCK_NS - at % BLOCK_NS).mean())}


def run(clip: Path, out: Path, about: dict[str, Any]) -> Any:
    """Send the video once; return what the receiver reports.

    Args:
        clip: the video.
        out: where files go.
        about: ``clock``, and the fields of ``SAME``.

    """
    clock, network, transport, seed, *buffers = (about[key] for key in ("clock", *SAME))
    name = "-".join(str(word).replace(" ", "-") for word in about.values() if word is not None)
    shutil.rmtree(out / name, ignore_errors=True)  # of a run that was interrupted
    log, received = out / f"{name}.csv", out / f"{name}.h263"
    parameters = NETWORKS[network]
    settings = dict(parameters["set"])
    keys = ("radio.link.queue.limit", "radio.link.send_buffer")
    settings |= {key: value for key, value in zip(keys, buffers, strict=True) if value}
    changes = [f"{key}={value}" for key, value in settings.items()]
    changes = [text if "{" in text else '{}="{}"'.format(*text.split("=")) for text in changes]
    link = ["--profile", parameters["profile"], "--clock", clock, "--seed", seed]
    link += [word for change in changes for word in ("--set", change)]
    grace = ("--server-grace", "20 s", "--out", out / name)
    transported = ("--transport", transport)
    server = (*AIRPATH, "video", "receive", *transported, "--silence", "15 s")
    server_files = ("--out", received, "--sent", log)
    client = (*AIRPATH, "video", "send", clip, "--to", "server:5004", "--ipv4", *transported)
    pace = ("--packet-bytes", 250, "--pace", "spread", "--log", log)
    receive = shlex.join(map(str, (*server, *server_files)))
    airpath("exec", *link, *grace, "--server", receive, "--", *client, *pace)
    report = json.loads(Path(f"{received}.json").read_text())
    frames = report.pop("frames")
    of_frames = {frame["rtp_time"] * FPS // RTP_HERTZ: frame["packets"] for frame in frames}
    verdict = json.loads((out / name / "run.json").read_text())["results"]["verdict"]["grade"]
    report |= about | sending(out / name)
    return {**report, "packets_of_frames": of_frames, "verdict": verdict}


def cell_of(one: Any) -> tuple[str, str, str]:
    """Return clock, network with its buffers, and transport of a run."""
    buffers = (("queue", "queue"), ("send buffer", "send_buffer"))
    changed = "".join(f", {name} {one[key]}" for name, key in buffers if one.get(key))
    return one["clock"], one["network"] + changed, one["transport"]


def table(runs: list[Any]) -> list[str]:
    """Return the lines of the table."""
    lines = ["| clock | network | transport | runs | " + " | ".join(FIGURES) + " |"]
    lines.append("|---" * (4 + len(FIGURES)) + "|")
    for cell in sorted({cell_of(one) for one in runs}):
        here = [one for one in runs if cell_of(one) == cell]
        means = [mean_with_half_width([of(one) for one in here]) for of in FIGURES.values()]
        words = [f"{one.mean:.3f} ± {one.half_width:.3f}" for one in means]
        lines.append("| " + " | ".join([*cell, str(len(here)), *words]) + " |")
    return lines


def pairs(runs: list[Any]) -> list[str]:
    """Return the lines of the table of live runs beside those by warp; none if there is no pair.

    Its last column counts the packets that came through one of both alone, frame by frame. Each
    cell ends with the means of live less warp, with 95 % intervals.
    """
    warp = {tuple(one.get(key) for key in SAME): one for one in runs if one["clock"] == "warp"}
    cells: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for live in runs:
        of_warp = warp.get(tuple(live.get(key) for key in SAME))
        if live["clock"] == "live" and of_warp is not None:
            cells.setdefault(cell_of(live)[1:], []).append((live, of_warp))
    if not cells:
        return []
    shown = FIGURES | SENDING
    lines = ["| network | transport | seed | " + " | ".join(shown) + " | lost in one alone |"]
    lines.append("|---" * (4 + len(shown)) + "|")
    for cell, found in sorted(cells.items()):
        for both in sorted(found, key=lambda one: one[0]["seed"]):
            figures = [", ".join(f"{of(one):.3f}" for one in both) for of in shown.values()]
            counts = [one["packets_of_frames"] for one in both]
            frames = counts[0].keys() | counts[1].keys()
            apart = sum(abs(counts[0].get(one, 0) - counts[1].get(one, 0)) for one in frames)
            words = [*cell, str(both[0]["seed"]), *figures, f"{apart} of {both[0]['packets_sent']}"]
            lines.append("| " + " | ".join(words) + " |")
        less = [
            mean_with_half_width([of(live) - of(of_warp) for live, of_warp in found])
            for of in shown.values()
        ]
        words = [
            *cell,
            "live less warp",
            *(f"{one.mean:.3f} ± {one.half_width:.3f}" for one in less),
        ]
        lines.append("| " + " | ".join(words) + " | |")
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
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS))
    parser.add_argument("--queue", help="limit of the queue, instead of the profile's")
    parser.add_argument("--send-buffer", help="send buffer of the modem, instead of the profile's")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--picture", type=Path, help="file of the picture, .png")
    options = parser.parse_args(words)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    clip, journal = make_clip(out, options.seconds), out / "runs.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    runs = [json.loads(line) for line in lines]
    buffers = {"queue": options.queue, "send_buffer": options.send_buffer}
    seeds = range(1, options.replications + 1)
    wanted = [
        {
            "clock": options.clock,
            "network": network,
            "transport": transport,
            "seed": seed,
            **buffers,
        }
        for seed, network, transport in product(seeds, options.networks, options.transports)
    ]
    done = {tuple(one.get(key) for key in ("clock", *SAME)) for one in runs}
    missing = [one for one in wanted if tuple(one[key] for key in ("clock", *SAME)) not in done]
    with ThreadPoolExecutor(options.jobs) as pool, journal.open("a") as file:
        for report in pool.map(lambda one: run(clip, out, one), missing):
            text = json.dumps(report)
            runs.append(json.loads(text))
            file.write(text + "\n")
            file.flush()
    print("\n".join(table(runs)))
    if beside := pairs(runs):
        print("\nLive, warp:\n\n" + "\n".join(beside))
    grades = Counter(one["verdict"] for one in runs)
    print("verdicts: " + ", ".join(f"{count} {grade}" for grade, count in grades.items()))
    if options.picture:
        alike = {"clock": options.clock, **buffers}
        draw([one for one in runs if all(one.get(k) == alike[k] for k in alike)], options.picture)


if __name__ == "__main__":
    main()
