# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The folder of a measurement of sleep methods, as `airpath timing --out` writes it.

The content of ``timing.json`` is declared in the engine's sources (airpath-timing, report.rs); keys
that this version does not know are left alone, so that a later engine may add some.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from airpath.facts import EXIT_STATUSES
from airpath.files import read_text, told
from airpath.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

FORMAT_VERSION = 1
"""The format that this version reads."""
FILE = "timing.json"
SAMPLES = "samples.arrow"

SAMPLE_COLUMNS = {
    "series": "UInt32",
    "request": "UInt32",
    "requested_ns": "Int64",
    "actual_ns": "Int64",
}
"""Columns of ``Report.samples`` and the names of their types in polars, which a table needs not;
times are signed so that their differences are safe."""

TECHNIQUE_TEXTS = {
    "plain": "plain",
    "slack": "slack",
    "pre_compensation": "pre-compensation",
    "slack_and_pre_compensation": "slack and pre-compensation",
}
"""Names of the error corrections, as in pictures and tables."""


@dataclass(frozen=True)
class PaperRow:
    """A row of table 1 of Gurtov 1999: 1000 requests, uniform in 0..100 ms, Linux 2.0.36."""

    name: str
    absolute_mean_ms: float
    absolute_variance: float
    relative_mean: float
    relative_variance: float
    method: str | None
    """The way of sleeping of today that it is compared with; none if there is none."""
    technique: str = "plain"


PAPER_TABLE = (
    PaperRow("standard select()", 14.50, 10.49, 0.85, 4.39, "select"),
    PaperRow("interrupts RTC", 0.00, 0.00, 0.00, 0.00, "rtc"),
    PaperRow("interrupts HZ", 0.41, 0.25, 0.04, 0.01, None),
    PaperRow("slack variable", 0.01, 38.56, -0.09, 0.27, "select", "slack"),
    PaperRow("busy waiting", 0.02, 0.11, 0.00, 0.00, "busy"),
)
"""Table 1 of Gurtov 1999."""

_Value = TypeVar("_Value")


class TimingError(Exception):
    """A folder holds no measurement that could be read."""

    status = EXIT_STATUSES["usage"]
    """Exit status of a command that ends with it."""


class NoMeasurementError(TimingError):
    """A folder that was named does not exist, or holds no measurement."""


@dataclass(frozen=True)
class Estimate:
    """A statistic with its bootstrap interval of 95 %, of which few values have none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimates:
    """Sample mean and variance."""

    mean: Estimate
    variance: Estimate


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of the absolute error in ns."""

    min: int
    p50: int
    p99: int
    p999: int
    max: int


@dataclass(frozen=True)
class Measured:
    """Result of one series."""

    requests: int
    absolute_error_ms: Estimates
    relative_error: Estimates
    error_ns: Quantiles
    drift_ns: int
    elapsed_ns: int
    processor_ns_per_sleep: float
    voluntary_switches_per_sleep: float
    involuntary_switches_per_sleep: float


