"""The commands that Python owns, parsed by cyclopts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(name="airpath", help="Commands over the files of a run.", help_format="plaintext")
trace = App(name="trace", help="Pictures of traces of rates.", help_format="plaintext")
app.command(trace)

Kind = Literal["time-sequence", "throughput", "queue", "delay"]


def run(arguments: list[str]) -> int:
    """Parse and run one of Python's commands; return its exit status."""
    from airpath.commands import EXPERIMENT_COMMANDS

    if arguments[0] in EXPERIMENT_COMMANDS:
        from airpath.experiment.commands import register

        register(app)
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
    begin: Annotated[float | None, Parameter(name="--from")] = None,
    end: Annotated[float | None, Parameter(name="--to")] = None,
) -> int:
    """Draw the pictures of a run; print the path of each.

    Args:
        directory: the run's folder, as given to --out of airpath exec.
        out: the folder for the pictures; by default the folder plots in the run's.
        file_format: format of the pictures.
        only: draw this kind only; may be given several times.
        begin: start of the part to draw, in seconds since the run began.
        end: end of the part to draw, in seconds since the run began.

    """
    from airpath.plots import KINDS, draw
    from airpath.plots.style import Span
    from airpath.run import RunError, load_run

    if begin is not None and end is not None and end <= begin:
        print(f"airpath plot: --to {end:g} must be later than --from {begin:g}", file=sys.stderr)
        return 2
    try:
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
