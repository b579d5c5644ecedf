"""The commands that Python owns, parsed by cyclopts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(name="airpath", help="Commands over the files of a run.", help_format="plaintext")
trace = App(name="trace", help="Pictures of traces of rates.", help_format="plaintext")
app.command(trace)

Kind = Literal[
    "time-sequence", "throughput", "queue", "delay", "distribution", "cdf", "goodput-course"
]


def run(arguments: list[str]) -> int:
    """Parse and run one of Python's commands; return its exit status."""
    result = app(arguments, result_action="return_value")
    return result if isinstance(result, int) else 0


@app.command
def plot(
    directory: Path,
    /,
    *,
    out: Path | None = None,
    file_format: Annotated[Literal["png", "svg", "pdf"], Parameter(name="--format")] = "png",
    only: Annotated[list[Kind] | None, Parameter(negative="")] = None,
    metrics: Annotated[list[str] | None, Parameter(negative="")] = None,
    include_untrusted: Annotated[bool, Parameter(negative="")] = False,
    begin: Annotated[float | None, Parameter(name="--from")] = None,
    end: Annotated[float | None, Parameter(name="--to")] = None,
) -> int:
    """Draw the pictures of a run, or of sets of replications; print the path of each.

    Args:
        directory: the run's folder, as given to --out of airpath exec, or one with runs below it:
            of those distribution, cdf and goodput-course are drawn, by set.
        out: the folder for the pictures; by default the folder plots in the run's.
        file_format: format of the pictures.
        only: draw this kind only; may be given several times.
        metrics: of sets, the metrics to draw, separated by commas (see airpath analyse --list).
        include_untrusted: of sets, keep replications whose verdict is not trusted.
        begin: start of the part to draw, in seconds since the run began.
        end: end of the part to draw, in seconds since the run began.

    """
    from airpath.analysis.command import plot_sets
    from airpath.analysis.folders import is_run
    from airpath.plots import KINDS, draw
    from airpath.plots.style import Span
    from airpath.run import RunError, load_run

    if begin is not None and end is not None and end <= begin:
        print(f"airpath plot: --to {end:g} must be later than --from {begin:g}", file=sys.stderr)
        return 2
    try:
        if directory.is_dir() and not is_run(directory) and any(directory.iterdir()):
            return plot_sets(
                directory,
                out=out,
                file_format=file_format,
                only=only,
                metrics=metrics,
                include_untrusted=include_untrusted,
            )
        sets_only = [kind for kind in only or [] if kind not in KINDS]
        if sets_only or metrics:
            what = f"--only {sets_only[0]}" if sets_only else "--metrics"
            print(
                f"airpath plot: {what} is for sets of runs, and {directory} is one run;"
                f" name the folder above it",
                file=sys.stderr,
            )
            return 2
        run_folder = load_run(directory)
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
        target = out or directory / "plots"
        target.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            print(picture.save(target, file_format))
    except (RunError, OSError) as error:
        print(f"airpath plot: {error}", file=sys.stderr)
        return 1
    return 0


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
    from airpath.plots import rate_trace

    if out.suffix not in (".png", ".svg", ".pdf"):
        print(f"airpath trace plot: --out {out} must end with .png, .svg or .pdf", file=sys.stderr)
        return 2
    try:
        traces = [(file.name, rate_trace.read(file, bin_width)) for file in files]
        picture = rate_trace.draw(traces)
        out.parent.mkdir(parents=True, exist_ok=True)
        print(picture.save(out.parent, out.suffix[1:], name=out.stem))
    except rate_trace.TraceError as error:
        print(error, file=sys.stderr)
        return 2
    except (EngineError, OSError) as error:
        print(f"airpath trace plot: {error}", file=sys.stderr)
        return 1
    return 0
