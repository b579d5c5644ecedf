"""Summaries of all commands for ``airpath --help``, of the engine and of Python.

Kept apart from the commands themselves, so that the help costs no heavy import. What the engine's
commands do, the engine says (``airpath facts``).
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One subcommand, as the overview shows it."""

    name: str
    summary: str
    example: str


_OF_PYTHON = (
    Command(
        "run",
        "run the sets of an experiment, unattended",
        "airpath run experiment.toml --jobs auto",
    ),
    Command(
        "plan",
        "print the runs of an experiment, their duration and size",
        "airpath plan experiment.toml --pilot",
    ),
    Command(
        "results",
        "list, compare, tag and remove results of experiments",
        "airpath results results/experiment --where 'elapsed < 20'",
    ),
    Command(
        "analyse",
        "metrics of runs and of sets of replications, comparisons of sets",
        "airpath analyse results/ --compare reno cubic",
    ),
    Command(
        "plot",
        "draw the pictures of a run",
        "airpath plot results/ --format svg",
    ),
    Command(
        "report",
        "write one page of HTML about runs",
        "airpath report results/ --out gprs.html",
    ),
)

_OF_BOTH = (
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
)
"""The engine's for scenarios, Python's for experiments."""

_ORDER = (
    *("exec", "shell", "sim", "run", "plan", "results", "profiles", "check", "schema", "facts"),
    *("log", "send", "recv", "runs", "state", "set", "replay", "trace", "timing", "warp"),
    *("analyse", "plot", "report"),
)

PYTHON_COMMANDS = frozenset(command.name for command in _OF_PYTHON)
PYTHON_SUBCOMMANDS = frozenset({("trace", "plot"), ("timing", "plot"), ("timing", "table")})
"""Python's among the subcommands of the engine's commands."""

EXPERIMENT_COMMANDS = frozenset({"run", "plan", "results", "check", "schema"})
"""Commands over experiments; ``check`` and ``schema`` are the engine's for scenarios."""


def commands() -> tuple[Command, ...]:
    """Return every command, in the order of the overview."""
    from airpath.facts import COMMANDS  # not needed where a command is only found

    known = {
        name: Command(name, command.summary[:1].lower() + command.summary[1:], command.example)
        for name, command in COMMANDS.items()
    } | {command.name: command for command in (*_OF_PYTHON, *_OF_BOTH)}
    return tuple(known[name] for name in _ORDER)


def overview() -> str:
    """Return the text of ``airpath --help``."""
    shown = commands()
    width = max(len(command.name) for command in shown)
    lines = [
        "Emulates a wireless link between real programs and reports what happened on it.",
        "",
        "usage: airpath COMMAND [OPTIONS]",
        "",
        "commands:",
    ]
    for command in shown:
        lines.append(f"  {command.name:{width}}  {command.summary}")
        lines.append(f"  {'':{width}}    {command.example}")
    lines += [
        "",
        "options:",
        "  --help     show this text; airpath COMMAND --help shows a command's options",
        "  --version  show the version",
    ]
    return "\n".join(lines)
