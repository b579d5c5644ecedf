# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath trace fit``: the report as text or JSON, the picture, the models as TOML."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airpath.engine import EngineError
from airpath.errortrace.compare import Comparison, Fitted, compare
from airpath.errortrace.mta import HIGHEST_ORDER
from airpath.errortrace.trace import LAGS, QUANTILES, Statistics, TraceError, read
from airpath.extras import require
from airpath.files import make_folder
from airpath.status import DONE, fail

if TYPE_CHECKING:
    from pathlib import Path

PICTURES = (".png", ".svg", ".pdf")


def run(
    file: Path,
    *,
    file_format: str | None,
    units: int | None,
    model: str | None,
    held_out: float,
    order: int,
    out: Path | None,
    json_: bool,
) -> int:
    """Carry ``airpath trace fit`` out."""
    problem = _problem(held_out, order, out)
    if problem:
        return fail("trace fit", problem)
    if out is not None:
        require("plots", "airpath trace fit --out")
    try:
        try:
            _tell(f"reading {file.name}")
            found = compare(read(file, file_format, units), held_out, order, _tell)
        finally:
            _tell("")
    except (TraceError, EngineError, OSError) as error:
        return fail("trace fit", error)
    for warning in found.warnings:
        print(f"airpath trace fit: warning: {warning}", file=sys.stderr)
    if model is not None:
        chosen = found.best.name if model == "best" else model
        print(f"errors = {_named(found, chosen).model.errors()}")
    elif json_:
        print(json.dumps(as_json(found, file.name, held_out)))
    else:
        print(text_of(found, file.name))
    if out is not None:
        from airpath.plots import error_fit

        try:
            make_folder(out.parent)
            picture = error_fit.draw(found, file.name)
            path = picture.save(out.parent, out.suffix[1:], name=out.stem)
        except OSError as error:
            return fail("trace fit", error)
        # Standard output may go into a scenario.
        print(path, file=sys.stderr)
    return DONE


def _tell(text: str) -> None:
    """Say on a terminal what is done; nothing stays there."""
    if sys.stderr.isatty():
        line = f"airpath trace fit: {text}" if text else ""
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _problem(held_out: float, order: int, out: Path | None) -> str:
    if not 0.05 <= held_out <= 0.9:
        return f"--held-out {held_out:g} must be from 0.05 to 0.9"
    if not 1 <= order <= HIGHEST_ORDER:
        return f"--order {order} must be from 1 to {HIGHEST_ORDER}"
    if out is not None and out.suffix not in PICTURES:
        return f"--out {out} must end with .png, .svg or .pdf"
    return ""


def _named(found: Comparison, name: str) -> Fitted:
    return next(one for one in found.models if one.name == name)


def as_json(found: Comparison, name: str, held_out: float) -> dict[str, Any]:
    """Return all figures, lengths in units and likelihoods in bits per unit."""
    return {
        "file": name,
        "units": found.trace.units,
        "errors": found.trace.errors,
        "bursts": found.trace.bursts,
        "held_out_share": held_out,
        "held_out_units": found.held_out,
        "data": asdict(found.statistics),
        "models": [
            {
                "name": one.name,
                "title": one.kind.title,
                "source": one.kind.source,
                "parameters": one.model.parameters,
                "errors": one.model.errors(),
                "statistics": asdict(one.statistics),
                "held_out_log_likelihood_bits": one.log_likelihood,
                "behind_best_bits": one.behind,
                "behind_best_error_bits": one.behind_error,
            }
            for one in found.models
        ],
        "best": found.best.name,
        "as_good_as_best": [one.name for one in found.equals],
        "warnings": list(found.warnings),
    }


def text_of(found: Comparison, name: str) -> str:
    """Return the report for a terminal."""
    trace = found.trace
    lines = [
        f"{name}: {trace.units:,} units, {trace.errors:,} errors ({100 * trace.error_rate:.4g} %) "
        f"in {trace.bursts:,} bursts",
        f"best model: {found.best.kind.title} ({found.best.name}), by the likelihood of the last "
        f"{found.held_out:,} units",
    ]
    if found.equals:
        *names, last = (one.kind.title for one in found.equals)
        text = f"{', '.join(names)} and {last}" if names else last
        lines.append(f"within two standard errors of it: {text}")
    lines += ["", *_table(found), "", *_likelihoods(found)]
    for one in found.models:
        lines += [
            "",
            f"# {one.kind.title} ({one.kind.source})",
            f"errors = {one.model.errors()}",
        ]
    return "\n".join(lines)


def _rows(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    made = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        made.append("  ".join(cells).rstrip())
    return made


def _table(found: Comparison) -> list[str]:
    """Return a column of figures for the data and for each model."""
    columns = [found.statistics, *(one.statistics for one in found.models)]
    rows = [["", "data", *(one.kind.title for one in found.models)]]

    def row(label: str, values: list[float | None], form: str) -> None:
        shown = ["-" if value is None else format(value, form) for value in values]
        rows.append([label, *shown])

    row("error rate (%)", [100 * one.error_rate for one in columns], ".4g")
    for kind, title in (("good", "good runs"), ("bad", "bad runs")):
        runs = [getattr(one, kind) for one in columns]
        row(f"{title}: mean", [one.mean for one in runs], ".4g")
        for share in QUANTILES:
            label = "median" if share == 0.5 else f"{100 * share:.0f} %"
            row(f"{title}: {label}", [one.quantiles[share] for one in runs], ".0f")
    for lag in LAGS:
        if lag in found.statistics.autocorrelation:
            row(f"autocorrelation at {lag}", [_at(one, lag) for one in columns], ".3f")
    return _rows(rows)


def _at(figures: Statistics, lag: int) -> float | None:
    return figures.autocorrelation.get(lag)


def _likelihoods(found: Comparison) -> list[str]:
    rows = [["held-out log likelihood", "bit per unit", "behind the best", "parameters"]]
    for one in sorted(found.models, key=lambda one: -one.log_likelihood):
        behind = "-" if one is found.best else f"{one.behind:.6f} ± {one.behind_error:.6f}"
        name = one.kind.title
        rows.append([name, f"{one.log_likelihood:.6f}", behind, str(one.model.parameters)])
    return _rows(rows)
