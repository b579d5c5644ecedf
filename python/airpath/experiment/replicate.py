# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One replication: an engine's process, from an empty folder to a recorded result.

``replicate`` takes a picklable task and returns a picklable outcome, so that any
``concurrent.futures.Executor`` can carry it out.
"""

from __future__ import annotations

import fnmatch
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airpath.engine import find_engine
from airpath.experiment import links
from airpath.experiment.metrics import measure_aside, needed
from airpath.experiment.plan import PlannedCell, cell_folder
from airpath.experiment.programs import programs
from airpath.experiment.quantities import length_bytes, time_ns
from airpath.facts import BEFORE_PROGRAMS, FILES

if TYPE_CHECKING:
    from airpath.experiment.model import Experiment

STOP = threading.Event()
"""Set when no replication shall continue: those that run are ended and not recorded."""

PART = ".part"
"""End of the name of a run's folder until it is complete."""

WORK = ".work"
"""End of the name of the folder that the agents work in."""

MATCHER = str(Path(__file__).parent / "matcher.py")
"""Looks for the line of its output by which a program is ready."""

MOST_LAST_WORDS_BYTES = 200
"""Greatest part of a program's last output that the message of its failure repeats."""

JOBS_VARIABLE = "AIRPATH_JOBS"
"""Variable with the number of runs that are active side by side, for the engine."""

GRACE_S = 15
"""Time limit for the server's end to stop its programs and write its record."""


@dataclass(frozen=True)
class Task:
    """All that a replication needs."""

    set_name: str
    cell: str
    replication: int
    attempt: int
    seed: int
    clock: str
    network: str
    workload: str
    parameters: dict[str, Any]
    tags: tuple[str, ...]
    digest: str
    command: tuple[str, ...]
    """The engine's; without --out."""

    here: str
    folder: str
    """Folder in which the run is kept once it is complete."""

    programs: tuple[dict[str, Any], ...]
    output_limit_bytes: int
    wall_limit_s: float
    to_measure: tuple[str, ...]
    """Metrics to measure once it has ended."""

    side_by_side: int = 1
    """Maximum number of parallel replications, this one included."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a replication."""

    status: str
    """succeeded; failed: the workload did; broken: the emulator did; stopped: not recorded."""

    verdict: str
    message: str
    metrics: dict[str, float] = field(default_factory=dict)
    """By full names, as ``airpath.experiment.metrics`` has them."""

    measured: tuple[str, ...] = ()
    """The metrics that were measured, whether they had values or not."""

    note: str = ""
    """Reason that it could not be measured."""

    wall_s: float = 0.0
    size_bytes: int = 0


STOPPED = Outcome("stopped", "unknown", "stopped before its end")


def make_task(
    experiment: Experiment,
    planned: PlannedCell,
    replication: int,
    attempt: int,
    root: Path,
    here: Path,
) -> Task:
    """Return the task of a replication, counted from 1."""
    cell = planned.cell
    workload = cell.workload
    words = links.options(
        experiment.networks[cell.network],
        cell.network_parameters,
        cell.mtu,
        here,
        root.resolve() / "networks" / f"{cell.network}.toml",
    )
    words += ["--seed", str(cell.seed(replication)), "--log", experiment.log, "--json"]
    if experiment.frames is not None:
        words += ["--frames", experiment.frames]
    run: list[dict[str, Any]] = []
    if cell.clock == "virtual":
        command = [find_engine(), "sim", *words]
        for text in workload.virtual:
            command += ["--workload", text]
        command += ["--duration", workload.duration] if workload.duration else []
    else:
        command = [find_engine(), "exec", *words, "--server-grace", f"{GRACE_S} s"]
        command += ["--server-timeout", "60 s"]
        command += ["--cc", cell.congestion_control] if cell.congestion_control else []
        command += ["--lateness-bound", cell.lateness_bound] if cell.lateness_bound else []
        command += ["--economy", cell.economy] if cell.economy else []
        if cell.clock == "warp":
            command += ["--clock", "warp", "--wall-limit", workload.time_limit]
        run = [_specification(program, here) for program in programs(workload)]
    return Task(
        set_name=cell.set_name,
        cell=cell.name,
        replication=replication,
        attempt=attempt,
        seed=cell.seed(replication),
        clock=cell.clock,
        network=cell.network,
        workload=cell.workload_name,
        parameters=cell.parameters,
        tags=cell.tags,
        digest=planned.digest,
        command=tuple(command),
        here=str(here),
        # In full, as the engine works in the folder of the experiment's file.
        folder=str(cell_folder(root.resolve(), cell) / f"{replication:04}"),
        programs=tuple(run),
        output_limit_bytes=length_bytes(workload.output_limit),
        wall_limit_s=time_ns(workload.time_limit) / 1e9,
        to_measure=tuple(
            needed([*experiment.metrics, *([cell.until.metric] if cell.until else [])])
        ),
    )


