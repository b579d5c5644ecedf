"""What ``airpath --help`` says of every command, whichever program carries it out.

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
        "run a program behind an emulated link",
        "airpath exec --profile gprs-cs2-3+1 -- curl http://server:8000/",
    ),
    Command(
        "shell",
        "a shell behind an emulated link",
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
        "say what an experiment would run, how long and how large",
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
        "list the built-in links, or show one as TOML",
        "airpath profiles show lte-good",
    ),
    Command(
        "check",
        "check a scenario or experiment file",
        "airpath check link.toml",
    ),
    Command(
        "schema",
        "print the JSON Schema of scenario files, or --experiment files",
        "airpath schema > scenario.schema.json",
    ),
    Command(
        "log",
        "print the events of a run",
        "airpath log --tcpdump results/",
    ),
    Command(
        "send",
        "put a load on the way to airpath recv",
        "airpath send server --bytes 100000",
    ),
    Command(
        "recv",
        "wait for airpath send",
        "airpath recv --once",
    ),
    Command(
        "runs",
        "list the runs that go on",
        "airpath runs",
    ),
    Command(
        "state",
        "put a state of a live run in force",
        "airpath state results/ tunnel",
    ),
    Command(
        "set",
        "set parameters of a live run",
        "airpath set results/ radio.link.rate='64 kbit/s'",
    ),
    Command(
        "replay",
        "play a run again in virtual time and compare",
        "airpath replay results/",
    ),
    Command(
        "trace",
        "convert, show or plot traces of rates (mm-link, CSV, netem-trace)",
        "airpath trace convert '5 Mbit/s' 5mbit.trace",
    ),
    Command(
        "timing",
        "how well this machine keeps time; calibrate live runs for it",
        "airpath timing calibrate",
    ),
    Command(
        "warp",
        "build the kernel for runs in virtual time (exec --clock warp)",
        "airpath warp setup",
    ),
    Command(
        "analyse",
        "metrics of runs and of sets of replications, comparisons of sets",
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
        "Puts a wireless link of your choice between real programs, and says what happened.",
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
