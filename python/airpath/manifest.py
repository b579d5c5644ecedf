"""The shape of ``run.json``, as far as this package reads it; the engine declares its content.

Who reads a manifest need not ask again of what type a value is: what has another one is left out
here, and told. Keys that are not listed are left alone, for a later engine may add some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_NANOSECONDS = 2**63 - 1
"""What a column of times holds."""


@dataclass(frozen=True)
class Each:
    """An object whose values are all of one shape, whatever their keys are."""

    shape: Any


NUMBER = (int, float)
TIME = range(MOST_NANOSECONDS + 1)
COUNTS = Each({"count": int, "bits": int})
WAY = {
    "delivered_bytes": int,
    "packets_retransmitted": int,
    "goodput_bits_per_second": NUMBER,
}

SHAPE: dict[str, Any] = {
    "airpath_version": str,
    "status": str,
    "start_unix_ns": TIME,
    "clock": str,
    "seed": int,
    "scenario": dict,
    "scenario_toml": str,
    "host": dict,
    "settings": dict,
    "log_level": str,
    "commands": [dict],
    "workloads": [
        {
            "workload": str,
            "report": {
                "name": str,
                "outcome": str,
                "start_ns": TIME,
                "end_ns": TIME,
                "elapsed_ns": TIME,
                "uplink": WAY,
                "downlink": WAY,
            },
        }
    ],
    "results": {
        "duration_ns": TIME,
        "counters": [
            {"hop": str, "direction": str, "origin": str, "kinds": COUNTS, "causes": COUNTS}
        ],
        "timings": {
            f"{name}": {"count": int, **dict.fromkeys(("p50_ns", "p99_ns", "max_ns"), TIME),
                        "mean_ns": NUMBER}
            for name in ("uplink_delay", "downlink_delay", "lateness", "read_delay")
        },
        "verdict": {"grade": str, "reasons": [{"what": str}]},
    },
}
"""A type, a tuple of types, a range of whole numbers, a list of one shape, or an object."""

NEEDED = {
    "results.counters[]": ("hop", "direction", "origin", "kinds"),
    "workloads[].report": ("name",),
    **{
        f"results.timings.{way}_delay": ("count", "mean_ns", "p50_ns", "p99_ns", "max_ns")
        for way in ("uplink", "downlink")
    },
}
"""Objects that say nothing without these keys."""


def within_shape(content: dict[str, Any], wrong: list[str]) -> dict[str, Any]:
    """Return a manifest without what has another type than its readers expect.

    Args:
        content: the manifest.
        wrong: told what was left out, with its place.

    """
    found: dict[str, Any] = _fitting(content, SHAPE, "", wrong)
    return found


class _MisfitError(Exception):
    """A value does not fit where it stands."""


def _fitting(value: Any, shape: Any, place: str, wrong: list[str]) -> Any:
    if isinstance(shape, Each | dict):
        if not isinstance(value, dict):
            raise _MisfitError(_said(place, value, "an object"))
        found = {}
        for key, inner in value.items():
            its = shape.shape if isinstance(shape, Each) else shape.get(key)
            # What is null was not known.
            if its is not None and inner is None:
                continue
            try:
                where = f"{place}.{key}" if place else key
                found[key] = inner if its is None else _fitting(inner, its, where, wrong)
            except _MisfitError as error:
                wrong.append(str(error))
        missing = [key for key in NEEDED.get(_general(place), ()) if key not in found]
        if missing:
            message = f"{place} has no {missing[0]}"
            raise _MisfitError(message)
        return found
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _MisfitError(_said(place, value, "a list"))
        kept = []
        for number, inner in enumerate(value):
            try:
                kept.append(_fitting(inner, shape[0], f"{place}[{number}]", wrong))
            except _MisfitError as error:
                wrong.append(str(error))
        return kept
    if isinstance(shape, range):
        if isinstance(value, bool) or not isinstance(value, int) or value not in shape:
            raise _MisfitError(_said(place, value, "a time in nanoseconds"))
    elif not isinstance(value, shape) or isinstance(value, bool):
        raise _MisfitError(_said(place, value, _WORDS[shape]))
    return value


_WORDS = {int: "a whole number", str: "text", dict: "an object", NUMBER: "a number"}


def _general(place: str) -> str:
    """Return a place without the numbers of its lists."""
    return "".join(
        part if index == 0 else "[]" + part.partition("]")[2]
        for index, part in enumerate(place.split("["))
    )


def _said(place: str, value: Any, wanted: str) -> str:
    return f"{place or 'the content'} is {value!r:.40}, not {wanted}"
