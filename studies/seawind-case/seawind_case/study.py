"""Run the case study of Kojo et al. 2001 by one of the three clocks, and print its table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

from airpath.run import RunError, load_run
from seawind_case.measure import Replication, measure
from seawind_case.packets import side
from seawind_case.recorded import expected, kernel_table, record
from seawind_case.report import summarise, to_toml
from seawind_case.variants import CLOCKS, HERE, Variant, variants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = HERE.parent.parent
AIRPATH = ROOT / ".venv" / "bin" / "airpath"
RESULTS = ROOT / "study-results"
JOBS = {"live": 16, "warp": 2, "virtual": 2}
"""Live replications wait; the others take a processor each."""


def run_variant(variant: Variant, out: Path, arguments: argparse.Namespace, jobs: int) -> str:
    """Run all replications of a variant; return what went wrong, or nothing."""
    folder = out / variant.name
    if (folder / "replication-0001").exists():
        return f"{folder} holds replications already: name another --out, or use --analyse-only"
    folder.mkdir(parents=True, exist_ok=True)
    times: dict[str, float] = {}
    with (out / f"{variant.name}.log").open("w") as log:

        def run(into: Path | None) -> int:
            command = variant.command(AIRPATH, into, arguments.replications, jobs, arguments.seed)
            log.write(f"{command}\n")
            log.flush()
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            ).returncode

        status = 0
        if variant.clock == "virtual":
            # What the link and the ends cost by themselves, before files are written too.
            status, spent = timed(lambda: run(None))
            times |= {f"{name}_without_files": value for name, value in spent.items()}
        if status == 0:
            status, spent = timed(lambda: run(folder))
            times |= spent
        if variant.clock == "live":
            # Other variants run at the same time, and what they take cannot be told apart.
            times.pop("processor_seconds", None)
    (folder / TIMES).write_text(json.dumps({**times, "jobs": jobs}))
    return "" if status == 0 else f"exit status {status}; see {log.name}"


TIMES = "times.json"
"""In a variant's folder: how long its set of replications took, in real time."""


