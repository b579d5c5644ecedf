"""The commands over experiments: run, plan, check, results and the schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from airpath import interrupt
from airpath.engine import EngineError, find_engine
from airpath.experiment.folder import FolderError, open_results
from airpath.experiment.jobs import Jobs
from airpath.experiment.load import ExperimentError, load
from airpath.experiment.plan import Plan, make_plan
from airpath.experiment.quantities import counted, show_bytes, show_seconds
from airpath.files import told

Names = Annotated[list[str] | None, Parameter(negative="")]
Flag = Annotated[bool, Parameter(negative="")]

STATUS_PROBLEM = 2
STATUS_INCOMPLETE = 1
STATUS_INTERRUPTED = 130


def register(app: App) -> None:
    """Add the commands to the command line, once in a process."""
    if "run" in app:
        return
    app.command(run)
    app.command(plan)
    app.command(check)
    app.command(results)
    app.command(schema)


def _fail(command: str, error: object, status: int = STATUS_PROBLEM) -> int:
    text = str(error)
    print(text if ".toml:" in text else f"airpath {command}: {text}", file=sys.stderr)
    return status


class _Checking:
    """Says how far checking is, on a terminal, once that has taken two seconds."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.shown = False

    def __call__(self, done: int, of: int) -> None:
        if sys.stderr.isatty() and time.monotonic() - self.began > 2:
            print(f"\rchecking cell {done + 1} of {of}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def end(self) -> None:
        if self.shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _plan(file: Path, only: list[str] | None) -> Plan:
    progress = _Checking()
    try:
        return make_plan(load(file), only or [], progress)
    finally:
        progress.end()


def run(
    file: Path,
    /,
    *,
    only: Names = None,
    jobs: str = "auto",
    resume: Flag = False,
    out: Path | None = None,
    manual: Flag = False,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run the sets of an experiment, unattended.

    Exit status: 0 if every replication succeeded, 1 if some did not or it could not go on, 2 if
    the file or the folder is wrong, 130 after Ctrl-C. --resume goes on where it was broken off.

    Args:
        file: the experiment.
        only: run this set only; may be given several times.
        jobs: how many replications at a time: a number, or auto for as many as keep verdicts
            trusted, found by trying.
        resume: go on with what the folder holds; nothing is run twice.
        out: the folder of results; by default results/NAME.
        manual: bring up the network of a set's first cell, and take commands from the terminal.
        json_: print what it came to as JSON.

    """
    from airpath.experiment.conduct import runner_in, usual_folder
    from airpath.experiment.runner import summary

    try:
        how_many = Jobs.of(jobs)
        made = _plan(file, only)
    except (ExperimentError, EngineError, ValueError) as error:
        return _fail("run", error)
    if manual:
        from airpath.experiment.manual import run_manually

        try:
            with interrupt.raised():
                return run_manually(made, out)
        except KeyboardInterrupt:
            return STATUS_INTERRUPTED
        except (FolderError, EngineError, OSError) as error:
            return _fail("run", error)
    if made.missing:
        for line in made.missing:
            print(f"airpath run: {line}", file=sys.stderr)
        return STATUS_PROBLEM
    root = out or usual_folder(made)
    began = time.monotonic()
    try:
        # Signals are looked for between steps, so that none of them is left half-done.
        with (
            interrupt.noted(lambda: _tell("airpath run: ending what runs")),
            runner_in(root, made, how_many, _tell, resume=resume) as runner,
        ):
            report = runner.run()
    except (FolderError, EngineError) as error:
        return _fail("run", error)
    except OSError as error:
        where = "" if error.filename else f"{root}: "
        return _fail("run", f"{where}{told(error)}", STATUS_INCOMPLETE)
    seconds = time.monotonic() - began
    for note in report.notes:
        print(f"airpath run: {note}", file=sys.stderr)
    if json_:
        print(json.dumps(summary(report, root, seconds)))
    else:
        words = [f"{report.succeeded} succeeded"]
        words += [f"{report.failed} failed"] if report.failed else []
        words += [f"{report.broken} broken"] if report.broken else []
        words += [f"{report.not_trusted} not trusted"] if report.not_trusted else []
        print(f"{', '.join(words)}; {root}, {show_seconds(seconds)}")
        if reason := _why_not_trusted(report.untrusted):
            print(f"not trusted: {reason}")
        if how_many.words():
            print(how_many.words())
    if report.stopped == "interrupted":
        print(
            "airpath run: interrupted; what is complete is kept, --resume goes on", file=sys.stderr
        )
        return STATUS_INTERRUPTED
    if report.stopped:
        return _fail("run", report.stopped, STATUS_INCOMPLETE)
    return STATUS_INCOMPLETE if report.failed or report.broken else 0


def _why_not_trusted(folders: list[Path]) -> str:
    """Say why runs are not trusted, and what to do; empty without any that says so."""
    from airpath.analysis.why import of_runs
    from airpath.run import Run, RunError, load_run

    runs: list[Run] = []
    for folder in folders:
        with suppress(RunError, OSError):
            runs.append(load_run(folder))
    return of_runs(runs)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def plan(
    file: Path,
    /,
    *,
    only: Names = None,
    pilot: Flag = False,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Say what an experiment would run, how long it takes at most, and where that is known.

    Args:
        file: the experiment.
        only: this set only; may be given several times.
        pilot: run the first replication of every cell in a temporary folder, and tell from it how
            long everything takes and how much disk it needs.
        json_: print it as JSON.

    """
    try:
        made = _plan(file, only)
    except (ExperimentError, EngineError) as error:
        return _fail("plan", error)
    pilots: dict[str, Any] = {}
    if pilot:
        if made.missing:
            return _fail("plan", "; ".join(made.missing))
        try:
            with interrupt.raised():
                pilots = _pilot(made)
        except KeyboardInterrupt:
            return STATUS_INTERRUPTED
        except OSError as error:
            return _fail("plan", told(error), STATUS_INCOMPLETE)
    if json_:
        document = made.document()
        for cell in document["cells"]:
            measured = pilots.get(f"{cell['set']}/{cell['cell']}")
            if measured is not None:
                cell["pilot"] = {
                    "status": measured.status,
                    "message": measured.message,
                    "wall_s": round(measured.wall_s, 3),
                    "size_bytes": measured.size_bytes,
                }
        print(json.dumps({**document, "missing": made.missing}))
        return 0
    width = max(len(p.cell.key) for p in made.cells)
    wall = size = 0.0
    for planned in made.cells:
        cell = planned.cell
        count = f"{cell.least}" if cell.least == cell.most else f"{cell.least} to {cell.most}"
        line = f"{cell.key:{width}}  {count:>10} times  {cell.clock}  seeds from {cell.first_seed}"
        measured = pilots.get(cell.key)
        if measured is not None:
            wall += measured.wall_s * cell.most
            size += measured.size_bytes * cell.most
            line += (
                f"  {show_seconds(measured.wall_s)}, {show_bytes(measured.size_bytes)} each"
                if measured.status == "succeeded"
                else f"  {measured.status}: {measured.message}"
            )
        print(line)
    total = f"{made.least}" if made.least == made.most else f"{made.least} to {made.most}"
    print(f"\n{total} replications in {counted(len(made.cells), 'cell')}")
    if pilots:
        free = shutil.disk_usage(Path()).free
        print(
            f"one after the other at most {show_seconds(wall)}; {show_bytes(size)} of disk space, "
            f"of {show_bytes(free)} free here"
        )
    else:
        longest = sum(planned.longest_s * planned.cell.most for planned in made.cells)
        print(
            f"by their time limits at most {show_seconds(longest)}, one after the other; "
            f"--pilot measures time and disk space"
        )
    for line in made.missing:
        print(f"airpath plan: {line}", file=sys.stderr)
    return 0


def _pilot(made: Plan) -> dict[str, Any]:
    from airpath.experiment.replicate import make_task, replicate
    from airpath.experiment.runner import Progress, prepare_links

    here = made.loaded.file.resolve().parent
    measured = {}
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="airpath-pilot-") as folder:
        root = Path(folder)
        prepare_links(made, root)
        for number, planned in enumerate(made.cells, 1):
            progress.show(f"pilot {number} of {len(made.cells)}")
            task = make_task(made.loaded.experiment, planned, 1, 1, root, here)
            measured[planned.cell.key] = replicate(task)
            shutil.rmtree(task.folder, ignore_errors=True)
    progress.clear()
    return measured


def check(
    files: Annotated[list[Path], Parameter(required=True)],
    /,
    *,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Check experiment and scenario files and say what is wrong with them.

    Args:
        files: experiments, or scenarios, which the engine checks.
        json_: print problems as JSON, one object a line.

    """
    from airpath.experiment.detect import is_experiment

    status = 0
    for file in files:
        if not is_experiment(str(file)):
            words = [find_engine(), "check", *(["--json"] if json_ else []), str(file)]
            status = max(status, subprocess.run(words, check=False).returncode)
            continue
        try:
            made = _plan(file, None)
        except EngineError as error:
            return _fail("check", error)
        except ExperimentError as error:
            status = max(status, 1)  # as the engine does for scenarios
            for problem in error.problems:
                if json_:
                    print(
                        json.dumps(
                            {"file": problem.file, "line": problem.line, "message": problem.what}
                        )
                    )
                else:
                    print(problem, file=sys.stderr)
            continue
        if not json_:
            sets = len({p.cell.set_name for p in made.cells})
            print(f"{file}: right; {counted(sets, 'set')}, {counted(len(made.cells), 'cell')}")
        for line in made.missing:
            print(f"{file}: on this machine: {line}", file=sys.stderr)
    return status


def schema(*, experiment: Flag = False) -> int:
    """Print the JSON Schema of experiment files (without --experiment the engine's, of scenarios).

    Args:
        experiment: that of experiment files.

    """
    from airpath.experiment.model import schema as made

    assert experiment, "the engine prints the other"
    print(json.dumps(made(), indent=2, sort_keys=True))
    return 0


def results(
    directory: Path | None = None,
    /,
    *,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    cell: Names = None,
    verdict: Names = None,
    status: Names = None,
    tag: Names = None,
    where: Names = None,
    metric: Names = None,
    runs: Flag = False,
    compare: Annotated[tuple[str, str] | None, Parameter(negative="")] = None,
    add_tag: Names = None,
    remove_tag: Names = None,
    remove: Flag = False,
    yes: Flag = False,
    rebuild: Flag = False,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """List, filter, compare, tag and remove results of experiments.

    Without a folder, list the folders of results beneath results/.

    Args:
        directory: the folder of results, as given to --out of airpath run.
        set_: runs of this set only; may be given several times, as may the other filters.
        cell: runs of this cell.
        verdict: runs of this verdict: trusted, suspect, invalid or unknown.
        status: runs of this status: succeeded, failed or broken.
        tag: runs with this tag.
        where: runs for which a comparison of a metric, parameter or column holds, such as
            'elapsed < 20'.
        metric: show this metric of airpath analyse --list, NAME or NAME/PLACE (goodput/downlink);
            by default elapsed and goodput. What has not been measured yet is.
        runs: list every run instead of a line for each cell.
        compare: two cells (SET/CELL) to compare, replication by replication.
        add_tag: give the selected runs this tag.
        remove_tag: take this tag from the selected runs.
        remove: delete the selected runs and their folders.
        yes: delete without asking.
        rebuild: build the catalogue anew from the folders first, and what is damaged of the
            journal.
        json_: print JSON, one object a line.

    """
    from airpath.experiment.catalogue import Filter, FilterError
    from airpath.experiment.listing import Request, carry_out, list_folders
    from airpath.experiment.metrics import MetricError

    if directory is None:
        return list_folders(Path("results"), json_)
    request = Request(
        which=Filter(
            sets=set_ or (),
            cells=cell or (),
            verdicts=verdict or (),
            statuses=status or (),
            tags=tag or (),
            where=where or (),
        ),
        metrics=metric or [],
        runs=runs,
        compare=compare,
        add_tags=add_tag or [],
        remove_tags=remove_tag or [],
        remove=remove,
        yes=yes,
        rebuild=rebuild,
        as_json=json_,
    )
    try:
        return carry_out(open_results(directory, damaged=rebuild), request)
    except (FolderError, FilterError, MetricError) as error:
        return _fail("results", error)
    except OSError as error:
        if error.filename is None:  # of the output, of which all commands tell alike
            raise
        return _fail("results", told(error), STATUS_INCOMPLETE)