def _specification(program: Any, here: Path) -> dict[str, Any]:
    ready = None
    if program.ready is not None:
        ready = program.ready.model_dump()
        ready["within_ns"] = time_ns(ready.pop("within"))
    service = program.service if program.service is not None else ready is not None
    command = program.command
    if isinstance(command, str):
        command = ["/bin/sh", "-c", command]
    elif "/" in command[0]:
        # Beside the experiment's file: the program itself starts in a folder of its own.
        command = [str(here / command[0]), *command[1:]]
    return {
        "name": program.name,
        "end": program.end,
        "user": program.user,
        "command": command,
        "start_ns": time_ns(program.start),
        # A service lasts as long as the others.
        "time_limit_ns": 10**18 if service else time_ns(program.time_limit),
        "environment": program.environment,
        "ready": ready,
        "service": service,
        "exit_status": program.exit_status,
        "keep": program.keep,
    }


class Stop(Protocol):
    """Says that no replication shall continue."""

    def is_set(self) -> bool:
        """Return whether those that run shall be ended."""


def replicate(
    task: Task, stop: Stop = STOP, recorded: Task | None = None, *, sync: bool = True
) -> Outcome:
    """Run a replication; its folder is complete, or is not there.

    Args:
        task: what to run.
        stop: ends it.
        recorded: what its record tells of, where paths are other ones here than there.
        sync: whether its folder shall be on the disk when this returns.

    Raises:
        OSError: its folders cannot be written.

    """
    if stop.is_set():
        return STOPPED
    final = Path(task.folder)
    part, work = final.with_name(final.name + PART), final.with_name(final.name + WORK)
    for left in (part, work, final):
        remove(left)
    final.parent.mkdir(parents=True, exist_ok=True)
    work.mkdir()
    began = time.monotonic()
    try:
        command = [*task.command, "--out", str(part)]
        if task.programs:
            command += _ends(task, work)
        status, timed_out = _run(task, command, work, stop)
        if stop.is_set():
            return STOPPED
        outcome = _judge(task, part, work, status, timed_out)
        wall_s = time.monotonic() - began
        metrics, note = _measure(task, part)
        outcome = replace(
            outcome,
            metrics=metrics,
            measured=() if note else task.to_measure,
            note=note,
            wall_s=wall_s,
            size_bytes=_size(part),
        )
        _record(recorded or task, outcome, part)
        if sync:  # before the folder gets its name
            sync_folder(part)
        part.rename(final)
        if sync:
            _sync(final.parent)
        return outcome
    finally:
        remove(work)
        remove(part)


def remove(folder: Path) -> None:
    """Delete a run's folder, if it is there, so that a half-deleted one is never taken for one."""
    if not folder.is_dir():
        return
    if not folder.name.endswith((PART, WORK)):
        doomed = folder.with_name(folder.name + PART)
        if doomed.exists():
            shutil.rmtree(doomed, ignore_errors=True)
        folder.rename(doomed)
        folder = doomed
    shutil.rmtree(folder, ignore_errors=True)


