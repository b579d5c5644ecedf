"""The tidy long table: one row a value of a metric of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.analysis import fairness_metrics, flow_metrics, link_metrics, quic_metrics
from airpath.analysis.folders import Replication
from airpath.analysis.metric import REGISTRY, Metric, in_order
from airpath.analysis.traffic import Traffic
from airpath.run import Run, RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

DECLARED_IN = (link_metrics, flow_metrics, fairness_metrics, quic_metrics)
"""The modules whose import fills the registry."""

COLUMNS: dict[str, pl.DataType] = {
    "set": pl.String(),
    "run": pl.String(),
    "seed": pl.Int64(),
    "verdict": pl.String(),
    "flow": pl.String(),
    "direction": pl.String(),
    "hop": pl.String(),
    "metric": pl.String(),
    "value": pl.Float64(),
    "unit": pl.String(),
}
"""Columns of the table. ``flow``, ``direction`` and ``hop`` are empty where they do not apply;
``seed`` is null for a run that did not note one."""


class UnknownMetricError(Exception):
    """A name is no metric's."""


def choose(names: Sequence[str] | None) -> list[Metric]:
    """Return metrics by name.

    Args:
        names: names; a name that ends with ``*`` stands for all that begin so; "all" for all;
            nothing for the headlines.

    Raises:
        UnknownMetricError: there is none of that name; the message names the nearest.

    """
    import difflib

    if not names:
        return [metric for metric in in_order() if metric.headline]
    chosen: dict[str, Metric] = {}
    for name in names:
        if name == "all":
            chosen |= REGISTRY
            continue
        matching = {
            known: metric
            for known, metric in REGISTRY.items()
            if known == name or (name.endswith("*") and known.startswith(name[:-1]))
        }
        if not matching:
            near = difflib.get_close_matches(name, REGISTRY, n=1, cutoff=0.0)
            message = (
                f"no metric is called {name}; the nearest is {near[0]} "
                f"(airpath analyse --list names all)"
            )
            raise UnknownMetricError(message)
        chosen |= matching
    return [metric for metric in in_order() if metric.name in chosen]


def measure(run: Run, metrics: Iterable[Metric] | None = None) -> pl.DataFrame:
    """Return flow, direction, hop, metric, value, unit of one run.

    What was not measured (no capture, no such packets) has no row.
    """
    traffic = Traffic(run)
    keys = ("flow", "direction", "hop")
    parts = [pl.DataFrame(schema={name: COLUMNS[name] for name in list(COLUMNS)[4:]})]
    for metric in choose(None) if metrics is None else metrics:
        values = metric.compute(traffic)
        here = [
            pl.col(key).cast(pl.String) if key in values.columns else pl.lit("").alias(key)
            for key in keys
        ]
        finite = values.filter(pl.col("value").is_not_null() & pl.col("value").is_finite())
        parts.append(
            finite.select(
                *here,
                metric=pl.lit(metric.name),
                value=pl.col("value").cast(pl.Float64),
                unit=pl.lit(metric.unit),
            ).sort(keys)
        )
    return pl.concat(parts)


def frame(
    runs: Iterable[Replication | Run],
    metrics: Sequence[str] | None = None,
    *,
    progress: Callable[[int, Replication], None] | None = None,
    notes: list[str] | None = None,
) -> pl.DataFrame:
    """Return the tidy long table of many runs, with the columns of ``COLUMNS``.

    Args:
        runs: what ``airpath.runs`` returns, or open runs.
        metrics: names, as ``choose`` takes them.
        progress: called before each run with its number from 0.
        notes: what readers must know of the runs' files is added here.

    Raises:
        RunError: a run could not be read.
        UnknownMetricError: a name is no metric's.

    """
    chosen = choose(metrics)
    parts = [pl.DataFrame(schema=COLUMNS)]
    for number, one in enumerate(runs):
        place = one if isinstance(one, Replication) else _alone(one)
        if progress is not None:
            progress(number, place)
        # Opened here and not kept: the packets of one run at a time are in memory.
        run = load(place) if isinstance(one, Replication) else one
        try:
            values = measure(run, chosen)
        except pl.exceptions.PolarsError as error:
            message = f"{place.directory}: its logs contradict each other: {error}"
            raise RunError(message) from error
        if notes is not None:
            notes += [f"{place.directory}: {note}" for note in run.notes]
        seed = run.manifest.get("seed")
        parts.append(
            values.select(
                set=pl.lit(place.set_name),
                run=pl.lit(place.name),
                seed=pl.lit(seed if isinstance(seed, int) else None, dtype=pl.Int64),
                verdict=pl.lit(run.verdict),
                **{name: pl.col(name) for name in list(COLUMNS)[4:]},
            )
        )
    return pl.concat(parts)


def load(place: Replication) -> Run:
    """Open a run anew."""
    from airpath.run import load_run

    return load_run(place.directory)


def _alone(run: Run) -> Replication:
    folder = run.directory.resolve()
    return Replication(folder.parent.name, folder.name, run.directory)
