# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Commands of a test at the two ends of a link, and what came out."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from airpath.engine import find_engine
from airpath.extras import require
from airpath.facts import BEFORE_PROGRAMS, FILES, NEVER_INSIDE, NO_VERDICT, TRUSTED, causes_of
from airpath.files import read_text
from airpath.testing.marks import NS_PER_S, USUAL_TIME_LIMIT, USUAL_WALL_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airpath.run import Run
    from airpath.testing.marks import Settings

Command: TypeAlias = "str | Sequence[str | Path]"
"""A command: words, or a text for the shell."""

ENDED_BY_LIMIT = frozenset({124, 137})
"""Exit statuses of ``timeout``: the command ended by its first signal, or by the second."""

GRACE_S = 5
"""Time between the two."""

PATIENCE_S = 60.0
"""Real time for everything beside the client's command in a live run."""

SHOWN_LINES = 20
"""Number of lines of output that a message shows."""


class LinkError(Exception):
    """A run that could not be made; the message is the engine's."""


class UnavailableError(LinkError):
    """Runs that this machine cannot make; the message says why, and how to mend it."""


class CommandFailedError(AssertionError):
    """The command at the client's end did not succeed."""


class NotTrustedError(AssertionError):
    """The emulator itself distorted a run that was to be exact."""


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    status: int
    """Exit status of the client's command."""
    output: str
    """Its standard output."""
    errors: str
    """Its standard error, and the engine's notes."""
    server_output: str
    """Standard output and error of the server's command."""
    folder: Path
    """The files of the run, for ``airpath log`` and the like."""
    command: tuple[str, ...] = field(repr=False)
    """The command line of ``airpath`` by which it can be repeated."""
    wall_s: float
    """Real time that it took."""
    time_limit_s: float = field(repr=False)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Contents of ``run.json``."""
        found: dict[str, Any] = json.loads(read_text(self.folder / FILES["manifest"]))
        return found

    @property
    def results(self) -> dict[str, Any]:
        """Counters, timings and verdict of the engine."""
        found: dict[str, Any] = self.manifest.get("results", {})
        return found

    @property
    def duration_s(self) -> float:
        """Length of the run by the clock of the link."""
        return float(self.results.get("duration_ns", 0)) / NS_PER_S

    @property
    def verdict(self) -> str:
        """Verdict of the engine on its own exactness: trusted, suspect, invalid, or unknown."""
        return str(self.results.get("verdict", {}).get("grade", NO_VERDICT))

    @property
    def reasons(self) -> list[str]:
        """Reasons for a verdict other than trusted."""
        return [str(one["what"]) for one in self.results.get("verdict", {}).get("reasons", [])]

    def has_status(self, status: int) -> bool:
        """Say whether a client's command ended so, rather than the engine."""
        return any(
            one["end"] != "server" and one["exit_status"] == status
            for one in self.manifest.get("commands", [])
        )

    @property
    def timed_out(self) -> bool:
        """True if the time limit ended the client's command."""
        return self.status in ENDED_BY_LIMIT and self.duration_s >= self.time_limit_s

    @property
    def drops(self) -> dict[str, dict[str, int]]:
        """Number of packets that the link dropped, by direction and cause."""
        found: dict[str, dict[str, int]] = {}
        for counter in self.results.get("counters", []):
            if counter["origin"] == "user":
                causes = found.setdefault(counter["direction"], {})
                for cause, count in counter["causes"].items():
                    if cause not in causes_of(NEVER_INSIDE):
                        causes[cause] = causes.get(cause, 0) + count["count"]
        return found

    @property
    def run(self) -> Run:
        """The run opened for analysis, as ``airpath.load`` gives it.

        Raises:
            MissingExtraError: the packages of ``airpath[analysis]`` are not installed.

        """
        require("analysis", "Outcome.run")
        from airpath.run import load_run

        return load_run(self.folder)

    def metric(self, name: str) -> float | None:
        """Return the value of a metric of ``airpath analyse --list``; None where it has none.

        Args:
            name: of the metric, or NAME/PLACE, such as ``goodput/downlink``.

        Raises:
            MissingExtraError: the packages of ``airpath[analysis]`` are not installed.
            MetricError: the name chooses no metric, or more than one value.

        """
        require("analysis", "Outcome.metric")
        from airpath.experiment.metrics import metric_of, pick

        metric_of(name)
        return pick(self._measured(name), name)

    def _measured(self, name: str) -> dict[str, float]:
        from airpath.experiment.metrics import measured, needed

        return measured(self.folder, needed([name]))

    def check(self) -> Outcome:
        """Return this if the client's command succeeded.

        Raises:
            CommandFailedError: it did not; the message has the last line that it printed.

        """
        __tracebackhide__ = True
        if self.status == 0:
            return self
        what = (
            f"was not over after {self.time_limit_s:g} s"
            if self.timed_out
            else f"ended with exit status {self.status}"
        )
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        last = f": {lines[-1]}" if lines else ""
        raise CommandFailedError(f"the client's command {what}{last}")

    def told_output(self) -> str:
        """Return the last lines of what was printed at both ends."""
        parts = (("output", self.output), ("errors", self.errors), ("server", self.server_output))
        shown = []
        for name, text in parts:
            lines = text.rstrip().splitlines()
            if lines:
                cut = [f"… {len(lines) - SHOWN_LINES} lines"] if len(lines) > SHOWN_LINES else []
                shown += [f"--- {name}", *cut, *lines[-SHOWN_LINES:]]
        return "\n".join(shown)