@dataclass(frozen=True)
class Series:
    """One way of sleeping with one setting."""

    index: int
    """Its place in the report, and its number in samples.arrow."""
    method: str
    technique: str
    timer_slack_ns: int | None
    memory_locked: bool
    unavailable: str | None
    measured: Measured | None

    @property
    def setting(self) -> str:
        """The timer slack and the locking of memory, in words; "default" if neither is set."""
        words = []
        if self.timer_slack_ns is not None:
            words.append(f"timer slack {self.timer_slack_ns} ns")
        if self.memory_locked:
            words.append("memory locked")
        return ", ".join(words) or "default"

    @property
    def technique_text(self) -> str:
        """Error correction, in words."""
        return TECHNIQUE_TEXTS.get(self.technique, self.technique.replace("_", " "))

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity of the series across reports."""
        return self.method, self.technique, self.setting


@dataclass(frozen=True)
class LineRate:
    """A line whose packets of one size each wait for their transmission time."""

    method: str
    technique: str
    packet_bytes: int
    packets: int
    requested_bits_per_second: float
    actual_bits_per_second: float


@dataclass(frozen=True)
class Asked:
    """Request of the user."""

    requests: int
    distribution: str
    seed: int
    load: str
    policy: str
    wake_latency: str
    """Deep CPU idle states: hold (blocked) or leave (allowed)."""

    @property
    def conditions(self) -> str:
        """Conditions of the measurement; the wake latency only where it was held."""
        load = "no load" if self.load == "none" else f"{self.load} load"
        held = ", wake latency held" if self.wake_latency == "hold" else ""
        return f"{load}, policy {self.policy}{held}"


@dataclass(frozen=True)
class Report:
    """One measurement."""

    directory: Path
    airpath_version: str
    host: Any
    asked: Asked
    series: tuple[Series, ...]
    line_rates: tuple[LineRate, ...]
    recommendation: tuple[str, ...]
    interrupted: bool
    """True if it was broken off, so that series are missing or shorter than asked for."""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.directory.resolve().name

    @property
    def measured(self) -> tuple[Series, ...]:
        """The series that were available."""
        return tuple(series for series in self.series if series.measured is not None)

    @property
    def title(self) -> str:
        """Its name, and under what it was measured."""
        return f"{self.name} ({self.asked.conditions})"

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Every request, with the columns of ``SAMPLE_COLUMNS``.

        Raises:
            TimingError: the file is missing, torn, or does not fit the report.

        """
        return _read_samples(self)

    @cached_property
    def _by_series(self) -> dict[int, pl.DataFrame]:
        parts = self.samples.partition_by("series", as_dict=True, maintain_order=True)
        return {int(key[0]): frame for key, frame in parts.items()}

    def samples_of(self, series: Series) -> pl.DataFrame:
        """Return the requests of one series in order."""
        return self._by_series.get(series.index, self.samples.clear())

    def errors_of(self, series: Series) -> pl.Series:
        """Return the absolute errors of one series (actual less requested) in ns, in order."""
        frame = self.samples_of(series)
        return (frame["actual_ns"] - frame["requested_ns"]).rename("error_ns")

    def find(self, method: str, technique: str = "plain") -> Series | None:
        """Return the first series of a way of sleeping, whatever its settings; none if not there.

        Settings are measured in order, the system's own first.
        """
        for series in self.measured:
            if series.method == method and series.technique == technique:
                return series
        return None


def load_report(directory: Path) -> Report:
    """Open the folder of a measurement.

    Raises:
        NoMeasurementError: there is no such folder, or it holds no measurement.
        TimingError: the measurement cannot be read.

    """
    path = directory / FILE
    if not directory.is_dir():
        message = f"{directory}: no such folder; name one given to --out of airpath timing"
        raise NoMeasurementError(message)
    try:
        content = parse_json(read_text(path))
    except FileNotFoundError as error:
        message = f"{directory}: no {FILE} in it, so it is not the folder of a measurement;"
        message += " airpath timing --out DIR writes one"
        raise NoMeasurementError(message) from error
    except OSError as error:
        message = f"{told(error)}; it cannot be read"
        raise TimingError(message) from error
    except ValueError as error:
        message = f"{path}: torn or damaged ({error}); measure again"
        raise TimingError(message) from error
    return _report(directory, _Fields(path, "", content))


class _Fields:
    """A JSON object whose values are asked for by type; complaints name file and place."""

    def __init__(self, path: Path, place: str, content: object) -> None:
        if not isinstance(content, dict):
            message = f"{path}: {place or 'the content'} is no JSON object"
            raise TimingError(message)
        self.path = path
        self.place = place
        self.content: dict[str, Any] = content

    def where(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str, kind: type[_Value]) -> _Value:
        value = self.content.get(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if isinstance(value, bool) is not (kind is bool) or not isinstance(value, kind):
            found = "missing" if key not in self.content else f"{value!r:.40}"
            message = f"{self.path}: {self.where(key)} is {found}, not {_KIND_TEXTS[kind]}"
            raise TimingError(message)
        return value

    def optional(self, key: str, kind: type[_Value]) -> _Value | None:
        return None if self.content.get(key) is None else self.get(key, kind)

    def inner(self, key: str) -> _Fields:
        return _Fields(self.path, self.where(key), self.content.get(key))

    def each(self, key: str) -> list[_Fields]:
        return [
            _Fields(self.path, f"{self.where(key)}[{index}]", content)
            for index, content in enumerate(self.get(key, list))
        ]


_KIND_TEXTS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
}


def _report(directory: Path, fields: _Fields) -> Report:
    version = fields.content.get("format_version")
    if version != FORMAT_VERSION:
        message = (
            f"{fields.path} has format {version}, but this version of Airpath reads "
            f"format {FORMAT_VERSION}; use the version of Airpath that measured it"
        )
        raise TimingError(message)
    asked = fields.inner("asked")
    return Report(
        directory=directory,
        airpath_version=fields.get("airpath_version", str),
        host=fields.content.get("host"),
        asked=Asked(
            requests=asked.get("requests", int),
            distribution=asked.get("distribution", str),
            seed=asked.get("seed", int),
            load=asked.get("load", str),
            policy=asked.get("policy", str),
            # Earlier versions had no choice.
            wake_latency=asked.optional("wake_latency", str) or "leave",
        ),
        series=tuple(_series(index, each) for index, each in enumerate(fields.each("series"))),
        line_rates=tuple(_line_rate(each) for each in fields.each("line_rates")),
        recommendation=tuple(str(text) for text in fields.get("recommendation", list)),
        interrupted=fields.optional("interrupted", bool) or False,
    )


