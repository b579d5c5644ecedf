"""Run the case study of Kojo et al. 2001 and print its table."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from airpath.run import RunError
from seawind_case.measure import Replication, measure
from seawind_case.report import summarise, table, to_toml
from seawind_case.variants import HERE, VARIANTS, Variant

ROOT = HERE.parent.parent
AIRPATH = ROOT / ".venv" / "bin" / "airpath"


def run_variant(variant: Variant, out: Path, arguments: argparse.Namespace, jobs: int) -> str:
    """Run all replications of a variant; return what went wrong, or nothing."""
    folder = out / variant.name
    if (folder / "replication-0001").exists():
        return f"{folder} holds replications already: name another --out, or use --analyse-only"
    folder.mkdir(parents=True, exist_ok=True)
    command = variant.command(AIRPATH, folder, arguments.replications, jobs, arguments.seed)
    with (out / f"{variant.name}.log").open("w") as log:
        log.write(f"{command}\n")
        log.flush()
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        ).returncode
    return "" if status == 0 else f"exit status {status}; see {log.name}"


def analyse(variant: Variant, out: Path) -> dict[str, Any] | None:
    """Summarise the replications of a variant; say on stderr which cannot be read."""
    measured: list[Replication] = []
    for folder in sorted((out / variant.name).glob("replication-????")):
        try:
            measured.append(measure(folder))
        except RunError as error:
            print(f"left out: {error}", file=sys.stderr)
    return summarise(measured) if measured else None


def expected() -> dict[str, Any]:
    """Return the figures in expected.toml."""
    with (HERE / "expected.toml").open("rb") as file:
        return tomllib.load(file)


def kernel_table(figures: dict[str, Any]) -> str:
    """Return the table of the variants for which there are figures."""
    rows = []
    for variant in VARIANTS:
        if variant.name in figures:
            text = variant.kernel.text
            if variant.kernel.congestion_control is None:
                text += f" ({figures[variant.name]['congestion_control']})"
            rows.append((text, variant.acknowledgements, figures[variant.name]))
    return table(rows)


def main() -> int:
    """Run, analyse, print; the exit status is 1 if a replication failed."""
    parser = argparse.ArgumentParser(
        prog="studies/seawind-case/run",
        description="Repeats the case study of Kojo et al. 2001 live and prints its table. "
        "A replication takes two to five minutes; many can run side by side.",
    )
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"among {', '.join(names)}")
    parser.add_argument("--replications", type=int, default=20, metavar="N", help="default 20")
    parser.add_argument(
        "--jobs", type=int, default=16, metavar="J", help="replications at a time, default 16"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first replication")
    parser.add_argument("--out", type=Path, default=ROOT / "study-results" / "seawind-case")
    parser.add_argument(
        "--analyse-only", action="store_true", help="run nothing; read what lies in --out"
    )
    parser.add_argument(
        "--expected", action="store_true", help="print the table of expected.toml, and stop"
    )
    arguments = parser.parse_args()
    if arguments.expected:
        print(kernel_table(expected()))
        return 0
    unknown = set(arguments.variants) - set(names)
    if unknown or arguments.replications < 2 or arguments.jobs < 1:
        parser.error(
            f"no such variant: {', '.join(sorted(unknown))}; there are {', '.join(names)}"
            if unknown
            else "at least 2 --replications and 1 job"
        )
    chosen = [one for one in VARIANTS if not arguments.variants or one.name in arguments.variants]
    failures = [] if arguments.analyse_only else run_all(chosen, arguments)
    figures = {}
    for variant in chosen:
        if summary := analyse(variant, arguments.out):
            figures[variant.name] = summary
    if not figures:
        print(f"nothing to analyse in {arguments.out}", file=sys.stderr)
        return 1
    head = {"kernel": platform.release(), "first_seed": arguments.seed}
    results = arguments.out / "results.toml"
    results.write_text(to_toml(head, figures))
    print(kernel_table(figures))
    print(f"\nfigures: {results}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def run_all(chosen: list[Variant], arguments: argparse.Namespace) -> list[str]:
    """Run the variants, several at once where there are jobs for it; return the failures."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    at_once = min(len(chosen), arguments.jobs)
    jobs = arguments.jobs // at_once
    with ThreadPoolExecutor(at_once) as pool:
        outcomes = pool.map(
            lambda one: (one.name, run_variant(one, arguments.out, arguments, jobs)), chosen
        )
        return [f"{name}: {outcome}" for name, outcome in outcomes if outcome]


if __name__ == "__main__":
    sys.exit(main())
