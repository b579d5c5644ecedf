# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands that Python carries out: found, read, run."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.commandline import HelpAsked, UsageError, group_help, parse, unknown_subcommand
from airpath.declarations import DECLARATIONS, GROUPS
from airpath.extras import MissingExtraError, require

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.declaration import Declaration
    from airpath.plots.style import Span
    from airpath.run import Run
    from airpath.store.url import Url


def run(arguments: list[str]) -> int:
    """Parse and run one of Python's commands; return its exit status."""
    from airpath import interrupt
    from airpath.status import DONE, UNWRITABLE

    interrupt.arm()
    name = " ".join(arguments[:2])
    name = name if name in DECLARATIONS else arguments[0]
    try:
        if name in GROUPS:
            result = _tell_of_group(name, arguments[1:])
        else:
            result = _carry_out(DECLARATIONS[name], arguments[len(name.split()) :])
        # What is still in the buffer would fail where nobody can say of what.
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # airpath … | head
        _discard_output()
        return DONE  # as of the engine's commands: whoever read has seen enough
    except OSError as error:
        # Commands tell of their own files; what comes here has no name: the output.
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        _discard_output()
        print(f"airpath {name}: output cannot be written: {error.strerror}", file=sys.stderr)
        return UNWRITABLE
    return result


def _tell_of_group(name: str, words: list[str]) -> int:
    """Print the help of a command that has subcommands alone, or that there is no such one."""
    from airpath.status import DONE, USAGE

    below = [one for one in DECLARATIONS.values() if one.name.startswith(f"{name} ")]
    if words and words[0] not in ("--help", "-h", "help"):
        print(unknown_subcommand(name, words[0], below), file=sys.stderr)
        return USAGE
    print(group_help(name, GROUPS[name], below))
    return DONE if words else USAGE


def _carry_out(command: Declaration, words: list[str]) -> int:
    from airpath.status import DONE, LACKING, USAGE

    try:
        values = parse(command, words)
        require(command.extra, f"airpath {command.name}")
        module, _, name = command.runs.partition(":")
        function: Callable[..., int] = getattr(importlib.import_module(module), name)
        return function(**values)
    except HelpAsked as asked:
        print(asked)
        return DONE
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return LACKING