class Link:
    """The link of a test; every call of ``run`` is a run of its own over it."""

    def __init__(self, settings: Settings, clock: str, folder: Path) -> None:
        """Make the link of one test.

        Args:
            settings: what its marks say.
            clock: live or warp.
            folder: for the files of its runs.

        """
        self.settings = settings
        self.clock = clock
        self.folder = folder
        self.outcomes: list[Outcome] = []

    def run(
        self,
        client: Command,
        *,
        server: Command | None = None,
        users: Mapping[str, Command] | None = None,
        environment: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> Outcome:
        """Run a command at the client's end, and another at the server's.

        Both find each other by the names ``client`` and ``server``. They start in the folder of the
        test's file.

        Args:
            client: words of the command, or a text for the shell; each user of a cell runs it.
            server: the same of the other end; the client starts once it listens.
            users: of a cell, commands of single users instead.
            environment: variables for both commands, beside those of this process.
            seed: another than that of the mark.

        Returns:
            The outcome, whatever the exit status: ``check()`` is what fails.

        Raises:
            UnavailableError: this machine cannot make such runs.
            LinkError: the engine could not make the run, or the server's command did not listen.
            NotTrustedError: with ``strict``, the verdict is not trusted.

        """
        __tracebackhide__ = True
        place = self._place()
        limit_s = self.settings.seconds("time_limit", USUAL_TIME_LIMIT)
        words = self._words(client, server, users, seed, limit_s, place)
        # A guest's limits end it; a live run has none beside that of the command.
        patience_s = limit_s + GRACE_S + PATIENCE_S if self.clock == "live" else None
        began = time.monotonic()
        with (place / "client.out").open("wb") as out, (place / "client.err").open("wb") as err:
            try:
                status = subprocess.run(
                    [find_engine(), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=self.settings.here,
                    env={**os.environ, **(environment or {})},
                    timeout=patience_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired as error:
                message = f"the run was not over after {error.timeout:g} s of real time\n"
                raise LinkError(message + _printed(place)) from error
        wall_s = time.monotonic() - began
        folder = place / "run"
        errors = _text(place / "client.err")
        if not (folder / FILES["manifest"]).exists():
            self._tell_why_not(errors, place)
        outcome = Outcome(
            status,
            _text(place / "client.out"),
            errors,
            _text(place / "server.out"),
            folder,
            ("airpath", *words),
            wall_s,
            limit_s,
        )
        self.outcomes.append(outcome)
        if status in BEFORE_PROGRAMS and not outcome.has_status(status):
            raise LinkError(_without_name(errors))
        if self.settings.get("strict") and outcome.verdict != TRUSTED:
            message = f"the verdict is {outcome.verdict}: {'; '.join(outcome.reasons)}"
            raise NotTrustedError(message)
        return outcome

    def _place(self) -> Path:
        """Make the folder of the next run."""
        number = 1
        while (place := self.folder / str(number)).exists():
            number += 1
        place.mkdir(parents=True)
        return place

    def _words(
        self,
        client: Command,
        server: Command | None,
        users: Mapping[str, Command] | None,
        seed: int | None,
        limit_s: float,
        place: Path,
    ) -> list[str]:
        """Return the command line behind ``airpath``."""
        link = self.settings.link_words()
        if seed is not None:
            link[link.index("--seed") + 1] = str(seed)
        words = ["exec", *link, "--quiet", "--out", str(place / "run")]
        words += [] if self.settings.get("log") else ["--log", "packets"]
        if self.clock == "warp":
            wall_limit_s = self.settings.seconds("wall_limit", USUAL_WALL_LIMIT)
            words += ["--clock", "warp", "--wall-limit", f"{wall_limit_s:g} s"]
        if server is not None:
            printed = shlex.quote(str(place / "server.out"))
            words += ["--server", f"exec >>{printed} 2>&1; {_as_text(server)}"]
        limit = ["timeout", f"--kill-after={GRACE_S}", f"{limit_s:g}"]
        for user, command in (users or {}).items():
            words += ["--client", f"{user}={shlex.join([*limit, *_as_words(command)])}"]
        return [*words, "--", *limit, *_as_words(client)]

    def _tell_why_not(self, errors: str, place: Path) -> None:
        """Say that the engine made no run, and whether this machine could make any.

        Raises:
            LinkError: always.

        """
        __tracebackhide__ = True
        said = _without_name(errors)
        printed = _text(place / "server.out").rstrip()
        shutil.rmtree(place, ignore_errors=True)
        if reason := why_unavailable(self.clock):
            raise UnavailableError(reason)
        message = said or "the engine made no run, and did not say why"
        raise LinkError(f"{message}\n--- server\n{printed}" if printed else message)


def why_unavailable(clock: str) -> str:
    """Say why this machine can make no run by a clock; empty if it can."""
    engine = find_engine()
    words = ["warp", "setup", "--check"] if clock == "warp" else ["exec", "--quiet", "--", "true"]
    done = subprocess.run(
        [engine, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    return done.stderr.strip().removeprefix("airpath: ") or f"{shlex.join(words)} failed"


def _without_name(errors: str) -> str:
    """Return the engine's messages without the program's name before each."""
    return "\n".join(line.removeprefix("airpath: ") for line in errors.splitlines()).strip()


def _as_words(command: Command) -> list[str]:
    return ["sh", "-c", command] if isinstance(command, str) else [str(one) for one in command]


def _as_text(command: Command) -> str:
    return command if isinstance(command, str) else shlex.join([str(one) for one in command])


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.exists() else ""


def _printed(place: Path) -> str:
    parts = ("client.out", "client.err", "server.out")
    return "\n".join(text for name in parts if (text := _text(place / name).rstrip()))
