"""The commands that Python owns, parsed by cyclopts."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from airpath.plots.kinds import ALL
from airpath.plots.timing import KINDS as TIMING

if TYPE_CHECKING:
    from airpath.plots.style import Span

app = App(name="airpath", help="Commands over the files of a run.", help_format="plaintext")
trace = App(name="trace", help="Pictures of traces of rates.", help_format="plaintext")
app.command(trace)
timing = App(name="timing", help="Pictures of sleep methods.", help_format="plaintext")
app.command(timing)

if TYPE_CHECKING:
    from typing import TypeAlias

    Kind: TypeAlias = str
    TimingKind: TypeAlias = str
else:  # what is declared there, and no second list of it
    Kind = Literal[ALL]
    TimingKind = Literal[tuple(TIMING)]
Format = Literal["png", "svg", "pdf"]


def run(arguments: list[str]) -> int:
    """Parse and run one of Python's commands; return its exit status."""
    from airpath import interrupt
    from airpath.commands import EXPERIMENT_COMMANDS

    interrupt.arm()
    if arguments[0] in EXPERIMENT_COMMANDS:
        from airpath.experiment.commands import register

        register(app)
    try:
        result = app(arguments, result_action="return_value")
        # What is still in the buffer would fail where nobody can say of what.
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # airpath … | head
        _discard_output()
        return 1
    except OSError as error:
        # Commands tell of their own files; what comes here has no name: the output.
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        _discard_output()
        print(
            f"airpath {arguments[0]}: output cannot be written: {error.strerror}", file=sys.stderr
        )
        return 1
    return result if isinstance(result, int) else 0