def _discard_output() -> None:
    """Keep the interpreter from writing what is left once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def plot(
    place: Path | Url,
    *,
    out: Path | None,
    file_format: str,
    only: list[str] | None,
    metrics: list[str] | None,
    include_untrusted: bool,
    jobs: int | None,
    begin: float | None,
    end: float | None,
    user: str | None,
) -> int:
    """Carry ``airpath plot`` out."""
    from airpath.analysis.command import plot_sets
    from airpath.analysis.folders import is_run
    from airpath.files import make_folder
    from airpath.plots import KINDS, draw
    from airpath.plots.kinds import TEXTS, nothing
    from airpath.plots.style import Span
    from airpath.run import RunError, load_run
    from airpath.status import DAMAGED, DONE, UNDONE, fail
    from airpath.store.fetch import fetched

    if begin is not None and end is not None and end <= begin:
        return fail("plot", f"--to {end:g} must be later than --from {begin:g}")
    try:
        (directory,) = fetched([place], "plot")
    except OSError as error:
        return fail("plot", error)
    if directory != place:
        # The folder that mirrors a store is nobody's to look into.
        out = out or Path("plots")
    if file_format in TEXTS:
        kind = TEXTS[file_format]
        if any(each != kind for each in only or []) or metrics:
            return fail(
                "plot",
                f"--format {file_format} is for --only {kind} of one run alone; "
                f"leave the other kinds and --metrics out, or name another --format",
            )
        return _plot_text(directory, out, file_format, Span(begin, end), user)
    try:
        if directory.is_dir() and not is_run(directory) and any(directory.iterdir()):
            if user is not None:
                return fail(
                    "plot",
                    f"--user is for one run, and {directory} has several below it;"
                    f" name the directory of one",
                )
            return plot_sets(
                directory,
                out=out,
                file_format=file_format,
                only=only,
                metrics=metrics,
                include_untrusted=include_untrusted,
                jobs=jobs,
            )
        run_folder = load_run(directory)
        if behind := _behind(run_folder, begin):
            return fail("plot", behind, UNDONE)
        if user is not None:
            run_folder = run_folder.of_user(user)
        sets_only = [kind for kind in only or [] if kind not in KINDS]
        if sets_only or metrics:
            what = f"--only {sets_only[0]}" if sets_only else "--metrics"
            return fail(
                "plot",
                f"{what} is for sets of runs, and {directory} is one run; name the folder above it",
            )
        pictures = draw(run_folder, only or list(KINDS), Span(begin, end))
        for note in run_folder.notes:
            print(f"airpath plot: {note}", file=sys.stderr)
        if not pictures:
            is_part = begin is not None or end is not None
            why = nothing(only or ["throughput"], is_part=is_part)
            return fail("plot", f"nothing to draw in {directory}: {why}", UNDONE)
        target = make_folder(out or directory / "plots")
        for picture in pictures:
            print(picture.save(target, file_format))
    except (RunError, OSError) as error:
        return fail("plot", error)
    return DAMAGED if run_folder.damage else DONE


def _behind(run: Run, begin: float | None) -> str:
    """Say that what is drawn begins behind the end of a run, if it does."""
    from airpath.experiment.quantities import show_exactly, show_span

    begin_ns = round((begin or 0) * 1e9)
    if not 0 < run.duration_ns < begin_ns:
        return ""
    # In the words of `airpath log --from`.
    end = show_span(run.duration_ns)
    return f"the run ended at {end}: there is nothing from --from '{show_exactly(begin_ns)}' on"


_NOTHING = {
    "xplot": "has no TCP transfer in its captures between the times that are drawn",
    "multitracer": "has neither captures nor link.arrow with anything between the times that are "
    "drawn; links with an entity such as rlp leave link.arrow (docs/scenario/radio.md)",
}
"""By the format of texts why a run may have none."""


def _plot_text(
    directory: Path, out: Path | None, file_format: str, span: Span, user: str | None
) -> int:
    from airpath.files import make_folder
    from airpath.run import RunError, contradictions_named, load_run
    from airpath.status import DAMAGED, DONE, UNDONE, fail

    try:
        run_folder = load_run(directory)
        if behind := _behind(run_folder, span.begin):
            return fail("plot", behind, UNDONE)
        if user is not None:
            run_folder = run_folder.of_user(user)
        target = make_folder(out or directory / "plots")
        module = importlib.import_module(f"airpath.plots.{file_format}")
        with contradictions_named(directory):
            paths = module.save(run_folder, target, span=span)
    except (RunError, OSError) as error:
        return fail("plot", error)
    for note in run_folder.notes:
        print(f"airpath plot: {note}", file=sys.stderr)
    for path in paths:
        print(path)
    if not paths:
        return fail("plot", f"{directory} {_NOTHING[file_format]}", UNDONE)
    return DAMAGED if run_folder.damage else DONE


def analyse(
    directories: list[Path | Url] | None,
    *,
    metrics: list[str] | None,
    list_metrics: bool,
    user: str | None,
    json: bool,
    csv: bool,
    compare: tuple[str, str] | None,
    include_untrusted: bool,
    jobs: int | None,
) -> int:
    """Carry ``airpath analyse`` out."""
    from airpath.status import DONE, fail

    if list_metrics:
        from airpath.analysis.text import metrics_text

        print(metrics_text())
        return DONE
    if not directories:
        return fail("analyse", "name at least one folder of runs")
    from airpath.analysis import command
    from airpath.files import told
    from airpath.store.fetch import fetched

    try:
        folders = fetched(directories, "analyse")
    except OSError as error:
        print(f"airpath analyse: {told(error)}", file=sys.stderr)
        return 1
    return command.analyse(
        folders,
        metrics=metrics,
        user=user,
        as_json=json,
        as_csv=csv,
        sets=compare,
        include_untrusted=include_untrusted,
        jobs=jobs,
    )


def trace_plot(files: list[Path], *, out: Path, bin_width: str) -> int:
    """Carry ``airpath trace plot`` out."""
    from airpath.engine import EngineError
    from airpath.files import make_folder
    from airpath.plots import rate_trace
    from airpath.status import DONE, fail

    if out.suffix not in (".png", ".svg", ".pdf"):
        return fail("trace plot", f"--out {out} must end with .png, .svg or .pdf")
    try:
        traces = [(file.name, rate_trace.read(file, bin_width)) for file in files]
        picture = rate_trace.draw(traces)
        make_folder(out.parent)
        print(picture.save(out.parent, out.suffix[1:], name=out.stem))
    except (rate_trace.TraceError, EngineError, OSError) as error:
        return fail("trace plot", error)
    return DONE


def timing_plot(
    directories: list[Path], *, out: Path | None, file_format: str, only: list[str] | None
) -> int:
    """Carry ``airpath timing plot`` out."""
    from airpath.files import make_folder
    from airpath.plots.timing import KINDS, draw, nothing
    from airpath.status import DONE, UNDONE, fail
    from airpath.timing import TimingError, load_report

    target = out or directories[0] / "plots"
    try:
        reports = [load_report(directory) for directory in directories]
        make_folder(target)
        drawn = 0
        for kind in only or KINDS:
            pictures = draw(reports, [kind])
            drawn += len(pictures)
            for picture in pictures:
                print(picture.save(target, file_format), flush=True)
            if not pictures and only:
                print(f"airpath timing plot: {nothing(kind)}", file=sys.stderr)
    except BrokenPipeError:  # `airpath timing plot … | head`
        return _nobody_reads()
    except (TimingError, OSError) as error:
        return fail("timing plot", error)
    if not drawn and not only:
        print(
            "airpath timing plot: nothing to draw: no way of sleeping was available",
            file=sys.stderr,
        )
    return DONE if drawn else UNDONE


def timing_table(directories: list[Path]) -> int:
    """Carry ``airpath timing table`` out."""
    from airpath.status import DONE, UNWRITABLE, fail
    from airpath.timing import TimingError, load_report
    from airpath.timing_table import tables

    try:
        print(tables([load_report(directory) for directory in directories]), end="", flush=True)
    except TimingError as error:
        return fail("timing table", error)
    except BrokenPipeError:  # `airpath timing table … | head`
        return _nobody_reads()
    except OSError as error:
        what = f"cannot write to standard output: {error.strerror}"
        return fail("timing table", what, UNWRITABLE)
    return DONE


def _nobody_reads() -> int:
    """Let what is still buffered go nowhere: whoever read has seen enough."""
    from airpath.status import DONE

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE
