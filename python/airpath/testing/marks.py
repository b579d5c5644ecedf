# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Keys of the mark ``@pytest.mark.airpath(…)``, and the options of the engine that they mean."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from airpath.engine import EngineError, find_engine
from airpath.experiment.links import overrides
from airpath.experiment.quantities import QuantityError, time_ns
from airpath.nearest import nearest

CLOCKS = ("live", "warp")
UNAVAILABLE = ("fail", "skip")
LOGS = ("counters", "events", "packets")

USUAL_SEED = 1
"""Seed of a test that names none, so that a test repeats."""

USUAL_TIME_LIMIT = "60 s"
USUAL_WALL_LIMIT = "2 min"

NS_PER_S = 1_000_000_000


class MarkError(ValueError):
    """A mark that makes no link; the message says what would."""


class Key(NamedTuple):
    """A key of the mark."""

    name: str
    kind: str
    """Type of its value: text, number (whole), switch, time, parameters, or file."""
    meaning: str
    flag: str = ""
    """The option of ``airpath exec`` that it is; empty for what the plugin itself does."""
    choices: tuple[str, ...] = ()


KEYS = {
    key.name: key
    for key in (
        Key("profile", "text", "a built-in link (`airpath profiles`)", "--profile"),
        Key("scenario", "file", "a scenario file, relative to the test's file", "--scenario"),
        Key("rate", "text", "rate, as `--rate`", "--rate"),
        Key("delay", "text", "one-way delay", "--delay"),
        Key("jitter", "text", "standard deviation of the delay", "--jitter"),
        Key("loss", "text", "probability of loss", "--loss"),
        Key("reorder", "text", "probability of reordering, and for how long", "--reorder"),
        Key("duplicate", "text", "probability of duplication", "--duplicate"),
        Key("queue", "text", "limit of the queue", "--queue"),
        Key("blackout", "text", "start, duration, and drop or store", "--blackout"),
        Key("parameters", "parameters", 'a mapping, as `--set`: `{"radio.link.rate": "1 Mbit/s"}`'),
        Key("users", "number", "number of users of a cell; each runs the command", "--users"),
        Key("server_ends", "text", "`one` or `each`: server ends of users", "--server-ends"),
        Key("cc", "text", "TCP congestion control of both ends", "--cc"),
        Key("mtu", "number", "MTU in bytes", "--mtu"),
        Key("host_port", "text", "port of `server` that leads to this host", "--host-port"),
        Key("internet", "switch", "connect the far end to the host's network", "--internet"),
        Key("seed", "number", f"random seed, otherwise {USUAL_SEED}", "--seed"),
        Key("log", "text", "what is recorded, otherwise `packets`", "--log", LOGS),
        Key("clock", "text", "`live` or `warp`, otherwise that of `--airpath-clock`", "", CLOCKS),
        Key(
            "time_limit",
            "time",
            f"limit of the client's command by the link's clock, otherwise {USUAL_TIME_LIMIT}",
        ),
        Key("wall_limit", "time", f"in warp: limit in real time, otherwise {USUAL_WALL_LIMIT}", ""),
        Key("strict", "switch", "fail if the verdict of a run is not `trusted`"),
        Key(
            "unavailable",
            "text",
            "`fail` or `skip`: what a test does where the machine cannot emulate",
            "",
            UNAVAILABLE,
        ),
    )
}
"""Every key, by name."""


class Settings(NamedTuple):
    """The link and the run that marks of a test describe."""

    values: Mapping[str, Any]
    """Values of the keys that were given."""
    here: Path
    """The folder to which names of files are relative."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a key."""
        assert name in KEYS
        return self.values.get(name, default)

    def seconds(self, name: str, default: str) -> float:
        """Return a time in seconds."""
        return time_ns(self.values.get(name, default)) / NS_PER_S

    def link_words(self) -> list[str]:
        """Return the options of ``airpath exec``, those of its clock and output left out."""
        words: list[str] = []
        for name, value in self.values.items():
            key = KEYS[name]
            if key.kind == "parameters":
                words += overrides(value)
            elif key.kind == "switch":
                words += [key.flag] if key.flag and value else []
            elif key.kind == "file":
                words += [key.flag, str((self.here / value).resolve())]
            elif key.flag:
                words += [key.flag, str(value)]
        if "seed" not in self.values:
            words += ["--seed", str(USUAL_SEED)]
        return words


def read(marks: list[tuple[tuple[Any, ...], Mapping[str, Any]]], here: Path) -> Settings:
    """Read the marks of a test.

    Args:
        marks: positional and named arguments of each, the farthest (the module's) first: keys of
            nearer ones go before.
        here: the folder of the test's file.

    Raises:
        MarkError: a key or a value is wrong, or the engine refuses the link.

    """
    values: dict[str, Any] = {}
    for positional, named in marks:
        if positional:
            message = (
                f"@pytest.mark.airpath takes keys with values, not {positional[0]!r} alone: "
                f"write profile={positional[0]!r}"
            )
            raise MarkError(message)
        for name, value in named.items():
            _check(name, value)
        # One link takes the place of another; keys of the link are laid over either.
        if "profile" in named or "scenario" in named:
            values.pop("profile", None)
            values.pop("scenario", None)
        values.update(named)
    settings = Settings(values, here)
    _ask_engine(tuple(settings.link_words()), here)
    return settings


def _check(name: str, value: Any) -> None:
    """Make sure that there is such a key, and that its value is of the right type."""
    if name not in KEYS:
        message = f"@pytest.mark.airpath has no key `{name}`{nearest(name, KEYS)}"
        raise MarkError(message)
    key = KEYS[name]
    needed, fits = {
        "text": ("a text", isinstance(value, str)),
        "time": ('a time with its unit, such as "30 s"', isinstance(value, str)),
        "file": ("the name of a file", isinstance(value, str | Path)),
        "number": ("a whole number", isinstance(value, int) and not isinstance(value, bool)),
        "switch": ("True or False", isinstance(value, bool)),
        "parameters": ("a mapping of parameters to values", isinstance(value, Mapping)),
    }[key.kind]
    if not fits:
        raise MarkError(f"@pytest.mark.airpath: {name}={value!r} is not {needed}")
    if key.choices and value not in key.choices:
        known = nearest(value, key.choices)
        raise MarkError(f"@pytest.mark.airpath: {name}={value!r}: there is none{known}")
    if key.kind == "time":
        try:
            limit_ns = time_ns(value)
        except QuantityError as error:
            raise MarkError(f"@pytest.mark.airpath: {name}: {error}") from error
        if limit_ns == 0:
            raise MarkError(f"@pytest.mark.airpath: {name}={value!r} leaves no time")


@lru_cache(maxsize=1024)
def _refusal(words: tuple[str, ...], here: Path) -> str:
    """Return what the engine has against a link; empty if nothing."""
    try:
        engine = find_engine()
    except EngineError as error:
        return str(error)
    done = subprocess.run(
        [engine, "exec", *words, "--print-scenario"],
        cwd=here,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().removeprefix("airpath: ")
    return said or f"the engine ended with status {done.returncode}"


def _ask_engine(words: tuple[str, ...], here: Path) -> None:
    """Have the engine check the link.

    Raises:
        MarkError: it refuses the link.

    """
    if refusal := _refusal(words, here):
        raise MarkError(f"@pytest.mark.airpath: {refusal}")
