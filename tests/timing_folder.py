# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A made-up measurement of sleep methods, in the form that the engine writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MILLISECOND = 1_000_000


@dataclass(frozen=True)
class Way:
    """A way of sleeping that oversleeps by a constant and an exponential part, in ns."""

    method: str
    technique: str = "plain"
    constant: float = 50_000
    tail: float = 10_000
    processor: float = 5_000
    timer_slack_ns: int | None = None
    memory_locked: bool = False
    unavailable: str | None = None


USUAL = (
    Way("select"),
    Way("select", "slack", constant=-2_000, tail=20_000),
    Way("clock_nanosleep_absolute", timer_slack_ns=1, constant=4_000, tail=3_000),
    Way("busy", constant=80, tail=60, processor=50 * MILLISECOND),
    Way("rtc", unavailable="/dev/rtc: No such file or directory"),
)


def estimates(values: NDArray[np.float64]) -> dict[str, Any]:
    mean, variance = float(values.mean()), float(values.var(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": mean,
        "mean_interval": [mean * 0.9, mean * 1.1],
        "variance": variance,
        "variance_interval": [variance * 0.9, variance * 1.1],
    }


def measured(way: Way, requested: NDArray[np.int64], actual: NDArray[np.int64]) -> dict[str, Any]:
    errors = actual - requested
    p50, p99, p999 = (int(np.quantile(errors, q)) for q in (0.5, 0.99, 0.999))
    return {
        "requests": len(errors),
        "absolute_error_ms": estimates(errors / 1e6),
        "relative_error": estimates((errors / requested)[requested > 0]),
        "error_ns": {
            "min": int(errors.min()),
            "p50": p50,
            "p99": p99,
            "p999": p999,
            "max": int(errors.max()),
        },
        "drift_ns": int(errors.sum()),
        "elapsed_ns": int(actual.sum()),
        "processor_ns_per_sleep": way.processor,
        "voluntary_switches_per_sleep": 1.0,
        "involuntary_switches_per_sleep": 0.01,
    }


def write_timing(
    directory: Path,
    *,
    ways: tuple[Way, ...] = USUAL,
    requests: int = 1000,
    load: str = "none",
    scale: float = 1.0,
    line_rates: bool = True,
    seed: int = 5,
) -> None:
    """Write a folder; ``scale`` multiplies all errors."""
    generator = np.random.default_rng(seed)
    requested = generator.integers(0, 100 * MILLISECOND, requests)
    series, lines = [], []
    columns: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("series", "request", "requested_ns", "actual_ns")
    }
    for index, way in enumerate(ways):
        told: dict[str, Any] = {
            "method": way.method,
            "technique": way.technique,
            "timer_slack_ns": way.timer_slack_ns,
            "memory_locked": way.memory_locked,
            "unavailable": way.unavailable,
            "measured": None,
        }
        if way.unavailable is None:
            errors = scale * (way.constant + generator.exponential(way.tail, requests))
            actual = np.maximum(requested + errors.astype(np.int64), 0)
            told["measured"] = measured(way, requested, actual)
            columns["series"].append(np.full(requests, index, dtype=np.uint32))
            columns["request"].append(np.arange(requests, dtype=np.uint32))
            columns["requested_ns"].append(requested)
            columns["actual_ns"].append(actual)
            if line_rates:
                for rate in np.geomspace(1e3, 1e6, 13):
                    wait = 800 / rate
                    late = max(scale * (way.constant + way.tail) / 1e9, 0)
                    lines.append(
                        {
                            "method": way.method,
                            "technique": way.technique,
                            "packet_bytes": 100,
                            "packets": 200,
                            "requested_bits_per_second": float(rate),
                            "actual_bits_per_second": 800 / (wait + late),
                        }
                    )
        series.append(told)
    report = {
        "format_version": 1,
        "airpath_version": "0.1.0",
        "began_unix_s": 1_790_000_000,
        "host": {"kernel": "6.1.0", "cpus": 2},
        "asked": {
            "requests": requests,
            "distribution": "uniform:0ms..100ms",
            "seed": seed,
            "load": load,
            "policy": "other",
        },
        "series": series,
        "line_rates": lines,
        "recommendation": ["Use clock_nanosleep_absolute."],
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "timing.json").write_text(json.dumps(report))
    types = [pa.uint32(), pa.uint32(), pa.uint64(), pa.uint64()]
    arrays = [
        pa.array(np.concatenate(parts or [np.array([], dtype=np.int64)]), kind)
        for parts, kind in zip(columns.values(), types, strict=True)
    ]
    table = pa.table(arrays, names=list(columns))
    with pa.ipc.new_file(str(directory / "samples.arrow"), table.schema) as writer:
        writer.write_table(table)
