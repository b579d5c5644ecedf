"""The figures of one replication, for stopping rules and the catalogue: names with plain numbers.

Times in seconds, rates in bit/s, lengths in bytes.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

DIRECTIONS = ("uplink", "downlink")

_PING_REPLY = re.compile(r"icmp_seq=(\d+) .*time=([0-9.]+) ms")
_PING_COUNTS = re.compile(r"^(\d+) packets transmitted", re.MULTILINE)


def of_summary(summary: dict[str, Any]) -> dict[str, float]:
    """Return the figures of the link, from the engine's summary."""
    found: dict[str, float] = {}
    if isinstance(summary.get("duration_ns"), int):
        found["duration"] = summary["duration_ns"] / 1e9
    for direction in DIRECTIONS:
        of = summary.get(direction)
        if not isinstance(of, dict):
            continue
        found[f"{direction}.packets"] = of["delivered_packets"]
        found[f"{direction}.bytes"] = of["delivered_bytes"]
        found[f"{direction}.rate"] = of["delivered_bit_per_s"]
        found[f"{direction}.dropped"] = sum(drop["packets"] for drop in of["dropped"])
        if of["delay"]["count"]:
            for name in ("mean", "p50", "p99", "max"):
                found[f"{direction}.delay_{name}"] = of["delay"][f"{name}_ns"] / 1e9
    return found


def of_workloads(reports: list[dict[str, Any]]) -> dict[str, float]:
    """Return the figures of workloads in virtual time, from their reports."""
    found: dict[str, float] = {}
    ends, goodputs = [], []
    for report in reports:
        name = report["name"]
        elapsed = report.get("elapsed_ns")
        if isinstance(elapsed, int):
            found[f"{name}.elapsed"] = elapsed / 1e9
        if isinstance(report.get("end_ns"), int):
            ends.append(report["end_ns"] / 1e9)
        bytes_ = sum((report.get(d) or {}).get("delivered_bytes", 0) for d in DIRECTIONS)
        if elapsed and bytes_:
            found[f"{name}.goodput"] = bytes_ * 8e9 / elapsed
            goodputs.append(found[f"{name}.goodput"])
        sent_again = [(report.get(d) or {}).get("packets_retransmitted") for d in DIRECTIONS]
        if any(isinstance(number, int) for number in sent_again):
            found[f"{name}.retransmitted"] = sum(number or 0 for number in sent_again)
    if ends:
        found["elapsed"] = max(ends)
    if len(goodputs) == 1:
        found["goodput"] = goodputs[0]
    return found


def of_programs(records: list[dict[str, Any]], folder: Path) -> dict[str, float]:
    """Return the figures of programs, from their records and what they printed."""
    found: dict[str, float] = {}
    waited_for = [record for record in records if not record["service"]]
    for record in waited_for:
        name = record["name"]
        if record["elapsed_ns"] is not None:
            found[f"{name}.elapsed"] = record["elapsed_ns"] / 1e9
        try:
            text = (folder / f"{name}.stdout").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        found.update({f"{name}.{key}": value for key, value in _printed(text).items()})
    ends = [record["end_ns"] for record in waited_for]
    if ends and all(end is not None for end in ends):
        found["elapsed"] = max(ends) / 1e9
    goodputs = [value for key, value in found.items() if key.endswith(".goodput")]
    if len(goodputs) == 1:
        found["goodput"] = goodputs[0]
    return found


def _printed(text: str) -> dict[str, float]:
    """Read what the program of a template prints: JSON, or ping's lines."""
    if text.startswith("PING "):
        return _ping(text)
    if not text.lstrip().startswith("{"):
        return {}
    try:
        return _iperf3(json.loads(text))
    except ValueError:
        pass
    try:
        transfers = [json.loads(line) for line in text.splitlines() if line.strip()]
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
            found["goodput"] = float(received["bits_per_second"])
        if isinstance(received.get("lost_percent"), int | float):
            found["lost"] = float(received["lost_percent"]) / 100
        if isinstance(received.get("jitter_ms"), int | float):
            found["jitter"] = float(received["jitter_ms"]) / 1e3
    sent = end.get("sum_sent")
    if isinstance(sent, dict) and isinstance(sent.get("retransmits"), int):
        found["retransmitted"] = sent["retransmits"]
    for stream in end.get("streams") or []:
        times = stream.get("response_times") if isinstance(stream, dict) else None
        if isinstance(times, dict):
            for key, value in times.items():
                if isinstance(value, int | float):
                    found[f"response_{key}"] = float(value)
    return found


def _curl(transfers: list[dict[str, Any]]) -> dict[str, float]:
    times = [float(one["time_total"]) for one in transfers if "time_total" in one]
    sizes = [float(one["size_download"]) for one in transfers if "size_download" in one]
    if not times:
        return {}
    found = {"transfers": float(len(times)), "transfer_time": statistics.fmean(times)}
    found["bytes"] = sum(sizes)
    if len(times) == 1 and times[0] > 0:
        found["goodput"] = sizes[0] * 8 / times[0]
    loads = [float(one["load_seconds"]) for one in transfers if "load_seconds" in one]
    if loads:
        found["pages"] = float(len(loads))
        found["page_load_time"], found["page_load_time_max"] = statistics.fmean(loads), max(loads)
        found["first_byte_time"] = statistics.fmean(
            float(one["first_byte_seconds"]) for one in transfers if "load_seconds" in one
        )
    return found


def _ping(text: str) -> dict[str, float]:
    """Return shares and times of ping's echoes; copies of a reply count once."""
    counts = _PING_COUNTS.search(text)
    if counts is None:
        return {}
    times: dict[str, float] = {}
    for number, milliseconds in _PING_REPLY.findall(text):
        times.setdefault(number, float(milliseconds) / 1e3)
    sent = int(counts[1])
    found = {"requests": float(sent), "replies": float(len(times))}
    if sent:
        found["lost"] = 1 - len(times) / sent
    if times:
        ordered = sorted(times.values())
        found["rtt_min"], found["rtt_max"] = ordered[0], ordered[-1]
        found["rtt_mean"] = statistics.fmean(ordered)
        for percent in (50, 99):  # times that occurred, as airpath send gives them
            found[f"rtt_p{percent}"] = ordered[math.ceil(len(ordered) * percent / 100) - 1]
    return found


def _video(video: dict[str, Any]) -> dict[str, float]:
    return {
        name.replace("_seconds", "_time"): float(value)
        for name, value in video.items()
        if isinstance(value, int | float) and name != "seconds"
    }