def _series(index: int, fields: _Fields) -> Series:
    has_result = fields.content.get("measured") is not None
    return Series(
        index=index,
        method=fields.get("method", str),
        technique=fields.get("technique", str),
        timer_slack_ns=fields.optional("timer_slack_ns", int),
        memory_locked=fields.get("memory_locked", bool),
        unavailable=fields.optional("unavailable", str),
        measured=_measured(fields.inner("measured")) if has_result else None,
    )


def _measured(fields: _Fields) -> Measured:
    quantiles = fields.inner("error_ns")
    return Measured(
        requests=fields.get("requests", int),
        absolute_error_ms=_estimates(fields.inner("absolute_error_ms")),
        relative_error=_estimates(fields.inner("relative_error")),
        error_ns=Quantiles(
            **{name: quantiles.get(name, int) for name in ("min", "p50", "p99", "p999", "max")}
        ),
        drift_ns=fields.get("drift_ns", int),
        elapsed_ns=fields.get("elapsed_ns", int),
        processor_ns_per_sleep=fields.get("processor_ns_per_sleep", float),
        voluntary_switches_per_sleep=fields.get("voluntary_switches_per_sleep", float),
        involuntary_switches_per_sleep=fields.get("involuntary_switches_per_sleep", float),
    )


def _estimates(fields: _Fields) -> Estimates:
    def estimate(name: str) -> Estimate:
        interval = fields.optional(f"{name}_interval", list)
        if interval is None:
            return Estimate(fields.get(name, float), None, None)
        if len(interval) != 2 or not all(_is_number(end) for end in interval):
            message = f"{fields.path}: {fields.where(name)}_interval is no pair of numbers"
            raise TimingError(message)
        return Estimate(fields.get(name, float), float(interval[0]), float(interval[1]))

    return Estimates(mean=estimate("mean"), variance=estimate("variance"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line_rate(fields: _Fields) -> LineRate:
    return LineRate(
        method=fields.get("method", str),
        technique=fields.get("technique", str),
        packet_bytes=fields.get("packet_bytes", int),
        packets=fields.get("packets", int),
        requested_bits_per_second=fields.get("requested_bits_per_second", float),
        actual_bits_per_second=fields.get("actual_bits_per_second", float),
    )


def _read_samples(report: Report) -> pl.DataFrame:
    import polars as pl

    from airpath.arrow import ArrowLogError, read_arrow_log

    path = report.directory / SAMPLES
    try:
        log = read_arrow_log(path)
    except FileNotFoundError as error:
        message = f"{path}: missing; airpath timing --out writes it beside {FILE}: measure again"
        raise TimingError(message) from error
    except (ArrowLogError, OSError) as error:
        message = told(error) if isinstance(error, OSError) else str(error)
        raise TimingError(f"{message}; torn or damaged: measure again") from error
    if log.torn_bytes or not log.clean_end:
        message = f"{path}: torn, its end is missing; measure again"
        raise TimingError(message)
    missing = [name for name in SAMPLE_COLUMNS if name not in log.frame.columns]
    if missing:
        message = f"{path}: no column {', '.join(missing)}; it has {', '.join(log.frame.columns)}"
        raise TimingError(message)
    try:
        frame = log.frame.select(
            pl.col(name).cast(getattr(pl, kind)) for name, kind in SAMPLE_COLUMNS.items()
        )
    except pl.exceptions.PolarsError as error:
        message = f"{path}: a column has values of another kind: {error}"
        raise TimingError(message) from error
    _check_counts(path, frame, report.measured)
    return frame.sort("series", "request")


def _check_counts(path: Path, frame: pl.DataFrame, measured: Sequence[Series]) -> None:
    """Refuse samples that are not those of the report in their folder."""
    found = dict(frame.group_by("series").len().iter_rows())
    for series in measured:
        expected = series.measured.requests if series.measured else 0
        if found.get(series.index, 0) != expected:
            message = (
                f"{path}: {found.get(series.index, 0)} requests of series {series.index} "
                f"({series.method}, {series.technique}), and {FILE} speaks of {expected}; "
                f"the two are not of one measurement, or one is torn: measure again"
            )
            raise TimingError(message)
