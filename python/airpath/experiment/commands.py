# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands over experiments: run, plan, results and the schema."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.engine import EngineError
from airpath.experiment.executors import ExecutorError
from airpath.experiment.folder import FolderError, open_results
from airpath.experiment.jobs import Jobs
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.planned import plan_of
from airpath.experiment.quantities import counted, show_bytes, show_seconds
from airpath.files import told
from airpath.status import (
    DONE,
    INTERRUPTED,
    LACKING,
    UNDONE,
    UNWRITABLE,
    fail,
    status_of,
)
from airpath.store.errors import StoreError
from airpath.store.fetch import fetched
from airpath.store.keeper import kept_in
from airpath.store.mirror import folder_of
from airpath.store.url import Url

if TYPE_CHECKING:
    from airpath.experiment.judgement import Judging
    from airpath.experiment.plan import Plan


def _fail(command: str, error: Exception) -> int:
    """Tell an error; one in a file begins with its name and line, as those of compilers do."""
    if isinstance(error, ExperimentError):
        print(error, file=sys.stderr)
        return status_of(error)
    return fail(command, error)


def run(
    file: Path,
    *,
    only: list[str] | None,
    jobs: str,
    executor: str,
    resume: bool,
    out: Path | Url | None,
    manual: bool,
    expect: list[str] | None,
    strict: bool,
    junit: Path | None,
    summary: Path | None,
    json_: bool,
) -> int:
    """Carry ``airpath run`` out."""
    from airpath.experiment.conduct import runner_in, usual_folder
    from airpath.experiment.judgement import Judging
    from airpath.experiment.runner import summary as in_short

    judging = Judging(expect or (), strict, junit, summary)
    try:
        how_many = Jobs.of(jobs)
        made = plan_of(file, only)
        judging.check(
            {name for planned in made.cells for name in planned.cell.parameters}, made.words
        )
    except (ExperimentError, EngineError, ValueError) as error:
        return _fail("run", error)
    if manual:
        from airpath.experiment.manual import run_manually

        if isinstance(out, Url):
            return fail("run", f"--manual writes to a folder: {out} is a URL")
        try:
            with interrupt.raised():
                return run_manually(made, out)
        except KeyboardInterrupt:
            return INTERRUPTED
        except (FolderError, EngineError, OSError) as error:
            return _fail("run", error)
    if made.missing:
        for line in made.missing:
            print(f"airpath run: {line}", file=sys.stderr)
        return LACKING
    place = out or usual_folder(made)
    root = folder_of(place) if isinstance(place, Url) else place
    began = time.monotonic()
    try:
        # Signals are looked for between steps, so that none of them is left half-done.
        with (
            interrupt.noted(lambda: _tell("airpath run: ending what runs")),
            runner_in(place, made, how_many, _tell, resume=resume, executor=executor) as runner,
        ):
            report = runner.run()
    except (ExecutorError, FolderError, EngineError) as error:
        return _fail("run", error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except StoreError as error:
        return _fail("run", error)
    except OSError as error:
        where = "" if error.filename else f"{place}: "
        return fail("run", f"{where}{told(error)}", UNWRITABLE)
    seconds = time.monotonic() - began
    for note in report.notes:
        print(f"airpath run: {note}", file=sys.stderr)
    if json_:
        print(json.dumps(in_short(report, place, seconds)))
    else:
        words = [f"{report.succeeded} succeeded"]
        words += [f"{report.failed} failed"] if report.failed else []
        words += [f"{report.broken} broken"] if report.broken else []
        words += [f"{report.not_trusted} not trusted"] if report.not_trusted else []
        print(f"{', '.join(words)}; {place}, {show_seconds(seconds)}")
        if reason := _why_not_trusted(report.untrusted):
            print(f"not trusted: {reason}")
        if how_many.words():
            print(how_many.words())
    is_well = not judging or _judge(root, made, judging, report.stopped)
    if report.stopped == "interrupted":
        print(
            "airpath run: interrupted; what is complete is kept, --resume goes on", file=sys.stderr
        )
        return INTERRUPTED
    if report.stopped:
        return fail("run", report.stopped, UNDONE)
    return UNDONE if report.failed or report.broken or not is_well else DONE


def _judge(root: Path, made: Plan, judging: Judging, stopped: str) -> bool:
    """Judge the runs of an experiment's sets; say whether all is well."""
    from airpath.experiment.catalogue import Filter, FilterError
    from airpath.experiment.judgement import judge_results

    sets = tuple(dict.fromkeys(planned.cell.set_name for planned in made.cells))
    try:
        return judge_results(
            open_results(root),
            Filter(sets=sets),
            judging,
            lambda line: _tell(f"airpath run: {line}"),
            stopped,
        )
    except (FolderError, FilterError, OSError) as error:
        _fail("run", error)
    return False


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


def plan(file: Path, *, only: list[str] | None, pilot: bool, json_: bool) -> int:
    """Carry ``airpath plan`` out."""
    try:
        made = plan_of(file, only)
    except (ExperimentError, EngineError) as error:
        return _fail("plan", error)
    pilots: dict[str, Any] = {}
    if pilot:
        if made.missing:
            return fail("plan", "; ".join(made.missing), LACKING)
        try:
            with interrupt.raised():
                pilots = _pilot(made)
        except KeyboardInterrupt:
            return INTERRUPTED
        except OSError as error:
            return fail("plan", error, UNWRITABLE)
    longest_s = sum(planned.longest_s * planned.cell.most for planned in made.cells)
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
        told = {**document, "longest_s": round(longest_s, 3), "missing": made.missing}
        print(json.dumps(told))
        return DONE
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
        print(
            f"by their time limits at most {show_seconds(longest_s)}, one after the other; "
            f"--pilot measures time and disk space"
        )
    for line in made.missing:
        print(f"airpath plan: {line}", file=sys.stderr)
    return DONE


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
            progress.show(partial("pilot {} of {}".format, number, len(made.cells)))
            task = make_task(made.loaded.experiment, planned, 1, 1, root, here)
            measured[planned.cell.key] = replicate(task)
            shutil.rmtree(task.folder, ignore_errors=True)
    progress.clear()
    return measured


def schema(*, experiment: bool) -> int:
    """Carry ``airpath schema --experiment`` out."""
    from airpath.experiment.model import schema as made

    assert experiment, "the engine prints the other"
    print(json.dumps(made(), indent=2, sort_keys=True))
    return DONE


def results(
    directory: Path | Url | None,
    *,
    set_: list[str] | None,
    cell: list[str] | None,
    verdict: list[str] | None,
    status: list[str] | None,
    tag: list[str] | None,
    where: list[str] | None,
    metric: list[str] | None,
    runs: bool,
    compare: tuple[str, str] | None,
    add_tag: list[str] | None,
    remove_tag: list[str] | None,
    remove: bool,
    yes: bool,
    rebuild: bool,
    expect: list[str] | None,
    strict: bool,
    junit: Path | None,
    summary: Path | None,
    json_: bool,
) -> int:
    """Carry ``airpath results`` out."""
    from airpath.experiment.catalogue import Filter, FilterError
    from airpath.experiment.judgement import Judging
    from airpath.experiment.listing import Request, carry_out, list_folders
    from airpath.experiment.metrics import MetricError

    judging = Judging(expect or (), strict, junit, summary)
    if judging and (directory is None or remove):
        what = "--remove" if remove else "the list of directories"
        return fail("results", f"{what} takes no --expect, --strict, --junit or --summary")
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
        judging=judging,
    )
    try:
        if not isinstance(directory, Url):
            return carry_out(open_results(directory, damaged=rebuild), request)
        if not request.changes:
            (folder,) = fetched([directory], "results")
            return carry_out(open_results(folder), request)
        with kept_in(directory, "results") as keeper:
            how = carry_out(open_results(keeper.mirror.folder, damaged=rebuild), request)
            keeper.mirror.push()
        return how
    except (FolderError, FilterError, MetricError) as error:
        return _fail("results", error)
    except OSError as error:
        if error.filename is None:  # of the output, of which all commands tell alike
            raise
        return _fail("results", error)
