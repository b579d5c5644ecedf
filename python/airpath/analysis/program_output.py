"""Reading what programs, and workloads of virtual time, tell of themselves.

An experiment keeps what became of programs in ``workload.json`` and what they printed in
``programs/NAME.stdout``; a run in virtual time has the reports of its workloads in ``run.json``.
"""

from __future__ import annotations

import math
import re
import statistics
from typing import TYPE_CHECKING, Any

from airpath.files import read_text
from airpath.jsontext import parse_json
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RESPONSE_TIMES = (
    ("min", "least", "min_seconds"),
    ("mean", "mean", "mean_seconds"),
    ("median", "median", "p50_seconds"),
    ("p99", "99th percentile", "p99_seconds"),
    ("max", "greatest", "max_seconds"),
)
"""End of the metric's name, words, and the key in the JSON of airpath send."""

ECHO_TIMES = {
    "min": "least",
    "mean": "mean",
    "median": "median",
    "p99": "99th percentile",
    "max": "greatest",
}
"""End of the metric's name, and words."""

_PING_REPLY = re.compile(r"icmp_seq=(\d+) .*time=([0-9.]+) ms")
_PING_COUNTS = re.compile(r"^(\d+) packets transmitted", re.MULTILINE)

Figures = dict[str, dict[str, float]]
"""Metric, then program: the figure."""


def figures(folder: Path, manifest: dict[str, Any]) -> Figures:
    """Return what the programs and workloads of a run tell of themselves.

    Args:
        folder: the run's.
        manifest: its ``run.json``.

    """
    found: Figures = {}

    def add(name: str, of: str, value: float) -> None:
        found.setdefault(name, {})[of] = float(value)

    for report in reports_of(manifest):
        _of_workload(report, add)
    for record in waited_for(folder):
        if isinstance(record.get("elapsed_ns"), int):
            add("program_elapsed", record["name"], record["elapsed_ns"] / 1e9)
        try:
            told = _printed(read_text(folder / "programs" / f"{record['name']}.stdout"))
        # Programs print what they like: also what looks like one of these forms, and is none.
        except (OSError, ValueError, TypeError, KeyError):
            continue
        for name, value in told.items():
            add(name, record["name"], value)
    return found


def reports_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports of the workloads of a run in virtual time."""
    return [one["report"] for one in manifest.get("workloads") or [] if one.get("report")]


def waited_for(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the programs that are no services."""
    try:
        records = parse_json(read_text(folder / "workload.json"))["programs"]
        return [
            record
            for record in records
            if not record["service"] and isinstance(record["name"], str)
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _of_workload(report: dict[str, Any], add: Callable[[str, str, float], None]) -> None:
    name, elapsed_ns = report["name"], report.get("elapsed_ns")
    ways = [report.get(direction) or {} for direction in DIRECTIONS]
    if isinstance(elapsed_ns, int):
        add("program_elapsed", name, elapsed_ns / 1e9)
    delivered_bytes = sum(way.get("delivered_bytes") or 0 for way in ways)
    if elapsed_ns and delivered_bytes:
        add("program_goodput", name, delivered_bytes * 8e9 / elapsed_ns)
    sent_again = [way.get("packets_retransmitted") for way in ways]
    if any(isinstance(number, int) for number in sent_again):
        add("program_retransmissions", name, sum(number or 0 for number in sent_again))


def _printed(text: str) -> dict[str, float]:
    """Read the JSON of iperf3, airpath send, curl or a stream's receiver, or the lines of ping."""
    if text.startswith("PING "):
        return _ping(text)
    if not text.lstrip().startswith("{"):
        return {}
    try:
        return _iperf3(parse_json(text))
    except ValueError:
        pass
    try:
        transfers = [parse_json(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return {}
    return _curl([one for one in transfers if isinstance(one, dict)])


def _iperf3(report: Any) -> dict[str, float]:
    if not isinstance(report, dict):
        return {}
    if "time_total" in report:
        return _curl([report])
    if isinstance(report.get("video"), dict):
        return _video(report["video"])
    end = report.get("end")
    found: dict[str, float] = {}
    if not isinstance(end, dict):
        return found
    received = end.get("sum_received") or end.get("sum")
    if isinstance(received, dict):
        if isinstance(received.get("bits_per_second"), int | float):
            found["program_goodput"] = float(received["bits_per_second"])
        if isinstance(received.get("lost_percent"), int | float):
            found["program_loss_ratio"] = float(received["lost_percent"]) / 100
        if isinstance(received.get("jitter_ms"), int | float):
            found["program_jitter"] = float(received["jitter_ms"]) / 1e3
    sent = end.get("sum_sent")
    if isinstance(sent, dict) and isinstance(sent.get("retransmits"), int):
        found["program_retransmissions"] = sent["retransmits"]
    for stream in end.get("streams") or []:
        times = stream.get("response_times") if isinstance(stream, dict) else None
        if isinstance(times, dict):
            for suffix, _, key in RESPONSE_TIMES:
                if isinstance(times.get(key), int | float):
                    found[f"program_response_time_{suffix}"] = float(times[key])
    return found


def _curl(transfers: list[dict[str, Any]]) -> dict[str, float]:
    times = [float(one["time_total"]) for one in transfers if "time_total" in one]
    sizes = [float(one["size_download"]) for one in transfers if "size_download" in one]
    if not times:
        return {}
    found = {
        "program_transfers": float(len(times)),
        "program_transfer_time": statistics.fmean(times),
        "program_bytes": sum(sizes),
    }
    if len(times) == 1 and times[0] > 0 and sizes:
        found["program_goodput"] = sizes[0] * 8 / times[0]
    pages = [one for one in transfers if "load_seconds" in one]
    if pages:
        loads = [float(one["load_seconds"]) for one in pages]
        found["program_pages"] = float(len(pages))
        found["program_page_load_time"] = statistics.fmean(loads)
        found["program_page_load_time_max"] = max(loads)
        found["program_first_byte_time"] = statistics.fmean(
            float(one["first_byte_seconds"]) for one in pages
        )
    return found


def _ping(text: str) -> dict[str, float]:
    """Return the share and the times of ping's echoes; copies of a reply count once."""
    counts = _PING_COUNTS.search(text)
    if counts is None:
        return {}
    times: dict[str, float] = {}
    for number, milliseconds in _PING_REPLY.findall(text):
        times.setdefault(number, float(milliseconds) / 1e3)
    sent = int(counts[1])
    found = {"program_echo_requests": float(sent), "program_echo_replies": float(len(times))}
    if sent:
        found["program_loss_ratio"] = 1 - len(times) / sent
    if times:
        ordered = sorted(times.values())
        at = {
            "min": ordered[0],
            "mean": statistics.fmean(ordered),
            # Times that occurred, as airpath send gives them.
            "median": ordered[math.ceil(len(ordered) * 0.5) - 1],
            "p99": ordered[math.ceil(len(ordered) * 0.99) - 1],
            "max": ordered[-1],
        }
        found |= {f"program_echo_time_{suffix}": at[suffix] for suffix in ECHO_TIMES}
    return found


def _video(video: dict[str, Any]) -> dict[str, float]:
    return {
        f"program_{name.replace('_seconds', '_time')}": float(value)
        for name, value in video.items()
        if isinstance(value, int | float) and name != "seconds"
    }
