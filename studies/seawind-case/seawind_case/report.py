"""Medians and percentiles over replications, and the table beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seawind_case.measure import Replication

PAPER: dict[str, Any] = {
    "elapsed_seconds": {"p10": 153.27, "median": 170.51, "p90": 196.40},
    "throughput_bytes_per_second": {"median": 601.0},
    "retransmitted": {"median": 65.0},
    "dropped": {"median": 47.0},
}
"""Table 2 of Kojo et al. 2001: 20 replications, Linux 2.4.0."""

DIGITS = {"elapsed_seconds": 2}


def summarise(replications: Sequence[Replication]) -> dict[str, Any]:
    """Return the figures of a variant: 10th percentile, median and 90th of every quantity."""
    quantities: dict[str, list[float]] = {
        "elapsed_seconds": [one.elapsed_seconds for one in replications],
        "throughput_bytes_per_second": [one.throughput_bytes_per_second for one in replications],
        "idle_seconds": [one.idle_seconds for one in replications],
        "segments": [one.segments for one in replications],
        "retransmitted": [one.retransmitted for one in replications],
        "dropped": [one.drops() for one in replications],
        "dropped_data": [one.drops("downlink") for one in replications],
        "dropped_data_by_queue": [
            sum(n for cause, n in one.dropped["downlink"].items() if cause.startswith("queue"))
            for one in replications
        ],
        "dropped_acknowledgements": [one.drops("uplink") for one in replications],
    }
    summary: dict[str, Any] = {
        "replications": len(replications),
        "congestion_control": "/".join(sorted({one.congestion_control for one in replications})),
        "trusted": sum(one.verdict == "trusted" for one in replications),
        "lateness_max_ms": round(1e3 * max(one.lateness_max_seconds for one in replications), 2),
    }
    for name, values in quantities.items():
        low, middle, high = np.percentile(values, [10, 50, 90])
        digits = DIGITS.get(name, 1)
        summary[name] = {
            "p10": round(float(low), digits),
            "median": round(float(middle), digits),
            "p90": round(float(high), digits),
        }
    return summary


def distance(summary: Mapping[str, Any]) -> float:
    """Return how far a variant is from the paper: the mean relative error of its four medians."""
    errors = [
        abs(summary[name]["median"] - figures["median"]) / figures["median"]
        for name, figures in PAPER.items()
    ]
    return float(np.mean(errors))


def table(summaries: Iterable[tuple[str, str, Mapping[str, Any]]]) -> str:
    """Return a Markdown table: the paper's row, then (kernel, acknowledgements, figures) each."""
    header = [
        "TCP",
        "ACKs",
        "elapsed, s: median (p10 to p90)",
        "B/s",
        "retransmitted",
        "dropped",
        "of these data (by the queue) + ACKs",
        "link idle, s",
        "from the paper",
    ]
    rows = [
        [
            "Linux 2.4.0 (Kojo et al. 2001)",
            "?",
            _range(PAPER["elapsed_seconds"]),
            "601",
            "65",
            "47",
            "",
            "",
            "",
        ]
    ]
    for kernel, acknowledgements, figures in summaries:
        middle = {
            name: value["median"] for name, value in figures.items() if isinstance(value, dict)
        }
        rows.append(
            [
                kernel,
                acknowledgements.replace("-", " "),
                _range(figures["elapsed_seconds"]),
                f"{middle['throughput_bytes_per_second']:.0f}",
                f"{middle['retransmitted']:g}",
                f"{middle['dropped']:g}",
                f"{middle['dropped_data']:g} ({middle['dropped_data_by_queue']:g})"
                f" + {middle['dropped_acknowledgements']:g}",
                f"{middle['idle_seconds']:.0f}",
                f"{100 * distance(figures):.0f} %",
            ]
        )
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def _range(figures: Mapping[str, float]) -> str:
    return f"{figures['median']:.1f} ({figures['p10']:.1f} to {figures['p90']:.1f})"


def to_toml(head: Mapping[str, Any], summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as TOML, a table for each variant."""
    lines = [f"{key} = {_value(value)}" for key, value in head.items()]
    for name, figures in summaries.items():
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {_value(value)}" for key, value in figures.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {_value(item)}" for key, item in value.items())
        return f"{{ {inside} }}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def comparison_table(figures: Mapping[str, Any]) -> str:
    """Return a Markdown table of live results beside those of warp, for the variants compared."""
    header = [
        "variant",
        "pairs (live ones trusted)",
        "elapsed live, s: median",
        "warp",
        "warp / live (95 % interval)",
        "the same to the last packet",
        "others part after, s",
        "times of the same packets differ by, ms: median (99th percentile)",
    ]
    rows = []
    for name, found in figures.items():
        if not isinstance(found, dict):
            continue
        ratio, times = found["ratio"], found["times_differ_ms"]
        parted = found["pairs"] - found["pairs_same_packets"]
        rows.append(
            [
                f"`{name}`",
                f"{found['pairs']} ({found['trusted_live']})",
                f"{found['elapsed_live_median']:.1f}",
                f"{found['elapsed_warp_median']:.1f}",
                f"{ratio['median']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})",
                f"{found['pairs_same_packets']}",
                f"{found['first_difference_seconds_median']:.0f}" if parted else "",
                f"{times['median']:.1f} ({times['p99']:.0f})",
            ]
        )
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
