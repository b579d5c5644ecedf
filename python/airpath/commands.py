"""Summaries of all commands for ``airpath --help``, of the engine and of Python.

Kept apart from the commands themselves, so that the help costs no heavy import.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One subcommand, as the overview shows it."""

    name: str
    summary: str
    example: str
    in_python: bool = False


COMMANDS: tuple[Command, ...] = (
    Command(
        "exec",
        "run a command behind an emulated link",
        "airpath exec --profile gprs-cs2-3+1 -- curl http://server:8000/",
    ),
    Command(
        "shell",
        "open a shell behind an emulated link",
        "airpath shell --rate '1 Mbit/s' --delay '50 ms'",
    ),
    Command(
        "sim",
        "run workloads over a link in virtual time",
        "airpath sim --profile gsm-data-9.6k --workload 'tcp bytes=102400 cc=reno'",
    ),
    Command(
        "run",
        "run the sets of an experiment, unattended",
        "airpath run experiment.toml --jobs auto",
        in_python=True,
    ),
    Command(
        "plan",
        "print the runs of an experiment, their duration and size",
        "airpath plan experiment.toml --pilot",
        in_python=True,
    ),
    Command(
        "results",
        "list, compare, tag and remove results of experiments",
        "airpath results results/experiment --where 'elapsed < 20'",
        in_python=True,
    ),
    Command(
        "profiles",
        "list the built-in links, or print one as TOML",
        "airpath profiles show lte-good",
    ),
    Command(
        "check",
        "validate a scenario or experiment file",
        "airpath check link.toml",
    ),
    Command(
        "schema",
        "print the JSON Schema of scenario files, or --experiment files",
        "airpath schema > scenario.schema.json",
    ),
    Command(
        "log",
        "print the events or packets of a recorded run",
        "airpath log --tcpdump results/",
    ),
    Command(
        "send",
        "send traffic to airpath recv",
        "airpath send server --bytes 100000",
    ),
    Command(
        "recv",
        "receive or return the traffic of airpath send",
        "airpath recv --once",
    ),
    Command(
        "runs",
        "list active runs",
        "airpath runs",
    ),
    Command(
        "state",
        "switch a running link to another state",
        "airpath state results/ tunnel",
    ),
    Command(
        "set",
        "change parameters of a running link",
        "airpath set results/ radio.link.rate='64 kbit/s'",
    ),
    Command(
        "replay",
        "replay a run in virtual time and compare the traces",
        "airpath replay results/",
    ),
    Command(
        "trace",
        "convert, inspect or plot rate traces (mm-link, CSV, netem-trace)",
        "airpath trace convert '5 Mbit/s' 5mbit.trace",
    ),
    Command(
        "timing",
        "measure the timing accuracy of this machine; calibrate live runs",
        "airpath timing calibrate",
    ),
    Command(
        "warp",
        "build the kernel for runs in virtual time (exec --clock warp)",
        "airpath warp setup",
    ),
    Command(
        "analyse",
        "compute metrics of runs and sets of replications; compare sets",
        "airpath analyse results/ --compare reno cubic",
        in_python=True,
    ),
    Command(
        "plot",
        "draw the pictures of a run",
        "airpath plot results/ --format svg",
        in_python=True,
    ),
    Command(
        "report",
        "write one page of HTML about runs",
        "airpath report results/ --out gprs.html",
        in_python=True,
    ),
)

PYTHON_COMMANDS = frozenset(command.name for command in COMMANDS if command.in_python)
PYTHON_SUBCOMMANDS = frozenset({("trace", "plot"), ("timing", "plot"), ("timing", "table")})
"""Python's among the subcommands of the engine's commands."""

EXPERIMENT_COMMANDS = frozenset({"run", "plan", "results", "check", "schema"})
"""Commands over experiments; ``check`` and ``schema`` are the engine's for scenarios."""


def overview() -> str:
    """Return the text of ``airpath --help``."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [
        "Emulates a wireless link between real programs and reports what happened on it.",
        "",
        "usage: airpath COMMAND [OPTIONS]",
        "",
        "commands:",
    ]
    for command in COMMANDS:
        lines.append(f"  {command.name:{width}}  {command.summary}")
        lines.append(f"  {'':{width}}    {command.example}")
    lines += [
        "",
        "options:",
        "  --help     show this text; airpath COMMAND --help shows a command's options",
        "  --version  show the version",
    ]
    return "\n".join(lines)
