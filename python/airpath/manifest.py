# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The shape of ``run.json``, as far as this package reads it; the engine declares its content."""

from __future__ import annotations

from typing import Any

from airpath.shape import NUMBER, TIME, Each, Object, fitting

_COUNTS = Each(Object({"count": TIME, "bits": TIME}))
_WAY = Object(
    {
        "delivered_bytes": TIME,
        "packets_retransmitted": TIME,
        "goodput_bits_per_second": NUMBER,
    }
)
_FIGURES = {"count": TIME, "p50_ns": TIME, "p99_ns": TIME, "max_ns": TIME, "mean_ns": NUMBER}
_MEDIAN = Object({"count": TIME, "p50_ns": TIME}, needed=("p50_ns",))
_HOST = Object(
    {
        "name": str,
        "hops": [str],
        "clock": Object(
            {"offset_ns": int, "bound_ns": int, "drift_interval_ppm": [NUMBER]},
            needed=("offset_ns", "bound_ns", "drift_interval_ppm"),
        ),
        "network_delay": Object(
            {"to_host": _MEDIAN, "from_host": _MEDIAN}, needed=("to_host", "from_host")
        ),
        "lateness": Object({"max_ns": TIME}, needed=("max_ns",)),
        "failure": str,
    },
    needed=("name",),
)

SHAPE = Object(
    {
        "airpath_version": str,
        "status": str,
        "start_unix_ns": TIME,
        "clock": str,
        "seed": int,
        "scenario": dict,
        "scenario_toml": str,
        "host": dict,
        "hosts": [_HOST],
        "settings": dict,
        "log_level": str,
        "frames": bool,
        "commands": [dict],
        "workloads": [
            Object(
                {
                    "workload": str,
                    "report": Object(
                        {
                            "name": str,
                            "outcome": str,
                            "start_ns": TIME,
                            "end_ns": TIME,
                            "elapsed_ns": TIME,
                            "uplink": _WAY,
                            "downlink": _WAY,
                        },
                        needed=("name",),
                    ),
                }
            )
        ],
        "results": Object(
            {
                "duration_ns": TIME,
                "counters": [
                    Object(
                        {
                            "hop": str,
                            "user": str,
                            "bearer": str,
                            "direction": str,
                            "origin": str,
                            "kinds": _COUNTS,
                            "causes": _COUNTS,
                        },
                        needed=("hop", "direction", "kinds"),
                    )
                ],
                "timings": Object(
                    dict.fromkeys(
                        ("uplink_delay", "downlink_delay", "lateness", "read_delay"),
                        Object(_FIGURES, needed=tuple(_FIGURES)),
                    )
                ),
                "verdict": Object({"grade": str, "reasons": [Object({"what": str})]}),
            }
        ),
    }
)


def within_shape(content: dict[str, Any], wrong: list[str]) -> dict[str, Any]:
    """Return a manifest without what has another type than its readers expect.

    Args:
        content: the manifest.
        wrong: told what was left out, with its place.

    """
    found: dict[str, Any] = fitting(content, SHAPE, wrong)
    return found
