# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of runs and of sets as figures, of every kind that ``airpath plot`` draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath import plots
from airpath.analysis.folders import Replication
from airpath.analysis.statistics import summarise
from airpath.api.collection import gather, warn
from airpath.api.tables import names
from airpath.experiment.about import parameters_of_sets
from airpath.nearest import nearest
from airpath.plots import kinds, sets, sweeps
from airpath.plots.style import Span
from airpath.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from airpath.api.collection import RunsLike
    from airpath.plots.style import Picture


class PlotError(ValueError):
    """Nothing can be drawn of what was asked for; the message says why."""


def plot(
    what: RunsLike,
    kind: str,
    *,
    which: int | str = 0,
    metrics: str | Sequence[str] | None = None,
    over: str | None = None,
    begin_s: float | None = None,
    end_s: float | None = None,
    include_untrusted: bool = False,
) -> Figure:
    """Draw one picture; a notebook shows it when it is a cell's last value.

    Args:
        what: one run for time-sequence, throughput, queue, delay, tcp-state, link; several for
            distribution (boxes with every point), cdf, courses (median and band), sweep. A wrong
            name is answered by the nearest; docs/python.md has all.
        kind: one of these names.
        which: of a kind with several pictures (a run's flows, a queue in packets and in bytes) the
            number from 0, or the name that ``pictures`` gives it.
        metrics: of sets, what to draw, as for ``frame``.
        over: of a sweep, the parameter on the axis; needless where only one was swept.
        begin_s: of a run, start of the part to draw, in seconds since the run began.
        end_s: of a run, end of the part to draw.
        include_untrusted: of sets, keep replications whose verdict is not trusted; otherwise they
            are left out with a warning.

    Raises:
        PlotError: there is no such kind (the message names the nearest), it is not for what was
            given, or there is nothing to draw.
        RunError: a run could not be read.
        UnknownMetricError: a name is no metric's.

    """
    drawn = pictures(
        what,
        kind,
        metrics=metrics,
        over=over,
        begin_s=begin_s,
        end_s=end_s,
        include_untrusted=include_untrusted,
    )
    if isinstance(which, int):
        if not 0 <= which < len(drawn):
            message = f"which={which}: {kind} has {len(drawn)} pictures, numbered from 0"
            raise PlotError(message)
        return list(drawn.values())[which]
    if which not in drawn:
        message = f"which={which!r}: there is no such picture{nearest(which, drawn)}"
        raise PlotError(message)
    return drawn[which]


def pictures(
    what: RunsLike,
    kind: str,
    *,
    metrics: str | Sequence[str] | None = None,
    over: str | None = None,
    begin_s: float | None = None,
    end_s: float | None = None,
    include_untrusted: bool = False,
) -> dict[str, Figure]:
    """Draw all pictures of a kind, by name; arguments and errors are those of ``plot``."""
    if kind not in kinds.ALL:
        message = f"there is no kind of picture {kind!r}{nearest(kind, kinds.ALL)}"
        raise PlotError(message)
    if begin_s is not None and end_s is not None and end_s <= begin_s:
        message = f"end_s={end_s:g} must be later than begin_s={begin_s:g}"
        raise PlotError(message)
    if kind in kinds.RUN:
        _refuse(kind, "sets of runs", metrics=metrics, over=over)
        run = _one_run(what, kind)
        drawn = plots.draw(run, [kind], Span(begin_s, end_s))
        warn(run.notes)
        is_part = begin_s is not None or end_s is not None
        nothing = f"{run.directory} has {kinds.nothing([kind], is_part=is_part)}"
    else:
        _refuse(kind, "one run", begin_s=begin_s, end_s=end_s)
        runs = _many(what, kind)
        nothing = "these runs have no values of it, or all were left out (include_untrusted)"
        if kind == kinds.SWEEP:
            drawn = _sweep(runs, names(metrics), over, include_untrusted)
        else:
            _refuse(kind, "sweep", over=over)
            notes: list[str] = []
            drawn = sets.of_runs(
                runs, [kind], names(metrics), include_untrusted=include_untrusted, notes=notes
            )
            warn(notes)
    if not drawn:
        message = f"nothing to draw of {kind}: {nothing}"
        raise PlotError(message)
    return {picture.name: picture.figure for picture in drawn}


def _refuse(kind: str, whose: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            message = f"{name} is for pictures of {whose}, and {kind} is none"
            raise PlotError(message)


def _one_run(what: RunsLike, kind: str) -> Run:
    found = gather(what)
    if len(found) > 1:
        message = (
            f"{kind} is a picture of one run, and {len(found)} were given; name one, such as "
            f"runs[0]; of several there are: {', '.join((*kinds.SETS, kinds.SWEEP))}"
        )
        raise PlotError(message)
    one = found[0]
    return one if isinstance(one, Run) else one.run


def _many(what: RunsLike, kind: str) -> list[Replication]:
    found = gather(what)
    if len(found) < 2:
        message = (
            f"{kind} is a picture of sets of runs, and one run was given; of one there are: "
            f"{', '.join(kinds.RUN)}"
        )
        raise PlotError(message)
    return [one if isinstance(one, Replication) else _place(one) for one in found]


def _place(run: Run) -> Replication:
    folder = run.directory.resolve()
    return Replication(folder.parent.name, folder.name, run.directory)


def _sweep(
    runs: list[Replication], metrics: list[str], over: str | None, include_untrusted: bool
) -> list[Picture]:
    parameters = parameters_of_sets((one.set_name, one.directory) for one in runs)
    swept = list(sweeps.swept(parameters))
    if not swept:
        message = "sweep: no parameter was swept in these runs; filter one set first"
        raise PlotError(message)
    if over is None and len(swept) > 1:
        message = f"sweep: name one parameter with over: {', '.join(swept)}"
        raise PlotError(message)
    chosen = swept[0] if over is None else over
    if chosen not in swept:
        message = f"sweep: {chosen!r} was not swept in these runs{nearest(chosen, swept)}"
        raise PlotError(message)
    notes: list[str] = []
    _, selection = sets.measured(runs, metrics, include_untrusted=include_untrusted, notes=notes)
    warn([*notes, *selection.notes])
    picture, left_out = sweeps.draw_over(summarise(selection.table), parameters, chosen)
    warn([left_out] if left_out else [])
    return [] if picture is None else [picture]
