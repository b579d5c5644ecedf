# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Running an experiment unattended: what is left to do, side by side, and what comes of it."""

from __future__ import annotations

import errno
import shutil
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.analysis.intervals import mean_with_half_width
from airpath.experiment import replicate as replication
from airpath.experiment.about import RecordError, read_record
from airpath.experiment.catalogue import open_catalogue
from airpath.experiment.folder import FolderError, Key
from airpath.experiment.jobs import Memory
from airpath.experiment.metrics import MetricError, measure_aside, metric_of, needed, pick
from airpath.experiment.plan import cell_folder
from airpath.experiment.quantities import alike, length_bytes, show_bytes, show_seconds
from airpath.experiment.replicate import Outcome, Task, make_task, remove
from airpath.experiment.statistics import checkpoints
from airpath.facts import FILES, NOT_TRUSTED, TRUSTED
from airpath.files import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airpath.experiment.catalogue import Catalogue
    from airpath.experiment.folder import Results
    from airpath.experiment.jobs import Jobs
    from airpath.experiment.plan import Plan, PlannedCell
    from airpath.store.url import Url

SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""Errors that say that this many side by side are too many for the machine."""

MANY = 1024
"""Threads that an executor may have; how many are busy is for ``Jobs`` to say."""

ENOUGH = 20
"""Replications whose pace tells how long the others take."""


@dataclass
class _CellState:
    planned: PlannedCell
    target: int
    """Number of replications wanted for now."""

    following: int = 1
    """The first replication that has not been handed out."""

    settled: bool = False
    note: str = ""


@dataclass
class Report:
    """Outcome of a whole run."""

    succeeded: int = 0
    failed: int = 0
    broken: int = 0
    not_trusted: int = 0
    untrusted: list[Path] = field(default_factory=list)
    """The folders of those."""

    stopped: str = ""
    """Reason that it ended before everything was done; empty if it did not."""

    notes: list[str] = field(default_factory=list)
    jobs: dict[str, Any] = field(default_factory=dict)
    """Finding on parallel runs, as ``Jobs.summary`` has it."""


class Runner:
    """Carries a plan out in a results folder."""

    def __init__(
        self,
        plan: Plan,
        results: Results,
        jobs: Jobs,
        tell: Callable[[str], None],
        executor: Callable[[], Executor] | None = None,
        carry_out: Callable[[Task], Outcome] = replication.replicate,
        stop: Callable[[], None] = replication.STOP.set,
    ) -> None:
        """Prepare.

        Args:
            plan: what to run.
            results: the folder, locked.
            jobs: how many at a time.
            tell: takes lines for the user.
            executor: makes what runs the replications; threads, each with an engine's process.
            carry_out: what it runs.
            stop: ends what runs, where it runs.

        """
        self.plan = plan
        self.results = results
        self.jobs = jobs
        self.tell = tell
        self.executor = executor or (lambda: ThreadPoolExecutor(MANY))
        self.carry_out = carry_out
        self.stop = stop
        self.here = plan.loaded.file.resolve().parent
        self.experiment = plan.loaded.experiment
        self.keep_free = length_bytes(self.experiment.keep_free)
        self.states = [_CellState(planned, planned.cell.least) for planned in plan.cells]
        self.flying: dict[Future[Outcome], tuple[Task, _CellState, int]] = {}
        self.again: list[tuple[_CellState, int, int]] = []
        self.measured: dict[tuple[Key, str], float | None] = {}
        """Figures of runs that had not been measured when they ended."""

        self.memory = Memory()
        self.began = time.monotonic()
        self.finished_here = 0
        self.busy_s = 0.0
        self.bytes_here = 0
        self.report = Report()
        self.progress = Progress()

    def clean(self) -> None:
        """Delete what an earlier run left incomplete, and what its journal does not know."""
        known = {f"{s}/{c}/{n:04}" for s, c, n in self.results.done}
        runs = self.results.root / "runs"
        for folder in runs.glob("*/*/*"):
            if folder.is_dir() and str(folder.relative_to(runs)) not in known:
                remove(folder)
        for key, entry in list(self.results.done.items()):
            folder = runs / key[0] / key[1] / f"{key[2]:04}"
            if not _is_whole(folder):
                # Deleted or damaged by other hands.
                remove(folder)
                self.results.write("removed", set=key[0], cell=key[1], replication=key[2])
                del entry

    def run(self) -> Report:
        """Run what is not done yet; return what it came to."""
        with open_catalogue(self.results, self._say) as catalogue:
            catalogue.follow(self.results)
            pool = self.executor()
            try:
                self._loop(pool, catalogue)
            except KeyboardInterrupt:
                self.report.stopped = "interrupted"
            finally:
                if self.flying:
                    self.stop()
                self.progress.clear()
                while True:
                    try:
                        while wait(self.flying, timeout=0.5).not_done:
                            pass  # so that signals are heard
                        break
                    except KeyboardInterrupt:  # Ctrl-C once more
                        self.report.stopped = "interrupted"
                        self.tell("airpath run: ending what runs")
                if self.flying and not self.report.stopped:
                    self.report.stopped = "an error"
                try:
                    for future, (task, state, beside) in list(self.flying.items()):
                        if not future.cancelled() and future.exception() is None:
                            self._landed(future.result(), task, state, beside, catalogue)
                finally:
                    pool.shutdown(cancel_futures=True)
                    replication.STOP.clear()
        self._count()
        self.report.jobs = self.jobs.summary()
        return self.report

    def _loop(self, pool: Executor, catalogue: Catalogue) -> None:
        while True:
            if interrupt.asked.is_set():
                raise KeyboardInterrupt
            if not self.report.stopped:
                self._submit(pool)
            if not self.flying:
                return
            done, _ = wait(self.flying, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                task, state, beside = self.flying.pop(future)
                try:
                    outcome = future.result()
                except OSError as error:
                    if error.errno in SHORT and self.flying:
                        self.again.append((state, task.replication, task.attempt))
                        note = self.jobs.short(len(self.flying), str(error.strerror))
                        if note:
                            self._say(note)
                        continue
                    self.report.stopped = (
                        f"{error.filename or self.results.root}: {error.strerror}; "
                        f"mend that and go on with --resume"
                    )
                    self.stop()
                    continue
                self._landed(outcome, task, state, beside, catalogue)
            self.progress.show(self._line)

    def _submit(self, pool: Executor) -> None:
        while self.memory.holds_one_more(len(self.flying)):
            following = self._next()
            if following is None:
                return
            clocks = {task.clock for task, _, _ in self.flying.values()}
            limit = self._limit(clocks | {following[0].planned.cell.clock})
            if len(self.flying) >= limit:
                self.again.insert(0, following)
                return
            free = shutil.disk_usage(self.results.root).free
            if free < self.keep_free + self._typical_bytes() * (len(self.flying) + 1):
                self.report.stopped = (
                    f"{show_bytes(free)} of disk space are left where {self.results.root} is, and "
                    f"{show_bytes(self.keep_free)} shall stay free (keep_free); make room, and go "
                    f"on with --resume"
                )
                return
            state, number, attempt = following
            task = make_task(
                self.experiment, state.planned, number, attempt, self.results.root, self.here
            )
            task = replace(task, side_by_side=limit)
            future = pool.submit(self.carry_out, task)
            self.flying[future] = (task, state, 0)
            # How many ran beside it at most, for each that runs.
            self.flying = {
                f: (t, s, max(beside, len(self.flying)))
                for f, (t, s, beside) in self.flying.items()
            }

    def _limit(self, clocks: set[str]) -> int:
        """Say how many may run; only what runs in real time is disturbed by what is beside it."""
        return self.jobs.now if "live" in clocks else self.jobs.most

    def _next(self) -> tuple[_CellState, int, int] | None:
        if self.again:
            return self.again.pop(0)
        for state in self.states:
            if state.settled:
                continue
            cell = state.planned.cell
            while True:
                while state.following <= state.target:
                    number, state.following = state.following, state.following + 1
                    if (cell.set_name, cell.name, number) not in self.results.done:
                        return state, number, 1
                if not self._grown(state):
                    break
        return None

    def _grown(self, state: _CellState) -> bool:
        """Look at a cell whose replications have all been handed out; say if it wants more."""
        cell = state.planned.cell
        entries = [
            self.results.done.get((cell.set_name, cell.name, n)) for n in range(1, state.target + 1)
        ]
        if any(entry is None for entry in entries):
            return False  # some of them still run
        rule = cell.until
        if rule is None:
            state.settled = True
            return False
        try:
            figures = [
                self._figure(entry, rule.metric)
                for entry in entries
                if entry and entry["status"] == "succeeded"
            ]
            values = [figure for figure in figures if figure is not None]
            problem = "" if values else "no replication that succeeded has a value of it"
        except MetricError as error:
            problem = str(error)
        if problem:
            state.settled = True
            state.note = f"{cell.key}: stopping rule by `{rule.metric}`: {problem}"
        else:
            found = mean_with_half_width(values)
            wanted = float(rule.half_width.strip(" %")) / 100
            more = [n for n in checkpoints(rule.least, rule.most) if n > state.target]
            if found.count >= 2 and found.relative <= wanted:
                state.settled = True
            elif not more:
                state.settled = True
                state.note = (
                    f"{cell.key}: after {state.target} replications the half-width of "
                    f"{rule.metric} is still {found.relative:.1%} of its mean, not "
                    f"{rule.half_width}"
                )
            else:
                state.target = more[0]
                return True
        if state.note:
            self.report.notes.append(state.note)
        return False

    def _figure(self, entry: dict[str, Any], metric: str) -> float | None:
        """Return a metric of a run, measured now if that was not done when it ended."""
        name = metric_of(metric).name
        if name in entry.get("measured", ()):
            return pick(entry["metrics"], metric)
        key: Key = (entry["set"], entry["cell"], entry["replication"])
        if (key, metric) not in self.measured:
            folder = self.results.root / "runs" / key[0] / key[1] / f"{key[2]:04}"
            values, note = measure_aside(folder, needed([metric]))
            if note:
                self._say(f"{key[0]}/{key[1]}/{key[2]:04}: {note}")
            self.measured[key, metric] = pick(values or entry["metrics"], metric)
        return self.measured[key, metric]

    def _landed(
        self, outcome: Outcome, task: Task, state: _CellState, beside: int, catalogue: Catalogue
    ) -> None:
        key: Key = (task.set_name, task.cell, task.replication)
        if outcome.status == "stopped" or key in self.results.done:
            return
        self.finished_here += 1
        self.busy_s += outcome.wall_s
        self.bytes_here += outcome.size_bytes
        where = f"{task.set_name}/{task.cell}/{task.replication:04}"
        note = ""
        if outcome.status != "broken" and task.clock == "live":
            note = self.jobs.judged(outcome.verdict, beside, f"{task.set_name}/{task.cell}")
        if note:
            self._say(note)
        again = (
            outcome.status != "broken"
            and outcome.verdict in NOT_TRUSTED
            and task.clock == "live"
            and task.attempt <= self.experiment.reruns
            and not self.report.stopped
        )
        if again:
            self._say(
                f"{where}: {outcome.verdict}; run again "
                f"({task.attempt} of {self.experiment.reruns} times)"
            )
            self.results.write(
                "rerun",
                set=key[0],
                cell=key[1],
                replication=key[2],
                attempt=task.attempt,
                verdict=outcome.verdict,
            )
            self.jobs.rerun += 1
            self.again.append((state, task.replication, task.attempt + 1))
            return
        self.results.write(
            "done",
            set=key[0],
            cell=key[1],
            replication=key[2],
            digest=task.digest,
            attempt=task.attempt,
            seed=task.seed,
            status=outcome.status,
            verdict=outcome.verdict,
            message=outcome.message,
            wall_s=round(outcome.wall_s, 3),
            size_bytes=outcome.size_bytes,
            metrics=outcome.metrics,
            measured=outcome.measured,
        )
        catalogue.add_folder(self.results.root / "runs" / where)
        if outcome.status != "succeeded":
            self._say(f"{where}: {outcome.status}: {outcome.message}")
        elif outcome.verdict != TRUSTED:
            self._say(f"{where}: {outcome.verdict}")
        if outcome.note:
            self._say(f"{where}: {outcome.note}")

    def _say(self, line: str) -> None:
        self.progress.clear()
        self.tell(line)

    def _typical_bytes(self) -> float:
        """Return the mean size of those of this session, or else of all that there are."""
        if self.finished_here:
            return self.bytes_here / self.finished_here
        sizes = [entry["size_bytes"] for entry in self.results.done.values()]
        return sum(sizes) / len(sizes) if sizes else 0

    def _line(self) -> str:
        done, wanted = self.counts()
        line = f"{done} of {wanted} done, {len(self.flying)} running"
        if self.finished_here:
            left = max(0, wanted - done)
            if self.finished_here >= ENOUGH:
                # What else they take than their own time is in it: measuring, workers, a store.
                each = (time.monotonic() - self.began) / self.finished_here
            else:
                clocks = {s.planned.cell.clock for s in self.states if not s.settled}
                at_once = max(1, min(self._limit(clocks), left))
                each = self.busy_s / self.finished_here / at_once
            line += f", about {show_seconds(left * each)} left"
            if any(not state.settled and state.planned.cell.until for state in self.states):
                line += " or more"
        return line

    def counts(self) -> tuple[int, int]:
        """Return how many replications are done, and how many are wanted for now."""
        done = sum(
            (state.planned.cell.set_name, state.planned.cell.name, number) in self.results.done
            for state in self.states
            for number in range(1, state.target + 1)
        )
        return done, sum(state.target for state in self.states)

    def _count(self) -> None:
        for state in self.states:
            cell = state.planned.cell
            for key, entry in self.results.done.items():
                if key[:2] != (cell.set_name, cell.name):
                    continue
                setattr(self.report, entry["status"], getattr(self.report, entry["status"]) + 1)
                if entry["verdict"] != TRUSTED:
                    self.report.not_trusted += 1
                    folder = cell_folder(self.results.root, cell) / f"{key[2]:04}"
                    self.report.untrusted.append(folder)
            mine = (cell.set_name, cell.name)
            told = [one["metrics"] for key, one in self.results.done.items() if key[:2] == mine]
            # In real time no two are the same.
            if cell.clock != "live" and (said := alike(told)):
                self.report.notes.append(f"{cell.key}: {said}")


def _is_whole(folder: Path) -> bool:
    """Say whether a run has its record and, as every run that was not broken has, its manifest."""
    try:
        about = read_record(folder)
    except RecordError:
        return False
    return about["status"] != "succeeded" or (folder / FILES["manifest"]).is_file()


class Progress:
    """One line that is written over on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        """Begin."""
        self.terminal = sys.stderr.isatty()
        self.began = self.last = time.monotonic()
        self.shown = False
        self._lock = threading.Lock()

    def show(self, tell: Callable[[], str]) -> None:
        """Show how far it is, once that has taken two seconds."""
        now = time.monotonic()
        with self._lock:
            if now - self.began < 2 or now - self.last < (0.2 if self.terminal else 30):
                return
            self.last = now
            line = tell()
            if self.terminal:
                print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)
                self.shown = True
            else:
                print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away before something else is written."""
        with self._lock:
            if self.shown:
                print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
                self.shown = False


def check_same(plan: Plan, results: Results) -> None:
    """Make sure that what is done was done with what the file says now.

    Raises:
        FolderError: a cell was changed since.

    """
    digests = {(p.cell.set_name, p.cell.name): p.digest for p in plan.cells}
    changed = sorted(
        {
            f"{key[0]}/{key[1]}"
            for key, entry in results.done.items()
            if digests.get(key[:2], entry["digest"]) != entry["digest"]
        }
    )
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        message = (
            f"{', '.join(changed[:3])}{more}: changed since results were recorded in "
            f"{results.root} (link, workload, clock or seed); name another folder with --out, or "
            f"remove those results (airpath results {results.root} --set SET --remove)"
        )
        raise FolderError(message)


def prepare_links(plan: Plan, root: Path) -> None:
    """Write the scenarios that stand in the experiment where the engine can read them."""
    from airpath.experiment.links import inline_toml

    for name, network in plan.loaded.experiment.networks.items():
        if network.inline:
            folder = root / "networks"
            make_folder(folder)
            write_whole(folder / f"{name}.toml", inline_toml(network.inline))


def summary(report: Report, place: Path | Url, seconds: float) -> dict[str, Any]:
    """Return a report for programs."""
    return {
        "folder": str(place),
        "succeeded": report.succeeded,
        "failed": report.failed,
        "broken": report.broken,
        "not_trusted": report.not_trusted,
        "stopped": report.stopped or None,
        "notes": report.notes,
        "jobs": report.jobs,
        "wall_s": round(seconds, 3),
    }