def _ends(task: Task, work: Path) -> list[str]:
    """Write what the agents shall do; return the rest of the engine's command line."""
    ends = {program["end"] for program in task.programs}
    agent = [find_engine(), "agent"]
    patience = sum((p["ready"] or {}).get("within_ns", 0) for p in task.programs) + 20 * 10**9
    for end in ("client", "server"):
        specification = {
            "end": end,
            "folder": str(work.resolve()),
            "alone": "server" not in ends,
            "patience_ns": patience,
            "output_limit_bytes": task.output_limit_bytes,
            "programs": [
                {
                    **program,
                    "ready": _sign(program["ready"]),
                    "directory": str(work.resolve() / "programs" / program["name"]),
                    "environment": {
                        "AIRPATH_EXPERIMENT": task.here,
                        "AIRPATH_SEED": str(task.seed),
                        "AIRPATH_REPLICATION": str(task.replication),
                        **program["environment"],
                    },
                }
                for program in task.programs
                if program["end"] == end
            ],
        }
        (work / f"{end}.specification.json").write_text(json.dumps(specification))
        # A file system without pipes: the agents look for each other's files then.
        with suppress(OSError):
            os.mkfifo(work / f"{end}.bell")
    path = work.resolve()
    words = []
    if "server" in ends:
        # The engine has a shell start it, which need not stay.
        server = shlex.join([*agent, str(path / "server.specification.json")])
        words += ["--server", f"exec {server}"]
    return [*words, "--", *agent, str(path / "client.specification.json")]