def _discard_output() -> None:
    """Keep the interpreter from writing what is left once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@app.command
def plot(
    directory: Path,
    /,
    *,
    out: Path | None = None,
    file_format: Annotated[
        Literal["png", "svg", "pdf", "xplot"], Parameter(name="--format")
    ] = "png",
    only: Annotated[list[Kind] | None, Parameter(negative="")] = None,
    metrics: Annotated[list[str] | None, Parameter(negative="")] = None,
    include_untrusted: Annotated[bool, Parameter(negative="")] = False,
    jobs: int | None = None,
    begin: Annotated[float | None, Parameter(name="--from")] = None,
    end: Annotated[float | None, Parameter(name="--to")] = None,
) -> int:
    """Draw the pictures of a run, or of sets of replications; print the path of each.

    Args:
        directory: the run's folder, as given to --out of airpath exec, or one with runs below it:
            of those distribution, cdf and courses over time are drawn, by set, and of experiments
            the sweep of each parameter (it alone where there are many sets).
        out: the folder for the pictures; by default the folder plots in the run's.
        file_format: format of the pictures; xplot writes the time-sequence diagrams alone.
        only: draw this kind only; may be given several times.
        metrics: of sets, the metrics to draw, separated by commas (see airpath analyse --list).
        include_untrusted: of sets, keep replications whose verdict is not trusted.
        jobs: processes that measure sets; by default one a processor where there are many runs.
        begin: start of the part to draw, in seconds since the run began.
        end: end of the part to draw, in seconds since the run began.

    """
    from airpath.analysis.command import DAMAGED, plot_sets
    from airpath.analysis.folders import is_run
    from airpath.files import make_folder, told
    from airpath.plots import KINDS, draw
    from airpath.plots.style import Span
    from airpath.run import RunError, load_run

    if begin is not None and end is not None and end <= begin:
        print(f"airpath plot: --to {end:g} must be later than --from {begin:g}", file=sys.stderr)
        return 2
    if file_format == "xplot":
        if any(kind != "time-sequence" for kind in only or []) or metrics:
            print(
                "airpath plot: --format xplot is for --only time-sequence of one run alone; "
                "leave the other kinds and --metrics out, or name another --format",
                file=sys.stderr,
            )
            return 2
        return _plot_xplot(directory, out, Span(begin, end))
    try:
        if directory.is_dir() and not is_run(directory) and any(directory.iterdir()):
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
        sets_only = [kind for kind in only or [] if kind not in KINDS]
        if sets_only or metrics:
            what = f"--only {sets_only[0]}" if sets_only else "--metrics"
            print(
                f"airpath plot: {what} is for sets of runs, and {directory} is one run;"
                f" name the folder above it",
                file=sys.stderr,
            )
            return 2
        pictures = draw(run_folder, only or list(KINDS), Span(begin, end))
        for note in run_folder.notes:
            print(f"airpath plot: {note}", file=sys.stderr)
        if not pictures:
            print(
                f"airpath plot: nothing to draw in {directory}: no packets in its logs"
                f" (run with --log packets or --log events)",
                file=sys.stderr,
            )
            return 1
        target = make_folder(out or directory / "plots")
        for picture in pictures:
            print(picture.save(target, file_format))
    except RunError as error:
        print(f"airpath plot: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"airpath plot: {told(error)}", file=sys.stderr)
        return 1
    return DAMAGED if run_folder.damage else 0


def _plot_xplot(directory: Path, out: Path | None, span: Span) -> int:
    from airpath.analysis.command import DAMAGED
    from airpath.files import make_folder, told
    from airpath.plots import xplot
    from airpath.run import RunError, load_run

    try:
        run_folder = load_run(directory)
        target = make_folder(out or directory / "plots")
        paths = xplot.save(run_folder, target, span=span)
    except RunError as error:
        print(f"airpath plot: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"airpath plot: {told(error)}", file=sys.stderr)
        return 1
    for note in run_folder.notes:
        print(f"airpath plot: {note}", file=sys.stderr)
    for path in paths:
        print(path)
    if not paths:
        print(
            f"airpath plot: {directory} has no TCP transfer in its captures between the times "
            f"that are drawn",
            file=sys.stderr,
        )
        return 1
    return DAMAGED if run_folder.damage else 0


@app.command
def report(
    directories: Annotated[list[Path], Parameter(required=True)],
    /,
    *,
    out: Path | None = None,
    title: str | None = None,
    pictures: int = 4,
    figures: Path | None = None,
    file_format: Annotated[Format, Parameter(name="--format")] = "png",
    csv: Path | None = None,
    xplot: Path | None = None,
    experiment: Path | None = None,
) -> int:
    """Write one page of HTML about runs, complete in itself; print its path.

    For example: airpath report results/gprs --out gprs.html --figures figures --format pdf

    Args:
        directories: folders of runs, or folders with runs in them, such as replications.
        out: the page; by default report.html in the folder, or here if several are given.
        title: its title; by default what the experiment says, or the names of the scenarios.
        pictures: how many runs have their pictures on it, from the first on.
        figures: a folder into which all pictures are written as files too.
        file_format: their format.
        csv: a folder for the values of all runs, the figures of sets and comparisons, as CSV.
        xplot: a folder for a time-sequence diagram of each TCP transfer, as xplot reads it.
        experiment: an experiment's file whose notes, references and report keys are shown, instead
            of the copy in the folder of results.

    """
    from airpath.report.command import write

    return write(
        directories,
        out=out,
        title=title,
        pictures=pictures,
        figures=figures,
        file_format=file_format,
        csv=csv,
        xplot=xplot,
        experiment=experiment,
    )


@app.command
def analyse(
    directories: Annotated[list[Path] | None, Parameter(negative="")] = None,
    /,
    *,
    metrics: Annotated[list[str] | None, Parameter(negative="")] = None,
    list_metrics: Annotated[bool, Parameter(name="--list", negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
    csv: Annotated[bool, Parameter(negative="")] = False,
    compare: Annotated[tuple[str, str] | None, Parameter(negative="")] = None,
    include_untrusted: Annotated[bool, Parameter(negative="")] = False,
    jobs: int | None = None,
) -> int:
    """Measure runs: metrics of each, figures of sets of replications, comparisons of two sets.

    Example: airpath analyse results/ --compare reno cubic --metrics transfer_time,goodput

    Args:
        directories: folders of runs, of replications, or of sets of replications.
        metrics: names, separated by commas; rtt* for all that begin so, all for all.
        list_metrics: list all metrics with their definitions, and do nothing else.
        json: print values, figures and notes as JSON.
        csv: print the values (with --compare the comparison) as CSV, one a line.
        compare: two sets to compare, paired by seed where they share seeds.
        include_untrusted: keep replications of a set whose verdict is not trusted.
        jobs: processes that measure; by default one a processor where there are many runs.

    """
    if list_metrics:
        from airpath.analysis.text import metrics_text

        print(metrics_text())
        return 0
    if not directories:
        print("airpath analyse: name at least one folder of runs", file=sys.stderr)
        return 2
    from airpath.analysis import command

    return command.analyse(
        directories,
        metrics=metrics,
        as_json=json,
        as_csv=csv,
        sets=compare,
        include_untrusted=include_untrusted,
        jobs=jobs,
    )


@trace.command(name="plot")
def trace_plot(
    files: Annotated[list[Path], Parameter(required=True)],
    /,
    *,
    out: Path = Path("rate.png"),
    bin_width: Annotated[str, Parameter(name="--bin")] = "100 ms",
) -> int:
    """Draw the rate of traces over time, one panel each; print the path of the picture.

    Args:
        files: traces in any format that airpath trace show reads.
        out: the picture; its suffix (.png, .svg, .pdf) is its format.
        bin_width: over how long opportunities of mm-link are counted to become a rate.

    """
    from airpath.engine import EngineError
    from airpath.files import make_folder, told
    from airpath.plots import rate_trace

    if out.suffix not in (".png", ".svg", ".pdf"):
        print(f"airpath trace plot: --out {out} must end with .png, .svg or .pdf", file=sys.stderr)
        return 2
    try:
        traces = [(file.name, rate_trace.read(file, bin_width)) for file in files]
        picture = rate_trace.draw(traces)
        make_folder(out.parent)
        print(picture.save(out.parent, out.suffix[1:], name=out.stem))
    except rate_trace.TraceError as error:
        print(error, file=sys.stderr)
        return 2
    except (EngineError, OSError) as error:
        what = told(error) if isinstance(error, OSError) else error
        print(f"airpath trace plot: {what}", file=sys.stderr)
        return 1
    return 0


@timing.command(name="plot")
def timing_plot(
    directories: Annotated[list[Path], Parameter(required=True)],
    /,
    *,
    out: Path | None = None,
    file_format: Annotated[Format, Parameter(name="--format")] = "png",
    only: Annotated[list[TimingKind] | None, Parameter(negative="")] = None,
) -> int:
    """Draw the pictures of measurements, side by side; print the path of each.

    For example: airpath timing plot quiet/ loaded/ --out figures --format pdf

    Args:
        directories: folders of measurements, as given to --out of airpath timing.
        out: the folder for the pictures; by default the folder plots in the first measurement's.
        file_format: format of the pictures.
        only: draw this kind only; may be given several times.

    """
    from airpath.files import make_folder
    from airpath.plots.timing import draw, nothing
    from airpath.timing import TimingError, load_report

    target = out or directories[0] / "plots"
    try:
        reports = [load_report(directory) for directory in directories]
        make_folder(target)
        drawn = 0
        for kind in only or TIMING:
            pictures = draw(reports, [kind])
            drawn += len(pictures)
            for picture in pictures:
                print(picture.save(target, file_format), flush=True)
            if not pictures and only:
                print(f"airpath timing plot: {nothing(kind)}", file=sys.stderr)
    except TimingError as error:
        print(f"airpath timing plot: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `airpath timing plot … | head`
        return _nobody_reads()
    except OSError as error:
        place = error.filename or target
        print(
            f"airpath timing plot: cannot write {place}: {error.strerror}; "
            f"make room or give the right to write there, or name another folder with --out",
            file=sys.stderr,
        )
        return 1
    if not drawn and not only:
        print(
            "airpath timing plot: nothing to draw: no way of sleeping was available",
            file=sys.stderr,
        )
    return 0 if drawn else 1


@timing.command(name="table")
def timing_table(directories: Annotated[list[Path], Parameter(required=True)], /) -> int:
    """Print measurements as tables in Markdown, beside those of Gurtov 1999.

    For example: airpath timing table quiet/ loaded/ > timing.md

    Args:
        directories: folders of measurements, as given to --out of airpath timing.

    """
    from airpath.timing import TimingError, load_report
    from airpath.timing_table import tables

    try:
        print(tables([load_report(directory) for directory in directories]), end="", flush=True)
    except TimingError as error:
        print(f"airpath timing table: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `airpath timing table … | head`
        return _nobody_reads()
    except OSError as error:
        print(
            f"airpath timing table: cannot write to standard output: {error.strerror}",
            file=sys.stderr,
        )
        return 1
    return 0


def _nobody_reads() -> int:
    """Let what is still buffered go nowhere: whoever read has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
