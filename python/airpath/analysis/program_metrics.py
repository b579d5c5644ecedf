"""What programs, and workloads of virtual time, tell of themselves, and what the engine counted.

Programs: an experiment keeps what became of them in ``workload.json`` and what they printed in
``programs/NAME.stdout``; a run in virtual time has the reports of its workloads in ``run.json``.
Neither needs a log of packets.
"""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.metric import Better, metric
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airpath.analysis.traffic import Traffic

PROGRAMS = "Programs"
COUNTED = "Counted by the engine"

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

    for report in _reports(manifest):
        _of_workload(report, add)
    for record in _waited_for(folder):
        if record.get("elapsed_ns") is not None:
            add("program_elapsed", record["name"], record["elapsed_ns"] / 1e9)
        try:
            text = (folder / "programs" / f"{record['name']}.stdout").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        for name, value in _printed(text).items():
            add(name, record["name"], value)
    return found


def _reports(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["report"] for one in manifest.get("workloads") or [] if one.get("report")]


def _waited_for(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the programs that are no services."""
    try:
        records = json.loads((folder / "workload.json").read_text())["programs"]
        return [record for record in records if not record["service"]]
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
    """Read the JSON of iperf3 and airpath send, or curl's, a line for each transfer."""
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
    return found


RESPONSE_TIMES = (
    ("min", "least", "min_seconds"),
    ("mean", "mean", "mean_seconds"),
    ("median", "median", "p50_seconds"),
    ("p99", "99th percentile", "p99_seconds"),
    ("max", "greatest", "max_seconds"),
)
"""End of the metric's name, words, and the key in the JSON of airpath send."""


@metric(
    "elapsed",
    "s",
    "run",
    """Time from the experiment's t = 0 to the end of the last program that is waited for; in
    virtual time from the start of the run to the end of the last workload.""",
    group=PROGRAMS,
    source="Kojo et al. 2001, section 5.2",
    better="lower",
    headline=True,
)
def _elapsed(traffic: Traffic) -> pl.DataFrame:
    ends = [record.get("end_ns") for record in _waited_for(traffic.run.directory)]
    reported = [report.get("end_ns") for report in _reports(traffic.run.manifest)]
    ends += [end for end in reported if end is not None]
    known = [end for end in ends if isinstance(end, int)]
    whole = known and len(known) == len(ends)
    return pl.DataFrame(
        {"value": [max(known) / 1e9] if whole else []}, schema={"value": pl.Float64}
    )


def _told(name: str, unit: str, text: str, better: Better = "", *, headline: bool = False) -> None:
    """Declare a figure that programs tell."""

    def compute(traffic: Traffic) -> pl.DataFrame:
        found = figures(traffic.run.directory, traffic.run.manifest).get(name, {})
        return pl.DataFrame(
            {"flow": list(found), "value": list(found.values())},
            schema={"flow": pl.String, "value": pl.Float64},
        )

    metric(name, unit, "program", text, group=PROGRAMS, better=better, headline=headline)(compute)


_told("program_elapsed", "s", "Time from a program's start to its end.", "lower")
_told(
    "program_goodput",
    "bit/s",
    """Goodput as the program tells it: iperf3 and airpath send what arrived over the time they
    sent, curl the length of a single transfer over its time, a workload of virtual time the payload
    of both directions over its elapsed time.""",
    "higher",
    headline=True,
)
_told(
    "program_retransmissions",
    "packets",
    "Retransmissions as the sender's end tells them (iperf3, airpath send, virtual time).",
    "lower",
)
_told(
    "program_loss_ratio",
    "1",
    "Datagrams lost to datagrams sent, as iperf3 and airpath send tell it.",
    "lower",
)
_told("program_transfers", "transfers", "Transfers of which curl told.")
_told("program_transfer_time", "s", "The mean of the times that curl's transfers took.", "lower")
_told("program_bytes", "B", "What all of curl's transfers brought.")
for _suffix, _words, _ in RESPONSE_TIMES:
    _told(
        f"program_response_time_{_suffix}",
        "s",
        f"The {_words} of the times from a request to its response, as airpath send tells it.",
        "lower",
    )


# ---- What the engine counted --------------------------------------------------------------------


@metric("duration", "s", "run", "Time from the run's start to its end.", group=COUNTED)
def _duration(traffic: Traffic) -> pl.DataFrame:
    found = traffic.run.results.get("duration_ns")
    values = [found / 1e9] if isinstance(found, int) else []
    return pl.DataFrame({"value": values}, schema={"value": pl.Float64})


def _counted(name: str, unit: str, text: str, value: Callable[[dict[str, Any], str], Any]) -> None:
    """Declare a figure of each direction from the results of ``run.json``."""

    def compute(traffic: Traffic) -> pl.DataFrame:
        results = traffic.run.results
        found = [(way, value(results, way)) for way in DIRECTIONS if results.get("counters")]
        there = [(way, float(figure)) for way, figure in found if figure is not None]
        return pl.DataFrame(
            there, schema={"direction": pl.String, "value": pl.Float64}, orient="row"
        )

    metric(name, unit, "direction", text, group=COUNTED)(compute)


def _of_kind(kind: str, what: str) -> Callable[[dict[str, Any], str], float]:
    """Return what adds up the counters of a kind of events of a direction."""

    def value(results: dict[str, Any], direction: str) -> float:
        return sum(
            float(one["kinds"].get(kind, {}).get(what, 0))
            for one in results["counters"]
            if one["direction"] == direction
            and one["origin"] == "user"
            and (one["hop"] == "path" or kind != "delivered")
        )

    return value


def _delay(key: str) -> Callable[[dict[str, Any], str], float | None]:
    def value(results: dict[str, Any], direction: str) -> float | None:
        found = (results.get("timings") or {}).get(f"{direction}_delay") or {}
        return found[key] / 1e9 if found.get("count") else None

    return value


_counted(
    "counted_packets_delivered",
    "packets",
    """Packets that left the link, every copy counted. This and the other counts need no log, and
    are there for runs with --log counters; packets_delivered and its like are exact.""",
    _of_kind("delivered", "count"),
)
_counted(
    "counted_bytes_delivered",
    "B",
    "Bytes of the packets that left the link, headers and copies included.",
    lambda results, way: _of_kind("delivered", "bits")(results, way) / 8,
)
_counted(
    "counted_packets_dropped",
    "packets",
    "Packets that the link dropped, for whatever cause.",
    _of_kind("dropped", "count"),
)
for _suffix, _words, _key in (
    ("mean", "mean", "mean_ns"),
    ("median", "median", "p50_ns"),
    ("p99", "99th percentile", "p99_ns"),
    ("max", "greatest", "max_ns"),
):
    _counted(
        f"counted_delay_{_suffix}",
        "s",
        f"The {_words} of the one-way delays, from the engine's histogram.",
        _delay(_key),
    )