def _sign(ready: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return by which sign a program is ready, with programs of the machine that runs it."""
    if ready is None or ready["output"] is None:
        return ready
    return {**ready, "matcher": [sys.executable, "-I", "-S", MATCHER, ready["output"]]}


def _run(task: Task, command: list[str], work: Path, stop: Stop) -> tuple[int, bool]:
    """Run the engine; return its status and whether it took too long."""
    # Summaries of virtual time are on stdout; stdout of other runs is that of programs.
    kept = work / "engine.stdout" if task.clock == "virtual" else Path(os.devnull)
    with (work / "engine.stderr").open("wb") as err, kept.open("wb") as out:
        process = subprocess.Popen(
            # A runner that is killed cannot end its replications any more; the kernel does it.
            [find_engine(), "bound", str(os.getpid()), *command],
            cwd=task.here,
            # The engine's advice goes by it where the run comes out late.
            env={**os.environ, JOBS_VARIABLE: str(task.side_by_side)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        # Warp's own limit comes first; ends get time to say what they were at.
        until = time.monotonic() + task.wall_limit_s + (GRACE_S if task.clock == "warp" else 0)
        timed_out = False
        while True:
            if _has_ended(process, min(0.1, max(0.01, until - time.monotonic()))):
                return process.returncode, timed_out
            timed_out = time.monotonic() > until
            if timed_out or stop.is_set():
                _end(process)
                return process.returncode, timed_out


def _has_ended(process: subprocess.Popen[bytes], patience_s: float) -> bool:
    """Wait for the end of a process for so long; say whether it came.

    Python's own wait with a limit sleeps between looks, 25 ms too long for each short run.
    """
    with suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            select.select([handle], [], [], patience_s)
        except ValueError:  # a descriptor beyond what select takes
            pass
        else:
            return process.poll() is not None
        finally:
            os.close(handle)
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    return process.returncode is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        with suppress(ProcessLookupError):
            process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _judge(task: Task, part: Path, work: Path, status: int, timed_out: bool) -> Outcome:
    """Say what became of it, and gather into the run's folder what belongs there."""
    lines = (work / "engine.stderr").read_text(errors="replace").splitlines()
    # The summary of a live or warp run is a line of its own among the engine's messages.
    written = work / "engine.stdout"
    printed = written.read_text(errors="replace").splitlines() if written.exists() else lines
    summary = next((found for line in reversed(printed) if (found := _summary(line))), {})
    said = "\n".join(line for line in lines if not _summary(line)).strip()
    last = said.splitlines()[-1].removeprefix("airpath: ") if said else ""
    part.mkdir(exist_ok=True)
    if said:
        (part / "engine.stderr").write_text(said + "\n")
    verdict = str((summary.get("verdict") or {}).get("grade", "unknown"))
    if task.clock == "virtual":
        reports = summary.get("workloads") or []
        failures = [
            f"{report.get('name')}: {report.get('outcome')}"
            for report in reports
            if report.get("outcome") != "complete" and status
        ]
    else:
        # The first client, the server, and the clients of other users.
        others = sorted(work.glob("client-*.json"), key=lambda path: int(path.stem.split("-")[1]))
        ends = [_json(path) for path in (work / "client.json", work / "server.json", *others)]
        records = [record for end in ends for record in end.get("programs", [])]
        if (work / "programs").is_dir():
            _keep(task, work / "programs", records)
            (work / "programs").rename(part / "programs")
        workload = {
            "epoch_unix_ns": ends[0].get("epoch_unix_ns"),
            "congestion_control": (_json(part / FILES["manifest"]).get("settings") or {}).get(
                "congestion_control"
            ),
            "failures": [end["failure"] for end in ends if end.get("failure")],
            "programs": records,
        }
        (part / "workload.json").write_text(json.dumps(workload, indent=2) + "\n")
        failures = [str(end["failure"]) for end in ends if end.get("failure")][:1] or [
            f"{record['name']}: {record['reason']}{_last_words(part, record['name'])}"
            for record in records
            if not record["succeeded"]
        ]
        if records and not failures:
            ran = {record["program"] for record in records}
            failures = [
                f"{program['name']}: there is no user `{program['user']}`"
                for program in task.programs
                if program["user"] is not None and program["name"] not in ran
            ]
        if not records and not failures and status not in BEFORE_PROGRAMS:
            failures = [last or "the programs left no record"]
    if timed_out:
        return Outcome("failed", verdict, f"took longer than {task.wall_limit_s:g} s")
    if status < 0:
        # Whatever became of the programs, it was not their doing.
        name = signal.Signals(-status).name
        return Outcome("broken", verdict, f"the engine was ended by {name}")
    if failures:
        return Outcome("failed", verdict, "; ".join(failures))
    if status != 0:
        return Outcome("broken", verdict, last or f"the engine ended with {status}")
    return Outcome("succeeded", verdict, "")


def _measure(task: Task, part: Path) -> tuple[dict[str, float], str]:
    """Return the metrics of a run, and what kept it from being measured."""
    if not (part / FILES["manifest"]).is_file():
        return {}, ""
    metrics, note = measure_aside(part, task.to_measure)
    return metrics, note.replace(str(part), task.folder)


def _last_words(part: Path, program: str) -> str:
    """Return the last line of a program's stderr, which most often says why it failed."""
    try:
        with (part / "programs" / f"{program}.stderr").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return f" ({said[-1]})" if said else ""


def _keep(task: Task, folder: Path, records: list[dict[str, Any]]) -> None:
    """Delete files that the programs left and their `keep` does not name."""
    planned = {program["name"]: program for program in task.programs}
    # Programs that left no record have the folders of their names.
    started = {record["name"]: planned[record["program"]] for record in records}
    for name, program in {**planned, **started}.items():
        own = folder / name
        for path in sorted(own.rglob("*"), reverse=True):
            name = str(path.relative_to(own))
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):
                    path.rmdir()
            elif not any(fnmatch.fnmatch(name, pattern) for pattern in program["keep"]):
                path.unlink()
        with suppress(OSError):
            own.rmdir()


def _record(task: Task, outcome: Outcome, part: Path) -> None:
    about = asdict(task)
    for internal in ("programs", "folder", "output_limit_bytes", "wall_limit_s", "to_measure"):
        about.pop(internal)
    document = {"format_version": 1, **about, **asdict(outcome), "ended_unix_s": time.time()}
    (part / "replication.json").write_text(json.dumps(document, indent=2) + "\n")


def sync_folder(folder: Path) -> None:
    """Have all files of a folder on the disk.

    Raises:
        OSError: one cannot be read, or the disk fails.

    """
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _summary(line: str) -> dict[str, Any]:
    """Return the engine's summary if a line is it, else nothing."""
    if not line.startswith("{"):
        return {}
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) and "verdict" in content else {}