def timed(action: Callable[[], int]) -> tuple[int, dict[str, float]]:
    """Return an action's exit status, and the real and the processor time of its programs."""
    begin, before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
    status = action()
    end, after = time.monotonic(), getrusage(RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return status, {
        "wall_seconds": round(end - begin, 3),
        "processor_seconds": round(processor, 3),
    }


def analyse(variant: Variant, out: Path) -> tuple[dict[str, Any], set[str]] | None:
    """Summarise the replications of a variant; return the figures and the kernels they ran on.

    Says on stderr which replications cannot be read.
    """
    measured: list[Replication] = []
    for folder in replications(out / variant.name):
        try:
            measured.append(measure(folder))
        except RunError as error:
            print(f"left out: {error}", file=sys.stderr)
    if not measured:
        return None
    times = out / variant.name / TIMES
    wall = json.loads(times.read_text()) if times.exists() else {}
    return {**summarise(measured), **wall}, {one.kernel for one in measured}


def run_same_start(chosen: list[Variant], live: Path, out: Path, jobs: int) -> list[str]:
    """Run every transfer of the live results once more; return the failures.

    The client waits until the instant of the run at which the live one sent its first packet: how
    long a program takes to start decides which packets meet the change at 40 s.
    """
    commands: dict[str, list[str]] = {}
    for variant in chosen:
        for folder in replications(live / variant.name):
            place = out / variant.name / folder.name
            if place.exists():
                return [f"{place} exists already: name another --out, or use --analyse-only"]
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                run = load_run(folder)
                wait = max(side(run).start_ms / 1e3, 0.0)
            except RunError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            seed = int(run.manifest["seed"])
            commands[f"{variant.name}/{folder.name}"] = variant.command(
                AIRPATH, place, 1, 1, seed, ("--wait", f"{wait:.6f}")
            )

    def run_one(name: str) -> str:
        done = subprocess.run(
            commands[name], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return f"{name}: {done.stderr.strip()}" if done.returncode else ""

    with ThreadPoolExecutor(jobs) as pool:
        return [failure for failure in pool.map(run_one, commands) if failure]


def replications(folder: Path) -> list[Path]:
    """Return the folders of a variant's replications."""
    return sorted(folder.glob("replication-????"))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; ends the program if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="studies/seawind-case/run",
        description="Repeats the case study of Kojo et al. 2001 and prints its table. Live, a "
        "replication takes two to five minutes, and many can run side by side; in virtual time, "
        "with the real TCP (warp) or with small stacks (virtual), it takes seconds or less.",
        epilog="`studies/seawind-case/run compare --help`: do warp and live agree?",
    )
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help="which; all by default")
    parser.add_argument("--clock", choices=CLOCKS, default="live", help="default live")
    parser.add_argument("--replications", type=int, default=20, metavar="N", help="default 20")
    parser.add_argument(
        "--jobs", type=int, metavar="J", help="replications at a time, default 16 live, else 2"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first replication")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default study-results/seawind-case[-CLOCK]"
    )
    parser.add_argument(
        "--analyse-only", action="store_true", help="run nothing; read what lies in --out"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="put the figures into expected[-CLOCK].toml and the table into README.md",
    )
    parser.add_argument(
        "--expected", action="store_true", help="print the table of expected[-CLOCK].toml, and stop"
    )
    parser.add_argument(
        "--start-as",
        type=Path,
        metavar="LIVE_DIR",
        help="with --clock warp: every transfer of those live results again, begun at the same "
        "instant of the run; --out is then study-results/seawind-case-warp-same-start by default",
    )
    arguments = parser.parse_args(words)
    if arguments.start_as and arguments.clock != "warp":
        parser.error("--start-as needs --clock warp")
    if arguments.start_as and arguments.record:
        parser.error("--record is for whole sets, not with --start-as")
    arguments.jobs = arguments.jobs or JOBS[arguments.clock]
    suffix = "" if arguments.clock == "live" else f"-{arguments.clock}"
    suffix += "-same-start" if arguments.start_as else ""
    arguments.out = arguments.out or RESULTS / f"seawind-case{suffix}"
    names = [variant.name for variant in variants(arguments.clock)]
    unknown = set(arguments.variants) - set(names)
    if unknown:
        parser.error(f"no such variant: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if arguments.replications < 2 or arguments.jobs < 1:
        parser.error("at least 2 --replications and 1 job")
    if arguments.record and arguments.variants:
        parser.error("--record is for all variants together: name none")
    return arguments


def main(words: Sequence[str] | None = None) -> int:
    """Run, analyse, print; the exit status is 1 if a replication failed."""
    arguments = parse(words)
    if arguments.expected:
        print(kernel_table(expected(arguments.clock), arguments.clock))
        return 0
    chosen = [
        one
        for one in variants(arguments.clock)
        if not arguments.variants or one.name in arguments.variants
    ]
    failures = [] if arguments.analyse_only else run_all(chosen, arguments)
    figures: dict[str, Any] = {}
    kernels: set[str] = set()
    for variant in chosen:
        if analysed := analyse(variant, arguments.out):
            figures[variant.name] = analysed[0]
            kernels |= analysed[1]
    for failure in failures:
        print(failure, file=sys.stderr)
    if not figures:
        print(f"nothing to analyse in {arguments.out}", file=sys.stderr)
        return 1
    head = {
        "clock": arguments.clock,
        "kernel": "/".join(sorted(kernels)),
        "first_seed": arguments.seed,
    }
    results = arguments.out / "results.toml"
    results.write_text(to_toml(head, figures))
    print(kernel_table(figures, arguments.clock))
    for name, value in figures.items():
        if "wall_seconds" in value:
            print(f"{name}: {value['replications']} replications in {_times(value)}")
    print(f"\nfigures: {results}")
    if failures:
        return 1
    if arguments.record:
        if len(figures) < len(chosen):
            print("not recorded: there are not figures of all variants", file=sys.stderr)
            return 1
        record(arguments.clock, results)
    return 0


def _times(figures: dict[str, Any]) -> str:
    text = f"{figures['wall_seconds']} s"
    if "processor_seconds" in figures:
        text += f" ({figures['processor_seconds']} s of processor time)"
    if "wall_seconds_without_files" in figures:
        text += (
            f"; without files in {figures['wall_seconds_without_files']} s "
            f"({figures['processor_seconds_without_files']} s)"
        )
    return text


def run_all(chosen: list[Variant], arguments: argparse.Namespace) -> list[str]:
    """Run the variants and return the failures.

    Live, several at once where there are jobs for it; else one after another, so that each can be
    timed.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.start_as:
        return run_same_start(chosen, arguments.start_as, arguments.out, arguments.jobs)
    at_once = min(len(chosen), arguments.jobs) if arguments.clock == "live" else 1
    jobs = arguments.jobs // at_once
    with ThreadPoolExecutor(at_once) as pool:
        outcomes = pool.map(
            lambda one: (one.name, run_variant(one, arguments.out, arguments, jobs)), chosen
        )
        return [f"{name}: {outcome}" for name, outcome in outcomes if outcome]
