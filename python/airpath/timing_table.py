# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Measurements of sleep methods as tables in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.timing import PAPER_TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.timing import Estimate, Measured, Report, Series

PAPER_DISTRIBUTION = "uniform:0ms..100ms"
PAPER_REQUESTS = 1000


def tables(reports: Sequence[Report]) -> str:
    """Return table 1 of Gurtov 1999 beside the measurements, then every series of each."""
    parts = [_beside_the_paper(reports)]
    parts += [_every_series(report) for report in reports]
    return "\n\n".join(parts) + "\n"


def _beside_the_paper(reports: Sequence[Report]) -> str:
    head = ["method", "measured", "absolute error: mean (ms)", "variance (ms²)"]
    head += ["relative error: mean", "variance"]
    rows = []
    for line in PAPER_TABLE:
        then = (
            line.absolute_mean_ms,
            line.absolute_variance,
            line.relative_mean,
            line.relative_variance,
        )
        rows.append([line.name, "Gurtov 1999", *(f"{value:.2f}" for value in then)])
        for report in reports:
            series = report.find(line.method, line.technique) if line.method else None
            cells = _reasons(report, line.method, line.technique)
            if series is not None and series.measured is not None:
                now = series.measured
                cells = [
                    _estimate(now.absolute_error_ms.mean),
                    _estimate(now.absolute_error_ms.variance),
                    _estimate(now.relative_error.mean),
                    _estimate(now.relative_error.variance),
                ]
            rows.append(["", _cell(report.name), *cells])
    notes = [_conditions(report) for report in reports]
    heading = "Table 1 of Gurtov 1999 (1000 requests, uniform in 0..100 ms, Linux 2.0.36) and here"
    text = f"{heading}, with intervals of 95 %:\n\n{_markdown(head, rows)}"
    return text + "\n\n" + "\n".join(f"- {note}" for note in notes)


def _reasons(report: Report, method: str | None, technique: str) -> list[str]:
    """Return four cells that say why there is nothing to compare."""
    if method is None:
        text = "a kernel of 1999; timers do not wait for ticks today"
    else:
        text = next(
            (
                f"unavailable: {series.unavailable}"
                for series in report.series
                if (series.method, series.technique) == (method, technique) and series.unavailable
            ),
            "not measured",
        )
    return [_cell(text), "", "", ""]


def _conditions(report: Report) -> str:
    asked = report.asked
    text = f"{report.name}: {asked.requests} requests, {asked.distribution}, seed {asked.seed}, "
    text += asked.conditions
    if isinstance(report.host, dict):
        facts = (f"{key} {value}" for key, value in report.host.items() if _is_plain(value))
        text = ", ".join([text, *facts])
    if asked.distribution.replace(" ", "") != PAPER_DISTRIBUTION or (
        asked.requests != PAPER_REQUESTS
    ):
        text += "; not the requests of the paper, so that its figures compare in kind only"
    if report.interrupted:
        text += "; broken off early, so that series are missing or have fewer requests"
    return _cell(text)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _every_series(report: Report) -> str:
    head = ["method", "technique", "setting", "mean (µs)", "variance (µs²)", "p50 (µs)"]
    head += ["p99 (µs)", "p99.9 (µs)", "max (µs)", "drift (ms)", "CPU a sleep (µs)", "switches"]
    rows = [
        [series.method, series.technique_text, series.setting, *_figures(series.measured)]
        for series in report.series
        if series.measured is not None
    ]
    text = f"Every series of {_cell(report.title)}:\n\n{_markdown(head, rows)}"
    missing = [
        f"- {series.method}, {series.technique_text}, {series.setting}: "
        f"unavailable, {_reason(series)}"
        for series in report.series
        if series.measured is None
    ]
    return text + ("\n\n" + "\n".join(missing) if missing else "")


def _reason(series: Series) -> str:
    return _cell(series.unavailable or "no reason given")


def _figures(measured: Measured) -> list[str]:
    quantiles = measured.error_ns
    in_us = [quantiles.p50, quantiles.p99, quantiles.p999, quantiles.max]
    switches = measured.voluntary_switches_per_sleep + measured.involuntary_switches_per_sleep
    return [
        _number(measured.absolute_error_ms.mean.value * 1e3),
        _number(measured.absolute_error_ms.variance.value * 1e6),
        *(_number(value / 1e3) for value in in_us),
        _number(measured.drift_ns / 1e6),
        _number(measured.processor_ns_per_sleep / 1e3),
        _number(switches),
    ]


def _estimate(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return _number(estimate.value)
    low, high = _number(estimate.low), _number(estimate.high)
    return f"{_number(estimate.value)} ({low} to {high})"


def _number(value: float) -> str:
    """Return three digits, without an exponent as long as that reads well."""
    if value != 0 and (abs(value) < 1e-4 or abs(value) >= 1e7):
        return f"{value:.2e}"
    digits = f"{value:.3g}"
    return f"{float(digits):.0f}" if "e" in digits and abs(value) >= 1 else digits


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
